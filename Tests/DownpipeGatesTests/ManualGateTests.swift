import DownpipeCore
import DownpipeGates
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct ManualGateTests {
  @Test func isOpenByDefault() async {
    let gate = ManualGate()
    #expect(gate.isOpen)
    #expect(gate.reason == nil)
    #expect(gate.summary == "open")
    #expect(gate.name == "ManualGate")
    #expect(await GateWatch(gate).verdict() == .open)
  }

  @Test func startsClosedWithAReason() async {
    let gate = ManualGate("QuietHours", closed: "it is night")
    #expect(!gate.isOpen)
    #expect(gate.summary == "closed: it is night")
    #expect(await GateWatch(gate).verdict() == .closed("QuietHours: it is night"))
  }

  @Test func publishesEachChange() async {
    let gate = ManualGate()
    let watch = GateWatch(gate)
    #expect(await watch.verdict() == .open)
    gate.close("lunch")
    #expect(await watch.verdict() == .closed("ManualGate: lunch"))
    gate.close("a long lunch")
    #expect(await watch.verdict() == .closed("ManualGate: a long lunch"))
    gate.open()
    #expect(await watch.verdict() == .open)
  }

  @Test func anUnchangedStateIsNotPublished() async {
    let gate = ManualGate()
    let watch = GateWatch(gate)
    #expect(await watch.verdict() == .open)
    gate.open()
    gate.open()
    gate.close("now")
    #expect(await watch.verdict() == .closed("ManualGate: now"))
  }

  @Test func everyWatcherGetsChangesAndALateOneTheCurrentRule() async {
    let gate = ManualGate()
    let first = GateWatch(gate)
    let second = GateWatch(gate)
    #expect(await first.verdict() == .open)
    #expect(await second.verdict() == .open)
    gate.close("all of you")
    #expect(await first.verdict() == .closed("ManualGate: all of you"))
    #expect(await second.verdict() == .closed("ManualGate: all of you"))
    #expect(await GateWatch(gate).verdict() == .closed("ManualGate: all of you"))
  }

  @Test func copiesAreTheSameGate() async {
    let gate = ManualGate()
    let copy = gate
    copy.close("by the copy")
    #expect(gate.reason == "by the copy")
    #expect(await GateWatch(gate).verdict() == .closed("ManualGate: by the copy"))
  }

  @Test func cancellingEndsTheWatchOnly() async {
    let gate = ManualGate()
    let first = GateWatch(gate)
    let second = GateWatch(gate)
    #expect(await first.verdict() == .open)
    #expect(await second.verdict() == .open)
    let end = await first.cancel()
    #expect(throws: CancellationError.self) { try end.get() }
    gate.close("still heard")
    #expect(await second.verdict() == .closed("ManualGate: still heard"))
    #expect(await first.next() == nil)
  }

  @Test func theLastRuleArrivesAfterManyFastChanges() async {
    let gate = ManualGate()
    let watch = GateWatch(gate)
    await withTaskGroup { group in
      for number in 0..<8 {
        group.addTask {
          for turn in 0..<200 {
            gate.close("\(number) \(turn)")
            gate.open()
          }
        }
      }
    }
    gate.close("the end")
    var verdict = await watch.verdict()
    while let seen = verdict, seen != .closed("ManualGate: the end") { verdict = await watch.verdict() }
    #expect(verdict == .closed("ManualGate: the end"))
  }

  @Test func conforms() async throws {
    let gate = ManualGate()
    try await GateConformance(gate) { if gate.isOpen { gate.close("changed") } else { gate.open() } }.run()
    try await GateConformance(ManualGate("Closed", closed: "for good")).run()
  }
}
