public import DownpipeCore
import Foundation

/// A policy that starts the download with the earliest `deadline` first.
///
/// ```swift
/// let news = DownloadRequest(url).with(\.deadline, .now.addingTimeInterval(600))
/// ```
/// Of downloads with the same deadline, in milliseconds, the one with the highest priority goes first, and of these the
/// one that was added first. Downloads without a deadline go last, in the same order. A download that has missed its
/// deadline keeps its place. While downloads with earlier deadlines are added faster than they finish, the others wait.
public struct EarliestDeadlineFirst: SchedulingPolicy, Hashable {
  /// Creates a policy for the order of deadlines.
  public init() {}

  /// Returns a rank by deadline, then by priority, then by arrival.
  public func rank(_ context: RankingContext) -> Rank {
    // No deadline becomes the last instant that fits into a rank, in the year 10889.
    let deadline = context.deadline ?? Date(timeIntervalSince1970: .infinity)
    return Rank().ascending(deadline).descending(context.priority).ascending(context.arrival)
  }
}

extension SchedulingPolicy where Self == EarliestDeadlineFirst {
  /// The order of deadlines, the earliest first, then of priority and arrival.
  public static var earliestDeadlineFirst: EarliestDeadlineFirst { EarliestDeadlineFirst() }
}
