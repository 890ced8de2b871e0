/// Collects changes for one reader: the latest status of each download, for at most 10,000 downloads.
final class ChangeBuffer: Sendable {
  /// A change. The status of a run is computed when the reader takes the batch, not with each change.
  enum Change: Sendable {
    /// Indirect, because most changes are of a run: a status takes half a kilobyte.
    indirect case status(DownloadStatus)
    case run(Run)
    case removed
    /// The reader asks what has become of the download.
    case unknown
  }

  /// What the reader has not been told.
  struct News: Sendable {
    fileprivate(set) var latest = OrderedTable<DownloadID, Change>()
    /// Whether all changes are in ``latest``.
    fileprivate(set) var isComplete: Bool
    fileprivate(set) var reasonsMayHaveChanged = false

    fileprivate var isEmpty: Bool { latest.isEmpty && isComplete && !reasonsMayHaveChanged }
  }

  static let capacity = 10_000
  private struct State: Sendable {
    var news: News
    var isFinished = false
    /// Whether the next batch does not wait for the interval.
    var isDue: Bool
    /// Whether the reader has read all downloads.
    var hasSnapshot = false
    /// When the reader took the previous batch, or when the buffer was made.
    var previous: Duration
    /// The number of the latest reader, before which earlier ones end.
    var reader: UInt64 = 0

    var isOver: Bool { isFinished || isDue }
  }
  private let state: Monitor<State>
  private let time: any TimeSource
  private let onEnd: @Sendable () -> Void

  /// - Parameter knowsAll: Whether the reader knows all downloads; otherwise it begins by asking for them.
  init(time: any TimeSource, knowsAll: Bool, onEnd: @escaping @Sendable () -> Void) {
    self.time = time
    self.onEnd = onEnd
    state = Monitor(State(news: News(isComplete: knowsAll), isDue: !knowsAll, previous: time.now))
  }

  deinit { onEnd() }

  func record(_ change: Change, of ids: some Collection<DownloadID>) {
    state.update { state in
      for id in ids {
        if state.news.latest.count >= Self.capacity, state.news.latest[id] == nil {
          return state.news.isComplete = false
        }
        state.news.latest[id] = change
      }
    }
  }

  /// Records that there are changes which are not told.
  func recordIncomplete() { state.update { $0.news.isComplete = false } }

  /// Records that waiting downloads may have other reasons.
  func recordReasons() { state.update { $0.news.reasonsMayHaveChanged = true } }

  func finish() { state.update { $0.isFinished = true } }

  var isFinished: Bool { state.read(\.isFinished) }

  /// Delivers the next batch without waiting for the interval.
  func deliver() { state.update { $0.isDue = true } }

  /// Waits for news, and until `interval` has passed since the previous ones; `nil` at the end.
  func next(every interval: Duration) async -> News? {
    await sleep(until: state.read(\.previous) + interval)
    let news = await next()
    state.update { $0.previous = time.now }
    return news
  }

