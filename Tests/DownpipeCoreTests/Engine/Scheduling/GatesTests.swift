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
    var gates = Gates([])
    #expect(gates.reason(for: candidate) == nil)
    #expect(gates.reasonToStop(candidate) == nil)
    #expect(!gates.isClosedForAll)
    let hasNews = gates.takeNews()
    #expect(!hasNews)
  }

  @Test("before a gate's first report no download starts and none is stopped")
  func beforeTheFirstReport() {
    let gates = Gates([FakeGate(name: "WiFi")])
    #expect(gates.reason(for: candidate) == "WiFi: has not reported yet")
    #expect(gates.reasonToStop(candidate) == nil)
    #expect(gates.isClosedForAll)
  }

  @Test func everyGateHasToBeOpen() {
    let gates = Gates([FakeGate(name: "one"), FakeGate(name: "two")])
    gates.watched[0].latest.report(.open)
    gates.watched[1].latest.report(.closed("night"))
    #expect(gates.reason(for: candidate) == "night")
    #expect(gates.reasonToStop(candidate) == "night")
    gates.watched[1].latest.report(.open)
    #expect(gates.reason(for: candidate) == nil)
    #expect(!gates.isClosedForAll)
  }

  @Test func aGateThatDecidesForEachIsNotClosedForAll() {
    let gates = Gates([FakeGate()])
    gates.watched[0].latest.report(.each { $0.host == "one.example" ? .closed("not this one") : .open })
    #expect(gates.reasonToStop(candidate) == "not this one")
    #expect(gates.reasonToStop(Candidate(host: "two.example")) == nil)
    #expect(!gates.isClosedForAll)
    #expect(gates.rules.count == 1)
  }

  @Test func newsIsWhatWasNotSaidBefore() {
    var gates = Gates([FakeGate()])
    func takeNews() -> Bool { gates.takeNews() }
    let latest = gates.watched[0].latest
    #expect(!takeNews())
    latest.report(.closed("\(gates.watched[0].gate.name): has not reported yet"))
    #expect(takeNews(), "any first report is news")
    #expect(!takeNews())
    latest.report(.open)
    #expect(takeNews())
    latest.report(.open)
    #expect(!takeNews(), "an equal report is not news")
    latest.report(.each { _ in .open })
    latest.report(.each { _ in .open })
    #expect(takeNews(), "a report that cannot be compared may be news")
    latest.report(.closed("a"))
    latest.report(.closed("b"))
    #expect(takeNews())
    #expect(!takeNews())
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

  @Test func aGateThatIsRemovedOrReplacedIsStoppedAndThatIsNews() {
    var gates = Gates([FakeGate(name: "one"), FakeGate(name: "two")])
    func takeNews() -> Bool { gates.takeNews() }
    for slot in gates.watched { slot.latest.report(.closed("no")) }
    #expect(takeNews())
    let slots = gates.watched
    let isRemoved = gates.remove(id: "one")
    #expect(isRemoved)
    #expect(slots[0].stop.reason != nil)
    #expect(takeNews(), "the downloads it stopped may run now")
    gates.replace(FakeGate(name: "two"))
    #expect(slots[1].stop.reason != nil)
    #expect(takeNews())
    #expect(gates.watched.count == 1)
    let isUnknown = gates.remove(id: "three")
    #expect(!isUnknown)
    #expect(!takeNews())
  }
}
