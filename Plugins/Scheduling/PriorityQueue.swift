public import DownpipeCore

/// The highest priority first; among equals, first come, first served.
///
/// A stream of urgent downloads can hold back the others for as long as it lasts.
public struct PriorityQueue: SchedulingPolicy {
  /// The highest priority first.
  public init() {}

  /// Priority, then the order of arrival.
  public func rank(_ context: RankingContext) -> Rank {
    Rank().descending(context.priority).ascending(context.arrival)
  }
}

extension SchedulingPolicy where Self == PriorityQueue {
  /// The highest priority first; among equals, first come, first served.
  public static var priorityQueue: PriorityQueue { PriorityQueue() }
}
