internal import Synchronization

/// Delivers events to their watchers. Every buffer is bounded, so a slow watcher does not delay the others: an
/// ``EventBuffer`` drops progress, then its oldest events, and a ``ChangeBuffer`` keeps the latest change of each download
/// and says when there are too many.
final class EventHub: Sendable {
  private struct State {
    var nextToken = 0
    // In the order in which the watchers came.
    var byDownload = OrderedTable<DownloadID, [Watcher]>()
    var observers: [Watcher] = []
    var changes: [WeakBuffer] = []
    /// The watchers of ``DownloadEvent/Kind/refused(_:)`` alone, which are no reason to create any other event.
    var ofRefusals: [Watcher] = []
    /// Called within the publication of ``DownloadEvent/Kind/refused(_:)``.
    var refusalNotes: [@Sendable (DownloadEvent) -> Void] = []
    var isFinished = false
    var watchesAll: Bool { !observers.isEmpty || !changes.isEmpty }
    var followsQueue: Bool { !observers.isEmpty || changes.contains { $0.followsQueue } }
  }
  private struct Watcher {
    let token: Int
    let events: EventBuffer
    /// The last state of the download that it watches which was told to it.
    var told: DownloadState?
    /// Whether it waits for the reason for which its run was stopped: who has read its status since may have seen another one.
    var mayDiffer = false
  }
  /// The reader owns its buffer: the buffer ends with the reader.
  private struct WeakBuffer {
    let token: Int
    weak var buffer: ChangeBuffer?
    /// Whether the reader follows downloads that wait for a free slot.
    let followsQueue: Bool
  }
  private let state = Mutex(State())
  private let time: any TimeSource

  init(time: any TimeSource) { self.time = time }

  /// Whether events of the download have a watcher.
  func isWatched(_ id: DownloadID) -> Bool {
    state.withLock { $0.watchesAll || $0.byDownload[id] != nil }
  }

  /// Whether the download is watched individually.
  func isFollowed(_ id: DownloadID) -> Bool { state.withLock { $0.byDownload[id] != nil } }

  /// Whether events of the download are delivered one by one: to observers, or to a watcher of its own.
  func isStreamed(_ id: DownloadID) -> Bool {
    state.withLock { !$0.observers.isEmpty || $0.byDownload[id] != nil }
  }

  /// Whether events of the download have a watcher that follows downloads while they wait for a free slot.
  func isFollowedInQueue(_ id: DownloadID) -> Bool {
    state.withLock { $0.followsQueue || $0.byDownload[id] != nil }
  }

  /// Whether any event has a watcher.
  var isAnythingWatched: Bool { state.withLock { $0.watchesAll || !$0.byDownload.isEmpty } }

  /// The downloads that are watched individually, in the order in which their watchers came.
  var watchedDownloads: [DownloadID] { state.withLock { Array($0.byDownload.keys) } }

  func publish(_ kind: DownloadEvent.Kind, of run: Run) {
    if case .refused = kind {
      let (watchers, notes) = state.withLock { ($0.ofRefusals, $0.refusalNotes) }
      for note in notes { note(event(run.read { $0.request }, kind, isOwn: true)) }
      for watcher in watchers { watcher.events.append(event(run.read { $0.request }, kind, isOwn: true)) }
    }
    let state: DownloadState? = if case .state(let state) = kind { state } else { nil }
    publish(run.id, .run(run), state: state) { event(run.read { $0.request }, kind, isOwn: true) }
  }

  /// - Parameter isReason: Whether it is only told to the watchers of this download, if they do not know it: the reason to
  ///   wait may have changed.
  func publish(stateOf status: DownloadStatus, isReason: Bool = false) {
    if isReason {
      let isNews = state.withLock { state in
        state.byDownload[status.id]?.contains { $0.told != status.state || $0.mayDiffer } ?? false
      }
      guard isNews else { return }
    }
    publish(status.id, isReason ? nil : .status(status), state: status.state) {
      event(status.request, .state(status.state))
    }
  }

  /// Publishes the removal of a download, and ends its streams.
  func publish(removalOf request: DownloadRequest) {
    publish(request.id, .removed, isRemoval: true) { event(request, .removed) }
  }

