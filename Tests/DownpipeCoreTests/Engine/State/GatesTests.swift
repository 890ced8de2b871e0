import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// The verdicts of the gates as the loop sees them.
@Suite(.endsHangs)
struct GatesTests {
  private let candidate = Candidate(host: "one.example")

  @Test func withoutGatesEverythingMayRun() {
    let gates = Gates([])
    #expect(gates.reason(for: candidate) == nil)
    #expect(gates.reasonToStop(candidate) == nil)
    #expect(!gates.isClosedForAll)
  }

  @Test("before a gate's first report no download starts and none is stopped")
  func beforeTheFirstReport() {
    let gates = Gates([FakeGate(name: "WiFi")])
    #expect(gates.reason(for: candidate)?.text == "WiFi: has not reported yet")
    #expect(gates.reasonToStop(candidate) == nil)
    #expect(gates.isClosedForAll)
  }

  @Test("a gate that ends its watch without a rule holds up nothing: the downloads fail with its name")
  func theEndBeforeTheFirstReport() {
    let gate = FakeGate(name: "WiFi")
    var gates = Gates([FakeGate(), gate])
    _ = gates.report(.open, of: 1)
    #expect(gates.failure == nil)
    let isNews = gates.report(.missing(from: gate), of: 2)
    #expect(isNews && gates.reason(for: candidate) == nil && gates.reasonToStop(candidate) == nil)
    #expect(gates.failure?.code == .invalidPipeline && gates.failure?.stage == "WiFi")
    #expect(!GateRule.missing(from: gate).isSame(as: .open))
    gates.replace(FakeGate(name: "WiFi"))
    #expect(gates.failure == nil && gates.isClosedForAll)
  }

  @Test func everyGateHasToBeOpen() {
    var gates = Gates([FakeGate(name: "one"), FakeGate(name: "two")])
    _ = gates.report(.open, of: 1)
    _ = gates.report(.closed("night"), of: 2)
    #expect(gates.reason(for: candidate)?.text == "night")
    #expect(gates.reasonToStop(candidate)?.text == "night")
    _ = gates.report(.open, of: 2)
    #expect(gates.reason(for: candidate) == nil)
    #expect(!gates.isClosedForAll)
  }

  @Test func aGateThatDecidesForEachIsNotClosedForAll() {
    var gates = Gates([FakeGate()])
    _ = gates.report(.each { $0.host == "one.example" ? .closed("not this one") : .open }, of: 1)
    #expect(gates.reasonToStop(candidate)?.text == "not this one")
    #expect(gates.reasonToStop(Candidate(host: "two.example")) == nil)
    #expect(!gates.isClosedForAll)
    #expect(gates.rules.count == 1)
  }

  @Test func newsIsWhatWasNotSaidBefore() {
    var gates = Gates([FakeGate()])
    func isNews(_ rule: GateRule) -> Bool { gates.report(rule, of: 1) }
    #expect(isNews(.closed("\(gates.watched[0].gate.name): has not reported yet")), "any first report is news")
    #expect(isNews(.open))
    #expect(!isNews(.open), "an equal report is not news")
    #expect(isNews(.each { _ in .open }))
    #expect(isNews(.each { _ in .open }), "a report that cannot be compared may be news")
    #expect(isNews(.closed("a")) && isNews(.closed("b")) && !isNews(.closed("b")))
    #expect(gates.reports == 6)
    let isNewsOfUnknown = gates.report(.closed("c"), of: 7)
    #expect(!isNewsOfUnknown, "there is no such gate")
  }

  @Test func eachGateIsWatchedOnce() {
    var gates = Gates([FakeGate(name: "one"), FakeGate(name: "two")])
    func takeUnwatched() -> [String] { gates.takeUnwatched().map(\.gate.name) }
    #expect(takeUnwatched() == ["one", "two"])
    #expect(takeUnwatched().isEmpty)
    gates.replace(FakeGate(name: "one"))
    #expect(takeUnwatched() == ["one"])
    gates.replace(FakeGate(name: "three"))
    #expect(takeUnwatched() == ["three"])
    #expect(gates.watched.map(\.gate.name) == ["one", "two", "three"], "it keeps its place")
  }

  @Test func aGateThatIsRemovedOrReplacedIsStoppedAndItsReportsDoNotCount() {
    var gates = Gates([FakeGate(name: "one"), FakeGate(name: "two")])
    for gate in gates.watched { _ = gates.report(.closed("no"), of: gate.number) }
    let watched = gates.watched
    let isRemoved = gates.remove(id: "one")
    #expect(isRemoved && watched[0].stop.reason != nil)
    gates.replace(FakeGate(name: "two"))
    #expect(watched[1].stop.reason != nil && gates.watched.count == 1)
    #expect(gates.replacements == 2)
    for gate in watched {
      let isNews = gates.report(.open, of: gate.number)
      #expect(!isNews)
    }
    #expect(gates.isClosedForAll, "the new one has not reported")
    let isUnknown = gates.remove(id: "three")
    #expect(!isUnknown && gates.replacements == 2)
  }
}
