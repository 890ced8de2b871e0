import DownpipeCore
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct GateConformanceTests {
  /// A gate that calls a closure.
  struct ClosureGate: Gate {
    let watching: @Sendable (@escaping @Sendable (GateRule) -> Void) async throws -> Void
    func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws { try await watching(publish) }
  }

  @Test func rightGatesPass() async throws {
    try await GateConformance(FakeGate()).run()
    try await GateConformance(FakeGate(.closed("it is night"))).run()
    try await GateConformance(FakeGate(.each { $0.intent == .silent ? .closed("not silently") : .open })).run()
    // A wrapped gate.
    let inner = FakeGate(.closed("it is night"))
    try await GateConformance(
      ClosureGate { publish in try await inner.watch { publish($0) } }, changing: { inner.open() }
    ).run()
    // A gate that does not change may return immediately.
    try await GateConformance(ClosureGate { $0(.open) }).run()
  }

  @Test func changesAreSeen() async throws {
    let gate = FakeGate()
    try await GateConformance(gate, changing: { gate.close("now") }).run()
  }

  @Test func aGateThatIsSilentIsFound() async throws {
    let gate = ClosureGate { _ in await Watched(false).wait { $0 } }
    let broken = try await brokenRules { try await GateConformance(gate, limit: .seconds(5)).run() }
    #expect(broken.contains("publishes-at-once"))
  }

  @Test func aGateThatReturnsWithoutARuleIsFound() async throws {
    let broken = try await brokenRules { try await GateConformance(ClosureGate { _ in }).run() }
    #expect(broken.contains("publishes-at-once"))
  }

  @Test func aGateThatIgnoresCancellationIsFound() async throws {
    let end = Watched(false)
    let gate = ClosureGate { publish in
      publish(.open)
      await Task { await end.wait { $0 } }.value
    }
    let broken = try await brokenRules { try await GateConformance(gate, limit: .seconds(5)).run() }
    #expect(broken.contains("ends-on-cancellation"))
    end.update { $0 = true }
  }

  @Test func aGateThatClosesWithoutAReasonIsFound() async throws {
    let gate = FakeGate(.each { $0.intent == .silent ? .closed(" ") : .open })
    #expect(try await brokenRules { try await GateConformance(gate).run() } == ["closed-says-why"])
  }

  @Test func verdictsThatChangeByThemselvesAreFound() async throws {
    let calls = Watched(0)
    let gate = FakeGate(
      .each { _ in
        calls.update { count in
          count += 1
          return count.isMultiple(of: 7) ? .open : .closed("not the seventh")
        }
      })
    #expect(try await brokenRules { try await GateConformance(gate).run() } == ["verdicts-are-pure"])
  }

  @Test func aGateForOneWatchOnlyIsFound() async throws {
    let isTaken = Watched(false)
    let gate = ClosureGate { publish in
      let wasTaken = isTaken.update { taken in
        defer { taken = true }
        return taken
      }
      if !wasTaken { publish(.open) }
      await Watched(false).wait { $0 }
    }
    let broken = try await brokenRules { try await GateConformance(gate, limit: .seconds(5)).run() }
    #expect(broken.contains("can-be-watched-again"))
  }

  @Test func changesThatAreNotPublishedAreFound() async throws {
    let broken = try await brokenRules {
      try await GateConformance(FakeGate(), limit: .seconds(5), changing: {}).run()
    }
    #expect(broken.contains("publishes-changes"))
  }
}
