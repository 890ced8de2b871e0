internal import Synchronization

/// Delivers events to their watchers. Every buffer is bounded and drops its oldest events, so a slow watcher does not
/// delay the others.
final class EventHub: Sendable {
  private struct State {
    var nextToken = 0
    // In the order in which the watchers came.
    var byDownload = OrderedTable<DownloadID, Watched>()
    var observers: [Watcher] = []
    var changes: [WeakBuffer] = []
    /// The watchers of ``DownloadEvent/Kind/refused(_:)`` alone, which are no reason to create any other event.
    var ofRefusals: [Watcher] = []
    var isFinished = false
    /// How many watchers of all downloads there have been, including those that have ended.
    var watchersOfAll = 0
    var watchesAll: Bool { !observers.isEmpty || !changes.isEmpty }
    var followsQueue: Bool { !observers.isEmpty || changes.contains { $0.followsQueue } }
  }
  /// Who watches one download.
  private struct Watched {
    var watchers: [Watcher] = []
    /// How many states were told since the first of the watchers came.
    var states = 0
  }
  private struct Watcher {
    let token: Int
    let stream: AsyncStream<DownloadEvent>.Continuation
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

  /// Whether events of the download have a watcher that follows downloads while they wait for a free slot.
  func isFollowedInQueue(_ id: DownloadID) -> Bool {
    state.withLock { $0.followsQueue || $0.byDownload[id] != nil }
  }

  /// Whether any watcher follows downloads while they wait for a free slot.
  var isQueueFollowed: Bool { state.withLock { $0.followsQueue || !$0.byDownload.isEmpty } }

  /// A number that grows with each new watcher of all downloads; 0 while there is none.
  var watchersOfAll: Int { state.withLock { $0.watchesAll ? $0.watchersOfAll : 0 } }

  /// Whether any event has a watcher.
  var isAnythingWatched: Bool { state.withLock { $0.watchesAll || !$0.byDownload.isEmpty } }

  /// The downloads that are watched individually, in the order in which their watchers came.
  var watchedDownloads: [DownloadID] { state.withLock { Array($0.byDownload.keys) } }

  func publish(_ kind: DownloadEvent.Kind, of run: Run) {
    if case .refused = kind {
      let watchers = state.withLock { $0.ofRefusals }
      for watcher in watchers { watcher.stream.yield(event(run.read { $0.request }, kind)) }
    }
    let isState = if case .state = kind { true } else { false }
    publish(run.id, .run(run), isState: isState) { event(run.read { $0.request }, kind) }
  }

  func publish(stateOf status: DownloadStatus) {
    publish(status.id, .status(status), isState: true) { event(status.request, .state(status.state)) }
  }

  /// Publishes the removal of a download, and ends its streams.
  func publish(removalOf request: DownloadRequest) {
    publish(request.id, .removed, isState: false) { event(request, .removed) }
    finish(request.id)
  }

  private var changeBuffers: [ChangeBuffer] { state.withLock { $0.changes.compactMap(\.buffer) } }

  /// Publishes the removal of a download whose request is not known, and ends its streams.
  func publish(removalOf id: DownloadID) {
    for buffer in changeBuffers { buffer.record(.removed, of: id) }
    finish(id)
  }

  private func event(_ request: DownloadRequest, _ kind: DownloadEvent.Kind) -> DownloadEvent {
    DownloadEvent(request, kind, date: time.date, instant: time.now)
  }

  /// Ends the streams of a removed download.
  private func finish(_ id: DownloadID) {
    let watchers = state.withLock { $0.byDownload.removeValue(forKey: id)?.watchers ?? [] }
    for watcher in watchers { watcher.stream.finish() }
  }

