import DownpipeCore

/// Moves a download to another place among those that wait.
struct QueueMove {
  /// Where to.
  enum Target: Sendable, Hashable {
    /// The index in the queue.
    case index(Int)
    /// From where it is.
    case steps(Int)
    /// From behind the last one, which is 0; -1 is the last but one.
    case fromEnd(Int)
  }

  let downloader: Downloader

  /// The downloads that wait, and those that are paused among them, in the order of the queue.
  static func waiting(limit: Int? = nil, offset: Int = 0) -> DownloadQuery {
    DownloadQuery(phases: [.waiting, .paused], order: .rank, limit: limit, offset: offset)
  }

  /// - Returns: The index in the queue at which the download is then; `nil` if it does not wait.
  func move(_ id: DownloadID, to target: Target) async throws -> Int? {
    // The whole queue is read: an index says nothing without it. Its statuses share their requests with the ledger's cache.
    var queue: [Entry] = []
    while true {
      let page = try await downloader.statuses(Self.waiting(limit: 1000, offset: queue.count))
      queue += page.map { Entry($0) }
      if page.count < 1000 { break }
    }
    guard let from = queue.firstIndex(where: { $0.id == id }) else { return nil }
    let entry = queue.remove(at: from)
    let wanted =
      switch target {
      case .index(let index): index
      case .steps(let steps): steps > queue.count ? queue.count : max(0, from) + max(-from, steps)
      case .fromEnd(let steps): queue.count + min(0, steps)
      }
    let index = min(max(0, wanted), queue.count)
    if index == from { return index }
    queue.insert(entry, at: index)
    try await write(Self.changes(queue, moved: index))
    return index
  }

  /// A download's place: its priority goes first.
  struct Entry: Hashable {
    var id: DownloadID
    var priority: Priority
    var position: Int64

    init(_ status: DownloadStatus) {
      self.init(id: status.id, priority: status.request.priority, position: status.queuePosition)
    }

    init(id: DownloadID, priority: Priority, position: Int64) {
      self.id = id
      self.priority = priority
      self.position = position
    }
  }

  /// What has to change so that a queue is in the order of the list: the priority and the position of the moved download, and
  /// the positions of those behind it as far as there is no room for it.
  static func changes(_ queue: [Entry], moved index: Int) -> [Entry] {
    var entry = queue[index]
    let before = index > 0 ? queue[index - 1] : nil
    let after = index + 1 < queue.count ? queue[index + 1] : nil
    // Where neighbours have different priorities, the download keeps its own if it can.
    if let before, entry.priority > before.priority { entry.priority = before.priority }
    if let after, entry.priority < after.priority { entry.priority = after.priority }
    let lower = before.flatMap { $0.priority == entry.priority ? $0.position : nil }
    let upper = after.flatMap { $0.priority == entry.priority ? $0.position : nil }
    switch (lower, upper) {
    case (nil, nil): return [entry]
    case (let lower?, nil): entry.position = lower.addingSaturated(QueueOrder.step)
    case (nil, let upper?): entry.position = upper.addingSaturated(-QueueOrder.step)
    case (let lower?, let upper?) where upper - lower >= 2: entry.position = lower + (upper - lower) / 2
    case (let lower?, _?):
      var changes: [Entry] = []
      var last = lower
      for position in index..<queue.count {
        var next = position == index ? entry : queue[position]
        guard next.priority == entry.priority, position == index || next.position <= last else { break }
        last = last.addingSaturated(QueueOrder.step)
        next.position = last
        changes.append(next)
      }
      return changes
    }
    return [entry]
  }

  private func write(_ entries: [Entry]) async throws {
    let places = Dictionary(entries.map { ($0.id, $0) }) { $1 }
    _ = try await downloader.updateAll(.ids(places.keys)) { request in
      guard let place = places[request.id] else { return }
      request.priority = place.priority
      request.queuePosition = place.position
    }
  }
}
