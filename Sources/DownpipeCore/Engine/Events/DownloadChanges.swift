internal import Synchronization

/// A batch of changes: the downloads that changed since the previous batch, with their latest statuses; see
/// ``Downloader/changes(every:)``.
public struct DownloadChanges: Sendable {
  /// The latest status of each changed download, in no particular order.
  public let statuses: [DownloadStatus]
  /// The ids of the downloads that were removed.
  public let removed: [DownloadID]
  /// Whether the batch has every change; `false` if more than 10,000 downloads changed and some were left out. Read
  /// ``Downloader/statuses(_:)`` then.
  public let isComplete: Bool
}

/// Collects changes for one reader: the latest status of each download, for at most 10,000 downloads.
final class ChangeBuffer: Sendable {
  /// A change. The status of a run is computed when the reader takes the batch, not with each change.
  enum Change: Sendable {
    case status(DownloadStatus)
    case run(Run)
    case removed

    var status: DownloadStatus? {
      switch self {
      case .status(let status): status
      case .run(let run): run.status
      case .removed: nil
      }
    }
    var isRemoval: Bool { if case .removed = self { true } else { false } }
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

  /// Records that changes were left out.
  func recordIncomplete() {
    let waiter = state.withLock { state in
      state.isComplete = false
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

  /// Waits until there are changes and takes all of them; `nil` at the end.
  func next() async -> DownloadChanges? {
    while !Task.isCancelled {
      let taken = state.withLock { state -> (changes: [DownloadID: Change], isComplete: Bool)? in
        if state.latest.isEmpty && state.isComplete { return nil }
        defer {
          state.latest = [:]
          state.isComplete = true
        }
        return (state.latest, state.isComplete)
      }
      if let taken {
        return DownloadChanges(
          statuses: taken.changes.values.compactMap(\.status),
          removed: taken.changes.filter { $0.value.isRemoval }.map(\.key), isComplete: taken.isComplete)
      }
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
