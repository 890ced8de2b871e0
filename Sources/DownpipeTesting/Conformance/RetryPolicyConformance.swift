public import DownpipeCore
import Foundation

/// Checks that a retry policy keeps the contract of ``/DownpipeCore/RetryPolicy``.
///
/// ```swift
/// try await RetryPolicyConformance(MyPolicy()).run()
/// ```
public struct RetryPolicyConformance: Sendable {
  private let policy: any RetryPolicy
  private let limit: Duration
  private let exclusions: [ConformanceExclusion]

  /// Creates a suite for a policy. `limit` is the longest time for a rule; excluded rules are not checked.
  public init(
    _ policy: any RetryPolicy, limit: Duration = .hangLimit, excluding exclusions: [ConformanceExclusion] = []
  ) {
    self.policy = policy
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` that lists all broken rules.
  public func run() async throws {
    let report = ConformanceReport("RetryPolicyConformance(\(policy.name))", excluding: exclusions, limit: limit)
    let policy = policy
    await report.check("decide-is-pure", "equal failures have equal decisions: randomness comes from the failure") {
      for failure in Self.failures(consecutive: [1, 2, 5]) {
        let decisions = Set((0..<3).map { _ in policy.decide(failure) })
        try expect(decisions.count == 1, "\(Self.describe(failure)) has the decisions \(decisions)")
      }
    }
    await report.check("delays-are-sensible", "a delay is not negative and at most 366 days") {
      for failure in Self.failures(consecutive: [1, 2, 3, 10, 64, 1000, 1_000_000]) {
        switch policy.decide(failure) {
        case .resume(let delay), .restart(let delay), .refresh(let delay), .wait(_, let delay):
          try expect(
            delay >= .zero && delay <= .seconds(366 * 86_400), "\(Self.describe(failure)): the delay is \(delay)")
        case .giveUp, .giveBack: continue
        }
      }
    }
    try report.finish()
  }

  private static func describe(_ failure: Failure) -> String {
    "“\(failure.error)”, consecutive failure number \(failure.consecutive), random \(failure.random)"
  }

  /// Failures with every code and many statuses.
  private static func failures(consecutive: [Int]) -> [Failure] {
    let codes: [DownloadError.Code] = [
      .network, .offline, .hostNotFound, .tls, .timedOut, .invalidResponse, .tooManyRedirects, .contentChanged,
      .sizeChanged, .unproven, .wrongRange, .wrongRangeEnd, .unreadableRange, .multipartRange, .rangeIgnored,
      .rangeRefused,
      .rangeNotSatisfiable, .wrongContentCoding, .linkExpired, .lengthMismatch, .digestMismatch, .pieceMismatch,
      .damaged, .noSpace,
      .inUse,
      .permission, .storage, .alreadyExists, .unsafePath, .tooLarge, .unsupportedURL, .invalidRequest,
      .invalidPipeline, .processing, .ledger, .cancelled, .removed, .shutDown, .notOwner, .init("conformance"),
    ]
    let statuses = [
      204, 300, 304, 400, 401, 403, 404, 407, 408, 409, 410, 412, 416, 418, 421, 423, 425, 429, 451, 500, 501, 502,
      503, 504, 507, 511, 522, 599,
    ]
    let now = Date(timeIntervalSince1970: 1_000_000_000)
    let waits: [RetryAfter?] = [
      nil, .seconds(0), .seconds(30), .seconds(.max), .date(now.addingTimeInterval(-60)),
      .date(now.addingTimeInterval(60)), .date(.distantFuture),
    ]
    var errors = codes.map { DownloadError($0, "conformance") }
    for status in statuses {
      for wait in waits {
        errors.append(DownloadError(.httpStatus, "conformance", httpStatus: status, retryAfter: wait))
      }
    }
    return errors.flatMap { error in
      consecutive.flatMap { count in
        [0, 0.25, 0.5, 1.0.nextDown].map { random in
          Failure(error: error, consecutive: count, attempts: count, random: random, now: now)
        }
      }
    }
  }
}
