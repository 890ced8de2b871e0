public import DownpipeCore
import Synchronization

extension Gate {
  /// Returns a gate that is open where both gates are open.
  ///
  /// The gates of a pipeline must all be open in any case; use this in a combination with
  /// ``or(_:)``. Where both are closed, the reason has both: `WiFiOnly: the default route is over eth0;
  /// and TimeWindow: opens at 22:00`.
  ///
  /// ```swift
  /// WiFiOnly().and(PowerGate()).or(TimeWindow(from: TimeOfDay(hour: 22), to: TimeOfDay(hour: 6)))
  /// ```
  public func and(_ other: some Gate) -> some Gate { CombinedGate(.and, self, other) }

  /// Returns a gate that is open where one of the gates is open.
  ///
  /// Where both are closed, the reason has both: `WiFiOnly: the default route is over eth0; or TimeWindow: opens at
  /// 22:00`. A gate that has failed counts as open, as in a pipeline.
  public func or(_ other: some Gate) -> some Gate { CombinedGate(.or, self, other) }

  /// Returns a gate that is open where this gate is closed, and closed where it is open.
  ///
  /// A gate that has failed stays open: its state is not known.
  /// - Parameter reason: Why the gate is closed, in a few words; by default, that this gate is open.
  public func not(because reason: String? = nil) -> some Gate { InvertedGate(base: self, because: reason) }
}

/// Several gates of which all or one must be open.
private struct CombinedGate: Gate {
  enum Operation: String {
    case and, or
  }

  let operation: Operation
  let gates: [any Gate]

  init(_ operation: Operation, _ gates: any Gate...) {
    self.operation = operation
    self.gates = gates.flatMap { gate in
      guard let inner = gate as? CombinedGate, inner.operation == operation else { return [gate] }
      return inner.gates
    }
  }

  var name: String { joined(\.name) }
  var id: String { joined(\.id) }
  var summary: String {
    gates.filter { !$0.summary.isEmpty }.map { "\($0.name): \($0.summary)" }.joined(separator: "; ")
  }

  private func joined(_ text: (any Gate) -> String) -> String {
    gates.map { $0 is CombinedGate ? "(\(text($0)))" : text($0) }.joined(separator: " \(operation.rawValue) ")
  }

  func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    let reports = Mutex<[GateRule?]>(Array(repeating: nil, count: gates.count))
    let operation = operation
    let report: @Sendable (Int, GateRule, Bool) -> Void = { index, rule, replaces in
      // Published under the lock, so that rules arrive in order.
      reports.withLock { reports in
        guard replaces || reports[index] == nil else { return }
        reports[index] = rule
        let rules = reports.compactMap(\.self)
        // A rule of some of them could be wrong for the moment until the others have reported.
        if rules.count == reports.count { publish(operation.rule(of: rules)) }
      }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, gate) in gates.enumerated() {
        group.addTask {
          do {
            try await gate.watch { report(index, $0, true) }
            // A gate that never reports must not hold the others.
            report(index, .open, false)
          } catch is CancellationError {
            throw CancellationError()
          } catch {
            report(index, .open, true)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  func room(for candidate: Candidate) async throws -> Int64? {
    var rooms: [Int64] = []
    for gate in gates {
      if let room = try await gate.room(for: candidate) { rooms.append(room) }
    }
    // Where one open gate is enough, a gate without a disk lets the download go on.
    return operation == .and ? rooms.min() : rooms.count == gates.count ? rooms.max() : nil
  }
}

extension CombinedGate.Operation {
  /// The rule of a combination.
  fileprivate func rule(of rules: [GateRule]) -> GateRule {
    let common: [GateRule.Verdict] = rules.compactMap { if case .all(let verdict) = $0.extent { verdict } else { nil } }
    // Not for each download, where that is possible: a gate that is closed for all costs nothing.
    if common.count == rules.count { return GateRule(verdict(of: common)) }
    return .each { candidate in verdict(of: rules.map { $0.verdict(for: candidate) }) }
  }

  private func verdict(of verdicts: [GateRule.Verdict]) -> GateRule.Verdict {
    let reasons: [String] = verdicts.compactMap { if case .closed(let reason) = $0 { reason } else { nil } }
    let isOpen = self == .and ? reasons.isEmpty : reasons.count < verdicts.count
    return isOpen ? .open : .closed(reasons.joined(separator: "; \(rawValue) "))
  }
}

/// A gate that is open where another one is closed.
private struct InvertedGate: Gate {
  let base: any Gate
  let because: String?

  var name: String { "not " + (base is CombinedGate ? "(\(base.name))" : base.name) }
  var id: String { "not " + (base is CombinedGate ? "(\(base.id))" : base.id) }
  var summary: String { base.summary }

  func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    let reason = "\(name): \(because ?? "\(base.name) is open")"
    do {
      try await base.watch { rule in
        switch rule.extent {
        case .all(.open): publish(.closed(reason))
        case .all(.closed): publish(.open)
        case .each(let verdict): publish(.each { verdict($0) == .open ? .closed(reason) : .open })
        }
      }
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      publish(.open)
    }
  }
}
