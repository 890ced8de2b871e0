import DownpipeCore
import DownpipeGates
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct CombinedGateTests {
  private struct Failed: Error {}

  private let a = FakeGate(name: "A")
  private let b = FakeGate(name: "B")

  private func set(_ gate: FakeGate, open: Bool) { if open { gate.open() } else { gate.close("no") } }

  @Test(arguments: [true, false], [true, false])
  func followsBothGates(first: Bool, second: Bool) async throws {
    set(a, open: first)
    set(b, open: second)
    let closed = [first ? nil : "A: no", second ? nil : "B: no"].compactMap(\.self)
    let and = GateRule.Verdict.closed(closed.joined(separator: "; and "))
    #expect(await GateWatch(a.and(b)).verdict() == (first && second ? .open : and))
    let or = GateRule.Verdict.closed("A: no; or B: no")
    #expect(await GateWatch(a.or(b)).verdict() == (first || second ? .open : or))
    #expect(await GateWatch(a.not()).verdict() == (first ? .closed("not A: A is open") : .open))
  }

  @Test func changesOfEachGateArrive() async throws {
    let watch = GateWatch(a.or(b))
    #expect(await watch.verdict() == .open)
    await a.watchers(atLeast: 1)
    await b.watchers(atLeast: 1)
    a.close("no")
    #expect(await watch.verdict() == .open)
    b.close("no")
    #expect(await watch.verdict() == .closed("A: no; or B: no"))
    a.open()
    #expect(await watch.verdict() == .open)
  }

  @Test func rulesForEachDownloadAreCombinedForEachDownload() async throws {
    a.publish(.each { $0.intent == .silent ? .closed("A: silent") : .open })
    b.publish(.each { $0.tags.contains("big") ? .closed("B: big") : .open })
    let and = try #require(await GateWatch(a.and(b)).next())
    let or = try #require(await GateWatch(a.or(b)).next())
    let not = try #require(await GateWatch(a.not(because: "only silent ones")).next())
    let both = Candidate(intent: .silent, tags: ["big"])
    #expect(and.verdict(for: both) == .closed("A: silent; and B: big"))
    #expect(and.verdict(for: Candidate(tags: ["big"])) == .closed("B: big"))
    #expect(and.verdict(for: Candidate()) == .open)
    #expect(or.verdict(for: both) == .closed("A: silent; or B: big"))
    #expect(or.verdict(for: Candidate(tags: ["big"])) == .open)
    #expect(not.verdict(for: both) == .open)
    #expect(not.verdict(for: Candidate()) == .closed("not A: only silent ones"))
  }

  @Test func namesAreCombined() {
    let c = ManualGate("C", closed: "for good")
    #expect(a.and(b).name == "A and B")
    #expect(a.and(b).and(c).name == "A and B and C")
    #expect(a.and(b).or(c).name == "(A and B) or C")
    #expect(a.or(b).and(c).id == "(A or B) and C")
    #expect(a.or(b).not().name == "not (A or B)")
    #expect(a.and(c).summary == "C: closed: for good")
    #expect(c.unless(.silent).name == "C")
    #expect(c.unless(.silent).summary == "closed: for good, unless silent")
  }

  @Test func aFailedGateCountsAsOpen() async {
    b.close("no")
    a.endWatching(throwing: Failed())
    #expect(await GateWatch(a.and(b)).verdict() == .closed("B: no"))
    let or = GateWatch(a.or(b))
    // The gate publishes its rule before it fails.
    #expect(await or.verdict() == .open)
    a.close("no")
    let not = GateWatch(a.not())
    #expect(await not.verdict() == .open)
    #expect(await not.verdict() == .open, "its state is not known")
  }

  @Test func theLastRuleOfAGateThatEndsStays() async {
    a.close("no")
    a.endWatching()
    let watch = GateWatch(a.and(b))
    #expect(await watch.verdict() == .closed("A: no"))
    await b.watchers(atLeast: 1)
    b.close("no")
    #expect(await watch.verdict() == .closed("A: no; and B: no"))
  }

  @Test func cancellingEndsAllWatches() async {
    let watch = GateWatch(a.and(b.not()).or(ManualGate()))
    #expect(await watch.verdict() == .open)
    let end = await watch.cancel()
    #expect(throws: CancellationError.self) { try end.get() }
    #expect(a.watchers == 0)
    #expect(b.watchers == 0)
  }

  @Test func exemptionsApplyToAnyGate() async throws {
    let gate = ManualGate(closed: "now").unless(.userInitiated)
    let rule = try #require(await GateWatch(gate).next())
    #expect(rule.verdict(for: Candidate(intent: .userInitiated)) == .open)
    #expect(rule.verdict(for: Candidate(intent: .silent)) == .closed("ManualGate: now"))
    let byTag = ManualGate(closed: "now").unless { $0.tags.contains("free") }
    let other = try #require(await GateWatch(byTag).next())
    #expect(other.verdict(for: Candidate(tags: ["free"])) == .open)
    #expect(other.verdict(for: Candidate()) == .closed("ManualGate: now"))
    try await GateConformance(byTag).run()
  }

  @Test func conform() async throws {
    let gate = ManualGate()
    let change: @Sendable () async throws -> Void = { if gate.isOpen { gate.close("changed") } else { gate.open() } }
    try await GateConformance(gate.and(a), changing: change).run()
    try await GateConformance(gate.or(b), changing: change).run()
    try await GateConformance(gate.not(), changing: change).run()
    try await GateConformance(gate.and(a).or(b.not()).unless(.silent), changing: change).run()
  }
}
