public import DownpipeCore

/// A policy that starts the download that was added last first, as for the images of a list that the user scrolls.
///
/// It ignores priorities. While downloads are added faster than they finish, the oldest ones wait.
public struct LIFO: SchedulingPolicy, Hashable {
  /// Creates a policy for the reverse order of arrival.
  public init() {}

  /// Returns a rank by arrival, the latest first.
  public func rank(_ context: RankingContext) -> Rank { Rank().descending(context.arrival) }
}

extension SchedulingPolicy where Self == LIFO {
  /// The reverse order of arrival.
  public static var lifo: LIFO { LIFO() }
}
