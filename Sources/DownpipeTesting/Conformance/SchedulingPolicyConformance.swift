public import DownpipeCore
import Foundation

/// Checks that a scheduling policy keeps the contract of ``/DownpipeCore/SchedulingPolicy``.
///
/// ```swift
/// try await SchedulingPolicyConformance(MyPolicy()).run()
/// ```
public struct SchedulingPolicyConformance: Sendable {
  private let policy: any SchedulingPolicy
  private let limit: Duration
  private let exclusions: [ConformanceExclusion]

  /// Creates a suite for a policy. `limit` is the longest time for a rule; excluded rules are not checked.
  public init(
    _ policy: any SchedulingPolicy, limit: Duration = .hangLimit, excluding exclusions: [ConformanceExclusion] = []
  ) {
    self.policy = policy
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` that lists all broken rules.
  public func run() async throws {
    let report = ConformanceReport("SchedulingPolicyConformance(\(policy.name))", excluding: exclusions, limit: limit)
    let policy = policy
    let table = Self.table
    await report.check("rank-is-pure", "equal contexts have equal ranks") {
      let forwards = table.map { policy.rank($0) }
      let backwards = Array(table.reversed().map { policy.rank($0) }.reversed())
      for (index, context) in table.enumerated() where forwards[index] != backwards[index] {
        throw Deviation("\(context) has two different ranks")
      }
    }
    try report.finish()
  }

  /// Downloads with different properties, including the extremes of each value.
  private static var table: [RankingContext] {
    var table: [RankingContext] = []
    for priority in [Priority.low, .normal, .high, Priority(.min), Priority(.max)] {
      for intent in [Intent.userInitiated, .prefetch, .silent, Intent("conformance")] {
        for size in [nil, 0, 1, 1_000_000, .max] as [Int64?] {
          for created in [0, 1_000_000_000, 4_000_000_000] {
            for arrival in [0, 1, .max] as [Int64] {
              table.append(
                RankingContext(
                  id: DownloadID("conformance-\(table.count)"), priority: priority, intent: intent, arrival: arrival,
                  createdAt: Date(timeIntervalSince1970: TimeInterval(created)), size: ByteCount(size)))
            }
          }
        }
      }
    }
    return table
  }
}