  private var changeBuffers: [ChangeBuffer] { state.withLock { $0.changes.compactMap(\.buffer) } }

  /// Publishes the removal of a download whose request is not known, and ends its streams.
  func publish(removalOf id: DownloadID) {
    for buffer in changeBuffers { buffer.record(.removed, of: CollectionOfOne(id)) }
    let watchers = state.withLock { $0.byDownload.removeValue(forKey: id) ?? [] }
    for watcher in watchers { watcher.events.finish() }
  }

  private func event(
    _ request: DownloadRequest, _ kind: DownloadEvent.Kind, isOwn: Bool = false
  ) -> DownloadEvent {
    DownloadEvent(request, kind, date: time.date, instant: time.now, isOwn: isOwn)
  }

  /// Creates the event only if it has a watcher.
  ///
  /// - Parameters:
  ///   - change: What those are told who watch all downloads; `nil` for nothing.
  ///   - isRemoval: Whether the event is the last one of the download, whose streams end.
  private func publish(
    _ id: DownloadID, _ change: ChangeBuffer.Change?, state new: DownloadState? = nil, isRemoval: Bool = false,
    _ event: () -> DownloadEvent
  ) {
    let watchers = state.withLock { state -> Watchers? in
      guard state.watchesAll || state.byDownload[id] != nil else { return nil }
      var own: [Watcher] = []
      if !state.byDownload.isEmpty, let all = state.byDownload[id] {
        own = all
        if isRemoval {
          state.byDownload[id] = nil
        } else if let new {
          let mayDiffer = if case .run = change, case .waiting(let reason) = new { reason.mayChange } else { false }
          state.byDownload[id] = all.map {
            Watcher(token: $0.token, events: $0.events, told: new, mayDiffer: mayDiffer)
          }
        }
      }
      guard change != nil else { return Watchers(streams: own, ended: [], changes: []) }
      return Watchers(
        streams: own + state.observers, ended: isRemoval ? own : [], changes: state.changes.compactMap(\.buffer))
    }
    guard let watchers else { return }
    if !watchers.streams.isEmpty {
      let event = event()
      for watcher in watchers.streams { watcher.events.append(event) }
      for watcher in watchers.ended { watcher.events.finish() }
    }
    guard let change else { return }
    for buffer in watchers.changes { buffer.record(change, of: CollectionOfOne(id)) }
  }

  /// Lets the watchers of all downloads ask for those that have changed.
  func publish(changesOf ids: [DownloadID]) {
    for buffer in changeBuffers { buffer.record(.unknown, of: ids) }
  }

  /// Tells the watchers of all downloads that reasons to wait may have changed.
  /// - Parameter isOfQueue: Whether only those have changed that wait for a free slot.
  func publishReasons(isOfQueue: Bool) {
    let buffers = state.withLock { $0.changes.filter { $0.followsQueue || !isOfQueue }.compactMap(\.buffer) }
    for buffer in buffers { buffer.recordReasons() }
  }

  /// Tells the watchers of all downloads that changes are left out.
  func publishIncomplete() {
    for buffer in changeBuffers { buffer.recordIncomplete() }
  }

  /// Delivers the changes so far to the watchers of all downloads, without waiting for their intervals.
  func deliverChanges() {
    for buffer in changeBuffers { buffer.deliver() }
  }

  private struct Watchers {
    let streams: [Watcher]
    /// Those whose download was removed.
    let ended: [Watcher]
    let changes: [ChangeBuffer]
  }

  func finish() {
    let (watchers, changes) = state.withLock { state in
      state.isFinished = true
      let all = state.byDownload.values.flatMap { $0 } + state.observers + state.ofRefusals
      let changes = state.changes.compactMap(\.buffer)
      state.byDownload.removeAll()
      state.observers = []
      state.ofRefusals = []
      state.changes = []
      return (all, changes)
    }
    for watcher in watchers { watcher.events.finish() }
    for buffer in changes { buffer.finish() }
  }

