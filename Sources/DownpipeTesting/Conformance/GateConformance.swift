public import DownpipeCore

/// Checks that a gate keeps the contract of ``DownpipeCore/Gate``.
///
/// ```swift
/// try await GateConformance(MyGate()).run()
/// ```
public struct GateConformance: Sendable {
  private let gate: any Gate
  private let change: (@Sendable () async throws -> Void)?
  private let limit: Duration
  private let exclusions: [ConformanceExclusion]

  /// Describes what is to be checked.
  ///
  /// - Parameters:
  ///   - gate: the gate.
  ///   - change: makes the gate's answer change, such as by writing to the file that it watches; with it
  ///     the rule about changes is checked.
  ///   - limit: the longest a rule may take, in real time; "at once" means within it.
  ///   - exclusions: rules that are not checked.
  public init(
    _ gate: any Gate, limit: Duration = .seconds(10), excluding exclusions: [ConformanceExclusion] = [],
    changing change: (@Sendable () async throws -> Void)? = nil
  ) {
    self.gate = gate
    self.change = change
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` with all that are broken.
  public func run() async throws {
    let report = ConformanceReport("GateConformance(\(gate.name))", excluding: exclusions, limit: limit)
    await report.check("publishes-at-once", "watching publishes a rule at once") {
      _ = try await watching { rules in await rules.wait { !$0.isEmpty } }
    }
    await report.check("ends-on-cancellation", "cancelling the task ends the watch") {
      _ = try await watching { rules in await rules.wait { !$0.isEmpty } }
      let cancelled = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        try await gate.watch { _ in }
      }
      _ = await cancelled.result
    }
    await report.check("closed-says-why", "a verdict that is closed carries a reason") {
      for rule in try await watching({ rules in await rules.wait { !$0.isEmpty } }) {
        for candidate in Candidate.conformanceTable {
          if case .closed(let reason) = rule.verdict(for: candidate) {
            try expect(reason.contains { !$0.isWhitespace }, "the reason for \(candidate) is empty")
          }
        }
      }
    }
    await report.check("verdicts-are-pure", "a rule gives the same verdict for the same download each time") {
      for rule in try await watching({ rules in await rules.wait { !$0.isEmpty } }) {
        let first = Candidate.conformanceTable.map { rule.verdict(for: $0) }
        let second = Candidate.conformanceTable.reversed().map { rule.verdict(for: $0) }
        try expect(first == second.reversed(), "one rule gave different verdicts for the same downloads")
      }
    }
    await report.check("can-be-watched-again", "each of several watches gets its rule, at once and after another ended")
    {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<3 {
          group.addTask { _ = try await watching { rules in await rules.wait { !$0.isEmpty } } }
        }
        try await group.waitForAll()
      }
    }
    await report.check("publishes-changes", "a rule is published after each change", when: change != nil) {
      _ = try await watching { rules in
        await rules.wait { !$0.isEmpty }
        let before = rules.value.count
        try await change?()
        await rules.wait { $0.count > before }
      }
    }
    try report.finish()
  }

  /// Watches while `body` runs, cancels the watch and waits for its end.
  private func watching(
    _ body: @escaping @Sendable (Watched<[GateRule]>) async throws -> Void
  ) async throws -> [GateRule] {
    let rules = Watched<[GateRule]>([])
    let watch = Task {
      try await gate.watch { rule in rules.update { $0.append(rule) } }
    }
    try await withTaskCancellationHandler {
      defer { watch.cancel() }
      try await body(rules)
    } onCancel: {
      watch.cancel()
    }
    _ = await watch.result
    try expect(!rules.value.isEmpty, "no rule was published")
    return rules.value
  }
}

extension Candidate {
  /// Downloads of all sorts.
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
