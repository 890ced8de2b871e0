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
  private struct State: Sendable {
    var latest = OrderedTable<DownloadID, Change>()
    var isComplete = true
    var isFinished = false
    /// Whether the next batch does not wait for the interval.
    var isDue = false
    /// When the reader took the previous batch, or when the buffer was made.
    var previous: Duration
    /// The number of the latest reader, before which earlier ones end.
    var reader: UInt64 = 0

    var isOver: Bool { isFinished || isDue }
    var hasNews: Bool { !latest.isEmpty || !isComplete || isFinished }
  }
  private let state: Monitor<State>
  private let time: any TimeSource
  private let onEnd: @Sendable () -> Void

  init(time: any TimeSource, onEnd: @escaping @Sendable () -> Void) {
    self.time = time
    self.onEnd = onEnd
    state = Monitor(State(previous: time.now))
  }

  deinit { onEnd() }

  func record(_ change: Change, of id: DownloadID) {
    state.update { state in
      if state.latest.count >= Self.capacity, state.latest[id] == nil {
        state.isComplete = false
      } else {
        state.latest[id] = change
      }
    }
  }

  /// Records that changes were left out.
  func recordIncomplete() { state.update { $0.isComplete = false } }

  func finish() { state.update { $0.isFinished = true } }

  /// Delivers the next batch without waiting for the interval.
  func deliver() { state.update { $0.isDue = true } }

  /// Waits for changes, and until `interval` has passed since the previous batch; takes all changes. `nil` at the end.
  func next(every interval: Duration) async -> DownloadChanges? {
    await sleep(until: state.read(\.previous) + interval)
    let batch = await next()
    state.update { $0.previous = time.now }
    return batch
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

  /// Waits until there are changes and takes all of them; `nil` at the end, or if another reader has come.
  private func next() async -> DownloadChanges? {
    let number = state.update { state in
      state.reader += 1
      return state.reader
    }
    do { try await state.wait { $0.hasNews || $0.reader != number } } catch { return nil }
    let taken = state.update { state -> (changes: OrderedTable<DownloadID, Change>, isComplete: Bool)? in
      if state.reader != number || (state.latest.isEmpty && state.isComplete) { return nil }
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
}
