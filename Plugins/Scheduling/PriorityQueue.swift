public import DownpipeCore

/// A policy that starts the download with the highest priority first, and downloads of the same priority in the order
/// in which they were added.
///
/// A continuous stream of urgent downloads holds back all others.
public struct PriorityQueue: SchedulingPolicy {
  /// Creates a policy for the order of priority.
  public init() {}

  /// Returns a rank by priority, then by arrival.
  public func rank(_ context: RankingContext) -> Rank {
    Rank().descending(context.priority).ascending(context.arrival)
  }
}

extension SchedulingPolicy where Self == PriorityQueue {
  /// The order of priority, then of arrival.
  public static var priorityQueue: PriorityQueue { PriorityQueue() }
}