  /// Creates the event only if it has a watcher.
  private func publish(
    _ id: DownloadID, _ change: ChangeBuffer.Change, isState: Bool, _ event: () -> DownloadEvent
  ) {
    let watchers = state.withLock { state -> Watchers? in
      guard state.watchesAll || state.byDownload[id] != nil else { return nil }
      var streams: [Watcher] = []
      if !state.byDownload.isEmpty, let own = state.byDownload[id] {
        streams += own.watchers
        if isState { state.byDownload[id]?.states += 1 }
      }
      if !state.observers.isEmpty { streams += state.observers }
      return Watchers(streams: streams, changes: state.changes.compactMap(\.buffer))
    }
    guard let watchers else { return }
    if !watchers.streams.isEmpty {
      let event = event()
      for watcher in watchers.streams { watcher.stream.yield(event) }
    }
    for buffer in watchers.changes { buffer.record(change, of: id) }
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
    let changes: [ChangeBuffer]
  }

  func finish() {
    let (watchers, changes) = state.withLock { state in
      state.isFinished = true
      let all = state.byDownload.values.flatMap(\.watchers) + state.observers + state.ofRefusals
      let changes = state.changes.compactMap(\.buffer)
      state.byDownload.removeAll()
      state.observers = []
      state.ofRefusals = []
      state.changes = []
      return (all, changes)
    }
    for watcher in watchers { watcher.stream.finish() }
    for buffer in changes { buffer.finish() }
  }

  /// The events of one download from now on. The stream buffers the newest 256 for a slow reader.
  func events(of id: DownloadID) -> AsyncStream<DownloadEvent> {
    stream(buffering: 256) { state, watcher in
      state.byDownload[id, default: Watched()].watchers.append(watcher)
    } removing: { state, token in
      state.byDownload[id]?.watchers.removeAll { $0.token == token }
      if state.byDownload[id]?.watchers.isEmpty == true { state.byDownload[id] = nil }
    }
  }

  /// A number that grows with each state of the download that is told, for as long as it is watched.
  func statesTold(of id: DownloadID) -> Int { state.withLock { $0.byDownload[id]?.states ?? 0 } }

  /// The events of all downloads from now on. The stream buffers the newest 4,096 for a slow reader.
  func allEvents() -> AsyncStream<DownloadEvent> {
    stream(buffering: 4096) { state, watcher in
      state.watchersOfAll += 1
      state.observers.append(watcher)
    } removing: { state, token in
      state.observers.removeAll { $0.token == token }
    }
  }

  /// The events ``DownloadEvent/Kind/refused(_:)`` of all downloads from now on. The stream buffers the newest 256 for a slow
  /// reader.
  func refusals() -> AsyncStream<DownloadEvent> {
    stream(buffering: 256) { state, watcher in
      state.ofRefusals.append(watcher)
    } removing: { state, token in
      state.ofRefusals.removeAll { $0.token == token }
    }
  }

  /// A stream for a new watcher, which is removed when its reader ends; an ended stream after ``finish()``.
  private func stream(
    buffering count: Int, adding add: (inout State, Watcher) -> Void,
    removing remove: @escaping @Sendable (inout State, Int) -> Void
  ) -> AsyncStream<DownloadEvent> {
    let (stream, continuation) = AsyncStream<DownloadEvent>.makeStream(bufferingPolicy: .bufferingNewest(count))
    let token: Int? = state.withLock { state in
      if state.isFinished { return nil }
      state.nextToken += 1
      add(&state, Watcher(token: state.nextToken, stream: continuation))
      return state.nextToken
    }
    if let token {
      continuation.onTermination = { [weak self] _ in self?.state.withLock { remove(&$0, token) } }
    } else {
      continuation.finish()
    }
    return stream
  }

  /// A buffer that collects the changes of all downloads from now on.
  ///
  /// - Parameter followsQueue: Whether the reader follows downloads that wait for a free slot.
  func changeBuffer(followsQueue: Bool) -> ChangeBuffer {
    state.withLock { state in
      state.nextToken += 1
      state.watchersOfAll += 1
      let token = state.nextToken
      let buffer = ChangeBuffer(time: time) { [weak self] in
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