  /// The events of one download from now on, and the number of their watcher. The stream buffers 256 for a slow reader.
  func events(of id: DownloadID) -> (stream: AsyncStream<DownloadEvent>, watcher: Int?) {
    stream(buffering: 256) { state, watcher in
      state.byDownload[id, default: []].append(watcher)
    } removing: { state, token in
      state.byDownload[id]?.removeAll { $0.token == token }
      if state.byDownload[id]?.isEmpty == true { state.byDownload[id] = nil }
    }
  }

  /// Notes what a watcher of ``events(of:)`` has read itself, unless a state of the download, or its removal, was told to it.
  /// - Returns: Whether nothing was told.
  func note(_ read: DownloadState?, of id: DownloadID, by watcher: Int?) -> Bool {
    state.withLock { state in
      if state.isFinished { return true }
      guard let index = state.byDownload[id]?.firstIndex(where: { $0.token == watcher }),
        state.byDownload[id]?[index].told == nil
      else { return false }
      state.byDownload[id]?[index].told = read
      return true
    }
  }

  /// The events of all downloads from now on. The stream buffers 4,096 for a slow reader.
  func allEvents() -> AsyncStream<DownloadEvent> {
    stream(buffering: 4096) { state, watcher in
      state.observers.append(watcher)
    } removing: { state, token in
      state.observers.removeAll { $0.token == token }
    }.stream
  }

  /// Calls back for each ``DownloadEvent/Kind/refused(_:)`` of any download, before a later event of the same download is
  /// published.
  func noteRefusals(_ note: @escaping @Sendable (DownloadEvent) -> Void) {
    state.withLock { $0.refusalNotes.append(note) }
  }

  /// The events ``DownloadEvent/Kind/refused(_:)`` of all downloads from now on. The stream buffers 256 for a slow
  /// reader.
  func refusals() -> AsyncStream<DownloadEvent> {
    stream(buffering: 256) { state, watcher in
      state.ofRefusals.append(watcher)
    } removing: { state, token in
      state.ofRefusals.removeAll { $0.token == token }
    }.stream
  }

  /// A stream for a new watcher, which is removed when its reader ends, and the watcher's number; an ended stream after
  /// ``finish()``.
  private func stream(
    buffering count: Int, adding add: (inout State, Watcher) -> Void,
    removing remove: @escaping @Sendable (inout State, Int) -> Void
  ) -> (stream: AsyncStream<DownloadEvent>, watcher: Int?) {
    let events = EventBuffer(capacity: count)
    let token: Int? = state.withLock { state in
      if state.isFinished { return nil }
      state.nextToken += 1
      add(&state, Watcher(token: state.nextToken, events: events))
      return state.nextToken
    }
    guard let token else {
      events.finish()
      return (AsyncStream { await events.next() }, nil)
    }
    let reader = Reader(of: events) { [weak self] in self?.state.withLock { remove(&$0, token) } }
    return (AsyncStream { await reader.next() }, token)
  }

  /// Belongs to a stream, and ends with it.
  private final class Reader: Sendable {
    private let events: EventBuffer
    private let end: @Sendable () -> Void

    init(of events: EventBuffer, end: @escaping @Sendable () -> Void) {
      (self.events, self.end) = (events, end)
    }

    deinit { end() }

    func next() async -> DownloadEvent? { await events.next() }
  }

  /// A buffer that collects the changes of all downloads from now on.
  ///
  /// - Parameters:
  ///   - followsQueue: Whether the reader follows downloads that wait for a free slot.
  ///   - knowsAll: Whether the reader does not begin with all downloads.
  func changeBuffer(followsQueue: Bool, knowsAll: Bool) -> ChangeBuffer {
    state.withLock { state in
      state.nextToken += 1
      let token = state.nextToken
      let buffer = ChangeBuffer(time: time, knowsAll: knowsAll) { [weak self] in
        self?.state.withLock { $0.changes.removeAll { $0.token == token } }
      }
      if state.isFinished {
        buffer.finish()
      } else {
        state.changes.append(WeakBuffer(token: token, buffer: buffer, followsQueue: followsQueue))
      }
      return buffer
    }
  }
}
