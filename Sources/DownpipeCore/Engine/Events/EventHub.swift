internal import Synchronization

/// Hands events to those who watch. A slow watcher holds up no other: every buffer is bounded, and the newest events
/// win.
final class EventHub: Sendable {
  private struct State {
    var nextToken = 0
    var byDownload: [DownloadID: [Int: AsyncStream<DownloadEvent>.Continuation]] = [:]
    var observers: [Int: AsyncStream<DownloadEvent>.Continuation] = [:]
    var changes: [Int: WeakBuffer] = [:]
    var isFinished = false
    /// How many have come to watch every download, those that went again included.
    var watchersOfAll = 0
    var watchesAll: Bool { !observers.isEmpty || !changes.isEmpty }
  }
  /// A reader that goes away takes its buffer along.
  private struct WeakBuffer {
    weak var buffer: ChangeBuffer?
  }
  private let state = Mutex(State())

  /// Whether an event of the download is seen.
  func isWatched(_ id: DownloadID) -> Bool {
    state.withLock { $0.watchesAll || $0.byDownload[id] != nil }
  }

  /// How many have come to watch every download; 0 while there are none.
  var watchersOfAll: Int { state.withLock { $0.watchesAll ? $0.watchersOfAll : 0 } }

  /// Whether any event is seen.
  var isAnythingWatched: Bool { state.withLock { $0.watchesAll || !$0.byDownload.isEmpty } }

  /// The downloads that are watched by themselves.
  var watchedDownloads: [DownloadID] { state.withLock { Array($0.byDownload.keys) } }

  /// Hands out what has happened to a run.
  func publish(_ kind: DownloadEvent.Kind, of run: Run) {
    publish(run.id, .run(run)) { DownloadEvent(run.read { $0.request }, kind) }
  }

  /// Hands out the state that a status bears.
  func publish(stateOf status: DownloadStatus) {
    publish(status.id, .status(status)) { DownloadEvent(status.request, .state(status.state)) }
  }

  /// Hands out that a download was removed, and ends its streams.
  func publish(removalOf request: DownloadRequest) {
    publish(request.id, .removed) { DownloadEvent(request, .removed) }
    finish(request.id)
  }

  /// Ends the streams of a download that is gone.
  func finish(_ id: DownloadID) {
    let continuations = state.withLock { $0.byDownload.removeValue(forKey: id)?.values.map { $0 } ?? [] }
    for continuation in continuations { continuation.finish() }
  }

  /// The event is only made where it is seen.
  private func publish(_ id: DownloadID, _ change: ChangeBuffer.Change, _ event: () -> DownloadEvent) {
    let watchers = state.withLock { state -> Watchers? in
      guard state.watchesAll || state.byDownload[id] != nil else { return nil }
      return Watchers(
        streams: (state.byDownload[id].map { Array($0.values) } ?? []) + state.observers.values,
        changes: state.changes.values.compactMap(\.buffer))
    }
    guard let watchers else { return }
    if !watchers.streams.isEmpty {
      let event = event()
      for continuation in watchers.streams { continuation.yield(event) }
    }
    for buffer in watchers.changes { buffer.record(change, of: id) }
  }

  /// Tells those who watch every download that more has changed than is handed out.
  func publishIncomplete() {
    let changes = state.withLock { $0.changes.values.compactMap(\.buffer) }
    for buffer in changes { buffer.recordIncomplete() }
  }

  private struct Watchers {
    let streams: [AsyncStream<DownloadEvent>.Continuation]
    let changes: [ChangeBuffer]
  }

  /// Ends every stream.
  func finish() {
    let (continuations, changes) = state.withLock { state in
      state.isFinished = true
      let all = state.byDownload.values.flatMap(\.values) + state.observers.values
      let changes = state.changes.values.compactMap(\.buffer)
      state.byDownload = [:]
      state.observers = [:]
      state.changes = [:]
      return (all, changes)
    }
    for continuation in continuations { continuation.finish() }
    for buffer in changes { buffer.finish() }
  }

  /// The events of one download from now on; the newest 256 are kept for a slow reader.
  func events(of id: DownloadID) -> AsyncStream<DownloadEvent> {
    let (stream, continuation) = AsyncStream<DownloadEvent>.makeStream(bufferingPolicy: .bufferingNewest(256))
    let token: Int? = state.withLock { state in
      if state.isFinished { return nil }
      state.nextToken += 1
      state.byDownload[id, default: [:]][state.nextToken] = continuation
      return state.nextToken
    }
    guard let token else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { state in
        state.byDownload[id]?[token] = nil
        if state.byDownload[id]?.isEmpty == true { state.byDownload[id] = nil }
      }
    }
    return stream
  }

  /// Every event from now on; the newest 4,096 are kept for a slow reader.
  func allEvents() -> AsyncStream<DownloadEvent> {
    let (stream, continuation) = AsyncStream<DownloadEvent>.makeStream(bufferingPolicy: .bufferingNewest(4096))
    let token: Int? = state.withLock { state in
      if state.isFinished { return nil }
      state.nextToken += 1
      state.watchersOfAll += 1
      state.observers[state.nextToken] = continuation
      return state.nextToken
    }
    guard let token else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { $0.observers[token] = nil }
    }
    return stream
  }

  /// Collects the latest status of whatever changes from now on.
  func changeBuffer() -> ChangeBuffer {
    state.withLock { state in
      state.nextToken += 1
      state.watchersOfAll += 1
      let token = state.nextToken
      let buffer = ChangeBuffer { [weak self] in self?.state.withLock { $0.changes[token] = nil } }
      if state.isFinished { buffer.finish() } else { state.changes[token] = WeakBuffer(buffer: buffer) }
      return buffer
    }
  }
}