  /// Sleeps until the instant or the end, or until a batch is due: the last batch is delivered without delay.
  private func sleep(until instant: Duration) async {
    guard time.now < instant, !state.read(\.isOver) else { return }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [time] in try? await time.sleep(until: instant, purpose: .changes) }
      group.addTask { try? await self.state.wait { $0.isOver } }
      await group.next()
      group.cancelAll()
    }
  }

  /// Waits until there is news and takes it; `nil` at the end, or if another reader has come.
  private func next() async -> News? {
    let number = state.update { state in
      state.reader += 1
      return state.reader
    }
    do { try await state.wait { !$0.news.isEmpty || $0.isFinished || $0.reader != number } } catch { return nil }
    return state.update { state in
      if state.reader != number || state.news.isEmpty { return nil }
      defer {
        // The next batch is probably as large.
        state.news = News(latest: OrderedTable(minimumCapacity: state.news.latest.count), isComplete: true)
        state.isDue = false
      }
      return state.news
    }
  }

  /// Notes that the reader has read all downloads, which costs more than a batch: the next time, half a second later.
  func noteSnapshot(every interval: Duration) {
    state.update { state in
      if state.hasSnapshot { state.previous = time.now + max(.zero, .milliseconds(500) - interval) }
      state.hasSnapshot = true
    }
  }

  /// Takes back what the reader could not ask for, and waits a second.
  func putBack(_ news: News) async {
    state.update { state in
      state.news.isComplete = state.news.isComplete && news.isComplete
      for (id, change) in news.latest where state.news.latest[id] == nil {
        if state.news.latest.count < Self.capacity {
          state.news.latest[id] = change
        } else {
          state.news.isComplete = false
        }
      }
      state.news.reasonsMayHaveChanged = state.news.reasonsMayHaveChanged || news.reasonsMayHaveChanged
    }
    await sleep(until: time.now + .seconds(1))
  }
}

/// Makes batches of what a buffer has collected, and asks for what it does not have.
struct ChangeReader: Sendable {
  let engine: Engine
  let buffer: ChangeBuffer
  let interval: Duration
  /// Whether all downloads are read at the beginning, and when changes were left out.
  let takesSnapshots: Bool

  /// Waits for the next batch; `nil` at the end.
  func next() async -> DownloadChanges? {
    while let news = await buffer.next(every: interval) {
      do { return try await batch(news) } catch {
        if buffer.isFinished || Task.isCancelled { return last(news) }
      }
      await buffer.putBack(news)
    }
    return nil
  }

  private func batch(_ news: ChangeBuffer.News) async throws -> DownloadChanges {
    var (statuses, removed, unknown) = news.known
    guard news.isComplete || !takesSnapshots else {
      let all = try await engine.statuses(DownloadQuery(limit: ChangeBuffer.capacity))
      buffer.noteSnapshot(every: interval)
      let isComplete = all.count < ChangeBuffer.capacity
      if !isComplete {
        // A snapshot is newer than what was collected, but need not have all of it.
        let ids = Set(all.map(\.id))
        statuses.removeAll { ids.contains($0.id) }
        statuses += try await engine.statuses(of: unknown.filter { !ids.contains($0) }).values
      }
      return DownloadChanges(
        statuses: isComplete ? all : all + statuses, removed: [], isSnapshot: true, reasonsMayHaveChanged: false,
        isComplete: isComplete)
    }
    if !unknown.isEmpty {
      let found = try await engine.statuses(of: unknown)
      statuses += found.values
      removed += unknown.filter { found[$0] == nil }
    }
    return DownloadChanges(
      statuses: statuses, removed: removed, isSnapshot: false, reasonsMayHaveChanged: news.reasonsMayHaveChanged,
      isComplete: news.isComplete)
  }

  /// The last batch, when nothing can be asked for any longer.
  private func last(_ news: ChangeBuffer.News) -> DownloadChanges? {
    let (statuses, removed, unknown) = news.known
    guard !statuses.isEmpty || !removed.isEmpty else { return nil }
    return DownloadChanges(
      statuses: statuses, removed: removed, isSnapshot: false, reasonsMayHaveChanged: false,
      isComplete: news.isComplete && unknown.isEmpty)
  }
}

extension ChangeBuffer.News {
  /// What is known now.
  var known: (statuses: [DownloadStatus], removed: [DownloadID], unknown: [DownloadID]) {
    var (statuses, removed, unknown) = ([DownloadStatus](), [DownloadID](), [DownloadID]())
    statuses.reserveCapacity(latest.count)
    for (id, change) in latest {
      switch change {
      case .status(let status): statuses.append(status)
      case .run(let run): statuses.append(run.status)
      case .removed: removed.append(id)
      case .unknown: unknown.append(id)
      }
    }
    return (statuses, removed, unknown)
  }
}
