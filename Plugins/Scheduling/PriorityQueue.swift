public import DownpipeCore
import Foundation

/// A policy that starts the download with the highest priority first, and downloads of the same priority in the order
/// in which they were added.
///
/// ```swift
/// PriorityQueue()
/// PriorityQueue(ageing: .seconds(36))    // `.high` (100) is an hour ahead of `.normal` (0)
/// ```
/// Without ageing, a continuous stream of urgent downloads holds back all others.
///
/// With ageing, a download of priority *p* ranks as if it had been added *p* × ageing earlier. A rank does not change
/// while a download waits, so ageing costs nothing. The wait of a download is bounded: if *highest* is the highest
/// priority of all downloads, **a download that is added later than (*highest* − *p*) × ageing after a download of
/// priority *p* never goes before it**. The bound applies to downloads that may both start; limits, gates and retries
/// can delay a download for longer, and a start by hand ignores the order. The times are those at which the downloads
/// were added, by the system's calendar.
public struct PriorityQueue: SchedulingPolicy, Hashable {
  /// The head start for each level of priority; `nil` for none, so that the priority alone decides.
  public let ageing: Duration?

  /// Creates a policy for the order of priority.
  ///
  /// - Parameter ageing: How much earlier a download ranks for each level of its priority, in whole microseconds. The
  ///   levels of ``/DownpipeCore/Priority/normal`` and ``/DownpipeCore/Priority/high`` differ by 100. `nil` means
  ///   without ageing. With zero, or a negative duration, priorities have no effect. More than a year counts as a year.
  public init(ageing: Duration? = nil) {
    self.ageing = ageing.map { .microseconds(min(max(0, $0.microseconds), Self.longest)) }
  }

  /// The ageing as text; empty without ageing.
  public var summary: String {
    ageing.map { "each level counts as \($0 / .seconds(1)) s of waiting" } ?? ""
  }

  /// Returns a rank by priority and time of addition, then by arrival.
  public func rank(_ context: RankingContext) -> Rank {
    guard let ageing else { return Rank().descending(context.priority).ascending(context.arrival) }
    // Counted from the highest level there is, so that no summand is negative.
    let levels = Int64(Int16.max) - Int64(context.priority.rawValue)
    let added = Self.microseconds(since1970: context.createdAt.timeIntervalSince1970)
    return Rank().ascending(added + levels * ageing.microseconds).ascending(context.arrival)
  }

  /// A year in microseconds. 65,536 levels of it, and a date before the year 10,000, fit into 64 bits.
  private static let longest: Int64 = 365 * 86_400 * 1_000_000

  private static func microseconds(since1970 seconds: Double) -> Int64 {
    // NaN compares as false and counts as 1970.
    seconds > 0 ? Int64(min(seconds, 250_000_000_000) * 1_000_000) : 0
  }
}

extension Duration {
  /// The whole microseconds, as far as 64 bits hold them.
  fileprivate var microseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
    guard !overflow else { return seconds < 0 ? .min : .max }
    let (sum, isTooMuch) = product.addingReportingOverflow(attoseconds / 1_000_000_000_000)
    return isTooMuch ? (seconds < 0 ? .min : .max) : sum
  }
}

extension SchedulingPolicy where Self == PriorityQueue {
  /// The order of priority, then of arrival.
  public static var priorityQueue: PriorityQueue { PriorityQueue() }

  /// The order of priority, in which a level of priority counts as much as `ageing` of waiting.
  public static func priorityQueue(ageing: Duration?) -> PriorityQueue { PriorityQueue(ageing: ageing) }
}
