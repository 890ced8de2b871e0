import DownpipeCore
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct SchedulingPolicyConformanceTests {
  @Test func rightPoliciesPass() async throws {
    try await SchedulingPolicyConformance(FakeSchedulingPolicy()).run()
    try await SchedulingPolicyConformance(
      FakeSchedulingPolicy { Rank().descending($0.priority).ascending($0.arrival) }
    ).run()
  }

  @Test func aPolicyThatCountsItsCallsIsFound() async throws {
    let calls = Watched<UInt64>(0)
    let policy = FakeSchedulingPolicy { _ in
      Rank().appending(
        calls.update { count in
          count += 1
          return count
        }, bits: 64)
    }
    #expect(try await brokenRules { try await SchedulingPolicyConformance(policy).run() } == ["rank-is-pure"])
  }

  @Test("equal ranks are allowed, and so is the latest first")
  func noOrderIsDemanded() async throws {
    try await SchedulingPolicyConformance(FakeSchedulingPolicy { Rank().descending($0.priority) }).run()
    let latest = FakeSchedulingPolicy { Rank().appending(.max - UInt64($0.arrival), bits: 64) }
    try await SchedulingPolicyConformance(latest).run()
  }
}

@Suite(.endsHangs)
struct AdmissionPolicyConformanceTests {
  @Test func rightPoliciesPass() async throws {
    try await AdmissionPolicyConformance(FakeAdmissionPolicy()).run()
    try await AdmissionPolicyConformance(
      FakeAdmissionPolicy(maximumConcurrent: 3, maximumPerHost: 2) { candidate, running in
        if running.total >= 3 { return .full("3 at once") }
        return running.perHost[candidate.host, default: 0] >= 2 ? .hostFull("2 from \(candidate.host)") : .admitted
      }
    ).run()
  }

  struct Flaw: Sendable, CustomTestStringConvertible {
    let rule: String
    let policy: @Sendable () -> FakeAdmissionPolicy
    var testDescription: String { rule }
  }

  @Test(arguments: [
    Flaw(rule: "admit-is-pure") {
      let calls = Watched(0)
      return FakeAdmissionPolicy { _, _ in
        calls.update { count in
          count += 1
          return count.isMultiple(of: 2) ? .admitted : .refused("not yet")
        }
      }
    },
    Flaw(rule: "refusal-is-monotone") {
      FakeAdmissionPolicy { _, running in running.total == 5 ? .refused("not beside five") : .admitted }
    },
    Flaw(rule: "something-may-run") { FakeAdmissionPolicy { _, _ in .refused("never") } },
    Flaw(rule: "any-size-may-run") {
      FakeAdmissionPolicy { candidate, _ in candidate.size.bytes ?? 0 > 1_000 ? .refused("too large") : .admitted }
    },
    Flaw(rule: "refusal-says-why") {
      FakeAdmissionPolicy { _, running in running.total < 5 ? .admitted : .refused("") }
    },
    Flaw(rule: "full-holds-for-all") {
      FakeAdmissionPolicy { candidate, running in
        running.total >= 2 && candidate.intent == .silent ? .full("silent ones wait") : .admitted
      }
    },
    Flaw(rule: "host-full-holds-for-the-host") {
      FakeAdmissionPolicy { candidate, running in
        running.perHost[candidate.host, default: 0] >= 2 && candidate.priority < .high ? .hostFull("2") : .admitted
      }
    },
    Flaw(rule: "maximum-is-kept") { FakeAdmissionPolicy(maximumConcurrent: 3) },
    Flaw(rule: "maximum-is-kept") { FakeAdmissionPolicy(maximumPerHost: 3) },
  ])
  func aFlawIsFound(_ flaw: Flaw) async throws {
    let broken = try await brokenRules { try await AdmissionPolicyConformance(flaw.policy()).run() }
    #expect(broken == [flaw.rule])
  }
}

@Suite(.endsHangs)
struct RetryPolicyConformanceTests {
  @Test func rightPoliciesPass() async throws {
    try await RetryPolicyConformance(FakeRetryPolicy()).run()
    try await RetryPolicyConformance(
      FakeRetryPolicy(deciding: { $0.consecutive < 5 ? .resume(after: .seconds($0.random)) : .giveUp })
    ).run()
    try await RetryPolicyConformance(Retry()).run()
  }

  @Test func decisionsByChanceOfItsOwnAreFound() async throws {
    let calls = Watched(0)
    let policy = FakeRetryPolicy(deciding: { failure in
      guard failure.consecutive < 5 else { return .giveUp }
      return .resume(
        after: .seconds(
          calls.update { count in
            count += 1
            return count
          } % 100))
    })
    #expect(try await brokenRules { try await RetryPolicyConformance(policy).run() } == ["decide-is-pure"])
  }

  @Test(arguments: [Duration.seconds(-1), .seconds(400 * 86_400)])
  func oddDelaysAreFound(_ delay: Duration) async throws {
    let policy = FakeRetryPolicy(deciding: { $0.consecutive < 5 ? .restart(after: delay) : .giveUp })
    #expect(try await brokenRules { try await RetryPolicyConformance(policy).run() } == ["delays-are-sensible"])
  }

  @Test("a policy that retries without limit passes")
  func aPolicyThatNeverGivesUpPasses() async throws {
    try await RetryPolicyConformance(FakeRetryPolicy(deciding: { _ in .resume(after: .seconds(1)) })).run()
  }
}
