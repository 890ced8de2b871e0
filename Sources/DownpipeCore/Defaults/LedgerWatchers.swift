internal import Synchronization

/// Tells the stores of one ledger in this process of each other's changes: what ``LedgerStore/changesByOthers`` yields.
package final class LedgerWatchers: Sendable {
  private let watchers = Mutex<[String: AsyncStream<Void>.Continuation]>([:])

  /// A ledger without stores.
  package init() {}

  /// The changes by others than an owner, until ``end(_:)``.
  package func stream(for owner: String) -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    watchers.withLock { $0[owner] = continuation }
    return stream
  }

  /// Tells the others of a change that is committed.
  package func tell(changedBy owner: String) {
    let others = watchers.withLock { watchers in
      watchers.count < 2 ? [] : watchers.filter { $0.key != owner }.map(\.value)
    }
    for other in others { other.yield() }
  }

  /// Ends the stream of an owner.
  package func end(_ owner: String) { watchers.withLock { $0.removeValue(forKey: owner) }?.finish() }
}
