internal import Synchronization

/// A batch of changes: the downloads that changed since the previous batch, with their latest statuses; see
/// ``Downloader/changes(every:)``.
public struct DownloadChanges: Sendable {
  /// The latest status of each changed download, in no particular order.
  public let statuses: [DownloadStatus]
  /// The ids of the downloads that were removed.
  public let removed: [DownloadID]
  /// Whether the batch has every change; `false` if some were left out: if more than 10,000 downloads changed, or if
  /// another process that uses the ledger has changed downloads. Read ``Downloader/statuses(_:)`` then.
  public let isComplete: Bool
}

/// Collects changes for one reader: the latest status of each download, for at most 10,000 downloads.
final class ChangeBuffer: Sendable {
  /// A change. The status of a run is computed when the reader takes the batch, not with each change.
  enum Change: Sendable {
    /// Indirect, because most changes are of a run: a status takes half a kilobyte.
    indirect case status(DownloadStatus)
    case run(Run)
    case removed

    var status: DownloadStatus? {
      switch self {
      case .status(let status): status
      case .run(let run): run.status
      case .removed: nil
      }
    }
  }

  static let capacity = 10_000
  private typealias Waiter = CheckedContinuation<Void, Never>
  private struct State {
    var latest = OrderedTable<DownloadID, Change>()
    var isComplete = true
    var isFinished = false
    /// Whether the next batch does not wait for the interval.
    var isDue = false
    /// When the reader took the previous batch, or when the buffer was made.
    var previous: Duration
    /// Waits for a change.
    var reader: Waiter?
    /// Waits for the end, while the reader sleeps.
    var ender: Waiter?

    var isOver: Bool { isFinished || isDue }
    var hasNews: Bool { !latest.isEmpty || !isComplete || isFinished }
  }
  private let state: Mutex<State>
  private let time: any TimeSource
  private let onEnd: @Sendable () -> Void

  init(time: any TimeSource, onEnd: @escaping @Sendable () -> Void) {
    self.time = time
    self.onEnd = onEnd
    state = Mutex(State(previous: time.now))
  }

  deinit { onEnd() }

  func record(_ change: Change, of id: DownloadID) {
    tell { state in
      if state.latest.count >= Self.capacity, state.latest[id] == nil {
        state.isComplete = false
      } else {
        state.latest[id] = change
      }
    }
  }

  /// Records that changes were left out.
  func recordIncomplete() { tell { $0.isComplete = false } }

  func finish() {
    tell { $0.isFinished = true }
    resume(\.ender)
  }

  /// Delivers the next batch without waiting for the interval.
  func deliver() {
    state.withLock { $0.isDue = true }
    resume(\.ender)
  }

  private func tell(_ change: (inout State) -> Void) {
    let reader = state.withLock { state in
      change(&state)
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume()
  }

  /// Waits for changes, and until `interval` has passed since the previous batch; takes all changes. `nil` at the end.
  func next(every interval: Duration) async -> DownloadChanges? {
    await sleep(until: state.withLock { $0.previous } + interval)
    let batch = await next()
    state.withLock { $0.previous = time.now }
    return batch
  }

  /// Sleeps until the instant or the end, or until a batch is due: the last batch is delivered without delay.
  private func sleep(until instant: Duration) async {
    guard time.now < instant, !state.withLock({ $0.isOver }) else { return }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [time] in try? await time.sleep(until: instant, purpose: .changes) }
      group.addTask { await self.wait(in: \.ender) { $0.isOver } }
      await group.next()
      group.cancelAll()
    }
  }

  /// Waits until there are changes and takes all of them; `nil` at the end.
  private func next() async -> DownloadChanges? {
    await wait(in: \.reader) { $0.hasNews }
    guard !Task.isCancelled else { return nil }
    let taken = state.withLock { state -> (changes: OrderedTable<DownloadID, Change>, isComplete: Bool)? in
      if state.latest.isEmpty && state.isComplete { return nil }
      defer {
        // The next batch is probably as large.
        state.latest = OrderedTable(minimumCapacity: state.latest.count)
        state.isComplete = true
        state.isDue = false
      }
      return (state.latest, state.isComplete)
    }
    guard let taken else { return nil }
    var statuses: [DownloadStatus] = []
    var removed: [DownloadID] = []
    statuses.reserveCapacity(taken.changes.count)
    for (id, change) in taken.changes {
      if let status = change.status { statuses.append(status) } else { removed.append(id) }
    }
    return DownloadChanges(statuses: statuses, removed: removed, isComplete: taken.isComplete)
  }

  /// Waits until the waiter is resumed or the task is cancelled; returns at once if the condition holds.
  private func wait(
    in slot: any WritableKeyPath<State, Waiter?> & Sendable, unless isOver: @Sendable (State) -> Bool
  ) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // A second reader takes the place of the first one, which ends.
        let released = state.withLock { state -> Waiter? in
          if isOver(state) || Task.isCancelled { return continuation }
          defer { state[keyPath: slot] = continuation }
          return state[keyPath: slot]
        }
        released?.resume()
      }
    } onCancel: {
      resume(slot)
    }
  }

  private func resume(_ slot: any WritableKeyPath<State, Waiter?> & Sendable) {
    let waiter = state.withLock { state in
      defer { state[keyPath: slot] = nil }
      return state[keyPath: slot]
    }
    waiter?.resume()
  }
}
