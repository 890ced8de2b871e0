public import DownpipeCore

/// Checks that a gate keeps the contract of ``/DownpipeCore/Gate``.
///
/// ```swift
/// try await GateConformance(MyGate()).run()
/// ```
public struct GateConformance: Sendable {
  private let gate: any Gate
  private let change: (@Sendable () async throws -> Void)?
  private let limit: Duration
  private let exclusions: [ConformanceExclusion]

  /// Creates a suite.
  ///
  /// - Parameters:
  ///   - gate: The gate to check.
  ///   - change: Makes the gate change its rule, for example by writing to the file that it watches. Without it the
  ///     rule about changes is not checked.
  ///   - limit: The longest time for a rule, in real time; "immediately" means within it.
  ///   - exclusions: Rules that are not checked, each with its reason.
  public init(
    _ gate: any Gate, limit: Duration = .hangLimit, excluding exclusions: [ConformanceExclusion] = [],
    changing change: (@Sendable () async throws -> Void)? = nil
  ) {
    self.gate = gate
    self.change = change
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` that lists all broken rules.
  public func run() async throws {
    let report = ConformanceReport("GateConformance(\(gate.name))", excluding: exclusions, limit: limit)
    let first = Watch(gate)
    defer { first.cancel() }
    await report.check("publishes-at-once", "a watch publishes a rule immediately") { try await first.waitForRule() }
    report.build(on: "publishes-at-once")
    await report.check("ends-on-cancellation", "cancelling the task ends the watch") {
      try await first.end()
      let cancelled = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        try await gate.watch { _ in }
      }
      _ = await cancelled.result
    }
    let rules = first.rules
    await report.check("closed-says-why", "a closed verdict has a reason") {
      for rule in rules {
        for candidate in Candidate.conformanceTable {
          if case .closed(let reason) = rule.verdict(for: candidate) {
            try expect(reason.contains { !$0.isWhitespace }, "the reason for \(candidate) is empty")
          }
        }
      }
    }
    await report.check("verdicts-are-pure", "a rule gives equal verdicts for equal downloads") {
      for rule in rules {
        let first = Candidate.conformanceTable.map { rule.verdict(for: $0) }
        let second = Candidate.conformanceTable.reversed().map { rule.verdict(for: $0) }
        try expect(first == second.reversed(), "one rule gave different verdicts for the same downloads")
      }
    }
    report.build(on: "ends-on-cancellation")
    await report.check("can-be-watched-again", "every watch gets a rule, at the same time as another and after it") {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<3 {
          group.addTask { try await Self.watching(gate) { try await $0.waitForRule() } }
        }
        try await group.waitForAll()
      }
    }
    report.build(on: "can-be-watched-again")
    await report.check("publishes-changes", "a rule is published after each change", when: change != nil) {
      try await Self.watching(gate) { watch in
        try await watch.waitForRule()
        let before = watch.rules.count
        try await change?()
        try await watch.waitForRule(after: before)
      }
    }
    try report.finish()
  }

  /// Watches the gate while `body` runs, then cancels the watch and waits for its end.
  private static func watching(_ gate: any Gate, _ body: (Watch) async throws -> Void) async throws {
    let watch = Watch(gate)
    do {
      try await body(watch)
    } catch {
      watch.cancel()
      throw error
    }
    try await watch.end()
  }

  /// One watch of a gate, in its own task.
  private struct Watch: Sendable {
    private struct State {
      var rules: [GateRule] = []
      var hasEnded = false
    }

    private let state: Watched<State>
    private let task: Task<Void, any Error>

    init(_ gate: any Gate) {
      let state = Watched(State())
      self.state = state
      task = Task {
        defer { state.update { $0.hasEnded = true } }
        try await gate.watch { rule in state.update { $0.rules.append(rule) } }
      }
    }

    var rules: [GateRule] { state.value.rules }

    /// Waits for a rule after the first `count` rules.
    func waitForRule(after count: Int = 0) async throws {
      await state.wait { $0.rules.count > count || $0.hasEnded }
      if rules.count > count { return }
      try Task.checkCancellation()
      try await task.value
      throw Deviation("the watch ended without a rule")
    }

    func cancel() { task.cancel() }

    /// Cancels the watch and waits for its end.
    func end() async throws {
      task.cancel()
      await state.wait(until: \.hasEnded)
    }
  }
}

extension Candidate {
  /// Downloads with different properties.
  static var conformanceTable: [Candidate] {
    var table: [Candidate] = []
    for intent in [Intent.userInitiated, .prefetch, .silent, Intent("conformance")] {
      for priority in [Priority.low, .normal, .high, Priority(.min), Priority(.max)] {
        for host in ["", "example.org", "example.org:8080", "[::1]:443"] {
          for tags in [[], ["film"], ["film", "music"]] as [Set<String>] {
            table.append(Candidate(host: host, intent: intent, priority: priority, tags: tags))
          }
        }
      }
    }
    return table
  }
}
