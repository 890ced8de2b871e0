public import DownpipeCore

/// First come, first served: waiting downloads go in the order in which they were added, over restarts too.
///
/// Priorities play no part; ``PriorityQueue`` looks at them.
public struct FIFO: SchedulingPolicy {
  /// First come, first served.
  public init() {}

  /// The order of arrival.
  public func rank(_ context: RankingContext) -> Rank { Rank().ascending(context.arrival) }
}

extension SchedulingPolicy where Self == FIFO {
  /// First come, first served.
  public static var fifo: FIFO { FIFO() }
}
