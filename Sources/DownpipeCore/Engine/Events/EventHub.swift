internal import Synchronization

/// Hands events to whoever watches. Nobody who watches slowly holds up anybody else: every buffer is
/// bounded, and the newest events win.
final class EventHub: Sendable {
  private struct State {
    var nextToken = 0
    var byDownload: [DownloadID: [Int: AsyncStream<DownloadEvent>.Continuation]] = [:]
    var observers: [Int: AsyncStream<DownloadEvent>.Continuation] = [:]
    var changes: [Int: WeakBuffer] = [:]
    var isFinished = false
  }
  /// A reader that goes away takes its buffer along.
  private struct WeakBuffer {
    weak var buffer: ChangeBuffer?
  }
  private let state = Mutex(State())

  /// Whether anybody would see an event of the download.
  func isWatched(_ id: DownloadID) -> Bool {
    state.withLock { !$0.observers.isEmpty || !$0.changes.isEmpty || $0.byDownload[id] != nil }
  }

  /// The downloads that somebody watches by themselves.
  var watchedDownloads: [DownloadID] { state.withLock { Array($0.byDownload.keys) } }

  /// Hands out what has happened to a run.
  func publish(_ kind: DownloadEvent.Kind, of run: Run) {
    publish(DownloadEvent(id: run.id, kind: kind), .run(run))
  }

  /// Hands out the state that a status bears.
  func publish(stateOf status: DownloadStatus) {
    publish(DownloadEvent(id: status.id, kind: .state(status.state)), .status(status))
  }

  private func publish(_ event: DownloadEvent, _ change: ChangeBuffer.Change) {
    let (single, observers, changes) = state.withLock { state in
      (
        state.byDownload[event.id].map { Array($0.values) } ?? [], Array(state.observers.values),
        state.changes.values.compactMap(\.buffer)
      )
    }
    for continuation in single { continuation.yield(event) }
    for continuation in observers { continuation.yield(event) }
    for buffer in changes { buffer.record(change, of: event.id) }
  }

  /// Ends the streams of one download, which was removed.
  func finish(_ id: DownloadID) {
    let continuations = state.withLock { $0.byDownload.removeValue(forKey: id)?.values.map { $0 } ?? [] }
    for continuation in continuations { continuation.finish() }
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
      let token = state.nextToken
      let buffer = ChangeBuffer { [weak self] in self?.state.withLock { $0.changes[token] = nil } }
      if state.isFinished { buffer.finish() } else { state.changes[token] = WeakBuffer(buffer: buffer) }
      return buffer
    }
  }
}

/// The downloads that changed since the last look, each with its latest status.
public struct DownloadChanges: Sendable {
  /// The latest status of each download that changed.
  public let statuses: [DownloadStatus]
  /// Whether these are all: false when more than 10,000 changed at once, and some were left out. Ask
  /// ``Downloader/statuses(_:)`` then.
  public let isComplete: Bool
}

/// Collects changes for one reader: the latest status for each id, 10,000 ids at most.
final class ChangeBuffer: Sendable {
  /// What has changed: a status, or a run whose status is asked for when somebody looks.
  enum Change: Sendable {
    case status(DownloadStatus)
    case run(Run)

    var status: DownloadStatus {
      switch self {
      case .status(let status): status
      case .run(let run): run.status
      }
    }
  }

  private static let capacity = 10_000
  private struct State {
    var latest: [DownloadID: Change] = [:]
    var isComplete = true
    var isFinished = false
    var waiter: CheckedContinuation<Void, Never>?
  }
  private let state = Mutex(State())
  private let onEnd: @Sendable () -> Void

  init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

  deinit { onEnd() }

  func record(_ change: Change, of id: DownloadID) {
    let waiter = state.withLock { state in
      if state.latest.count >= Self.capacity, state.latest[id] == nil {
        state.isComplete = false
      } else {
        state.latest[id] = change
      }
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }

  func finish() {
    let waiter = state.withLock { state in
      state.isFinished = true
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }

  var isFinished: Bool { state.withLock { $0.isFinished } }

  /// What has changed, at once when there is something, otherwise as soon as there is; `nil` at the end.
  func next() async -> DownloadChanges? {
    while !Task.isCancelled {
      let taken = state.withLock { state -> (changes: [Change], isComplete: Bool)? in
        if state.latest.isEmpty && state.isComplete { return nil }
        defer {
          state.latest.removeAll(keepingCapacity: true)
          state.isComplete = true
        }
        return (Array(state.latest.values), state.isComplete)
      }
      if let taken { return DownloadChanges(statuses: taken.changes.map(\.status), isComplete: taken.isComplete) }
      if isFinished { return nil }
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let now = state.withLock { state in
            if !state.latest.isEmpty || !state.isComplete || state.isFinished || Task.isCancelled { return true }
            state.waiter = continuation
            return false
          }
          if now { continuation.resume() }
        }
      } onCancel: {
        let waiter = state.withLock { state in
          defer { state.waiter = nil }
          return state.waiter
        }
        waiter?.resume()
      }
    }
    return nil
  }
}
