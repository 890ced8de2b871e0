import DownpipeTesting
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// The downloads that one lease takes.
@Suite(.endsHangs)
struct LeaseSelectorTests {
  private func limit(_ count: Int) -> FakeAdmissionPolicy {
    FakeAdmissionPolicy { _, running in running.total < count ? .admitted : .full("\(count)") }
  }

  @Test("a taken download counts for the next candidates of the same lease")
  func limitsHoldWithinOneLease() async throws {
    let fixture = try await RunFixture()
    var slots = Slots()
    _ = slots.insert(try fixture.run("a"))
    let selector = LeaseSelector(limits: AdmissionLimits([limit(3)]), rules: [], slots: slots, most: .max, now: .zero)
    let candidate = Candidate(host: "one.example")
    #expect((0..<4).map { _ in selector.select(candidate) } == [.take, .take, .stop, .stop])
  }

  @Test func aFullHostLeavesRoomForOthers() {
    let perHost = FakeAdmissionPolicy { candidate, running in
      running.perHost[candidate.host] == nil ? .admitted : .hostFull("one")
    }
    let selector = LeaseSelector(
      limits: AdmissionLimits([perHost, limit(3)]), rules: [], slots: Slots(), most: .max, now: .zero)
    #expect(selector.select(Candidate(host: "one")) == .take)
    #expect(selector.select(Candidate(host: "one")) == .skip)
    #expect(selector.select(Candidate(host: "two")) == .take)
    #expect(selector.select(Candidate(host: "three")) == .take)
    #expect(selector.select(Candidate(host: "four")) == .stop)
  }

  @Test func aRefusedCandidateTakesNoPlace() {
    let picky = FakeAdmissionPolicy { candidate, _ in candidate.tags.contains("no") ? .refused("no") : .admitted }
    let selector = LeaseSelector(
      limits: AdmissionLimits([limit(1), picky]), rules: [], slots: Slots(), most: .max, now: .zero)
    #expect(selector.select(Candidate(tags: ["no"])) == .skip)
    #expect(selector.select(Candidate()) == .take)
    #expect(selector.select(Candidate()) == .stop)
  }

  @Test func aClosedGateHoldsAndNoPolicyIsAsked() {
    let policy = limit(5)
    let rule = GateRule.each { $0.host == "shut" ? .closed("shut") : .open }
    let selector = LeaseSelector(
      limits: AdmissionLimits([policy]), rules: [.open, rule], slots: Slots(), most: .max, now: .zero)
    #expect(selector.select(Candidate(host: "shut")) == .hold(until: nil))
    #expect(policy.questions.isEmpty)
    #expect(selector.select(Candidate(host: "open")) == .take)
  }

  @Test func whileDescriptorsAreShortTheCeilingCounts() async throws {
    let fixture = try await RunFixture()
    var slots = Slots()
    for index in 0..<5 { _ = slots.insert(try fixture.run(DownloadID("d\(index)"))) }
    slots.ranOutOfDescriptors()
    for run in slots.ranked.dropFirst(1) { slots.free(run) }
    #expect(slots.ceiling == 2)
    let selector = LeaseSelector(limits: AdmissionLimits([limit(100)]), rules: [], slots: slots, most: .max, now: .zero)
    #expect(selector.select(Candidate()) == .take)
    #expect(selector.select(Candidate()) == .stop)
  }

  @Test func theFirstRefusalIsTheReason() {
    let limits = AdmissionLimits([limit(1), FakeAdmissionPolicy { _, _ in .refused("never") }])
    var running = RunningDownloads()
    #expect(limits.refusal(Candidate(), beside: running, at: .zero)?.text == "never")
    running.insert(Candidate())
    #expect(limits.refusal(Candidate(), beside: running, at: .zero)?.text == "1")
    #expect(AdmissionLimits([]).refusal(Candidate(), beside: running, at: .zero) == nil)
  }
}
