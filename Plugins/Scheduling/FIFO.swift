public import DownpipeCore

/// A policy that starts downloads in the order in which they were added, across restarts.
///
/// It ignores priorities; see ``PriorityQueue``.
public struct FIFO: SchedulingPolicy, Hashable {
  /// Creates a policy for the order of arrival.
  public init() {}

  /// Returns a rank by arrival.
  public func rank(_ context: RankingContext) -> Rank { Rank().ascending(context.arrival) }
}

extension SchedulingPolicy where Self == FIFO {
  /// The order of arrival.
  public static var fifo: FIFO { FIFO() }
}
