internal import Synchronization

/// Informs the stores of one ledger in this process of each other's changes; the source of
/// ``LedgerStore/changesByOthers``.
package final class LedgerWatchers: Sendable {
  private let watchers = Mutex(OrderedTable<String, AsyncStream<Void>.Continuation>())

  /// Creates watchers for a ledger without open stores.
  package init() {}

  /// Returns the changes by all owners but this one, until ``end(_:)`` is called.
  package func stream(for owner: String) -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    watchers.withLock { $0[owner] = continuation }
    return stream
  }

  /// Informs the other stores of a committed change.
  package func tell(changedBy owner: String) {
    let others = watchers.withLock { watchers in
      watchers.count < 2 ? [] : watchers.filter { $0.key != owner }.map(\.value)
    }
    for other in others { other.yield() }
  }

  /// Informs one store of a change that another process has committed.
  package func tell(_ owner: String) { watchers.withLock { $0[owner] }?.yield() }

  /// Ends the stream of an owner.
  package func end(_ owner: String) { watchers.withLock { $0.removeValue(forKey: owner) }?.finish() }
}
