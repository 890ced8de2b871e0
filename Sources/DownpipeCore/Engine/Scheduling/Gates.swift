/// The gates of a downloader with their latest reports, and their verdicts for a download.
struct Gates: Sendable {
  private(set) var slots: [GateSlot] = []
  /// The number of reports when the loop last checked.
  private var seenReports = 0
  /// Grows when a gate is added, replaced or removed.
  private(set) var replacements = 0

  init(_ gates: [any Gate]) { slots = gates.map(GateSlot.init) }

  /// The current rules of all gates.
  var rules: [GateRule] { slots.map(\.rule) }

  /// Why a download may not run; `nil` if all gates are open for it.
  func reason(for candidate: Candidate) -> String? {
    for slot in slots {
      if case .closed(let reason) = slot.rule.verdict(for: candidate) { return reason }
    }
    return nil
  }

  /// Why a running download has to stop; `nil` if it may run. A new gate stops no download before its first report.
  func reasonToStop(_ candidate: Candidate) -> String? {
    for slot in slots where slot.latest.hasReported {
      if case .closed(let reason) = slot.rule.verdict(for: candidate) { return reason }
    }
    return nil
  }

  /// Whether a gate is closed for every download.
  var isClosedForAll: Bool {
    slots.contains { slot in
      if case .all(.closed) = slot.rule.extent { true } else { false }
    }
  }

  /// The number of rules that the gates have reported.
  var reports: Int { slots.reduce(0) { $0 &+ $1.latest.reports } }

  /// Whether a gate has reported a new rule since the last call.
  mutating func takeNews() -> Bool {
    let reports = reports
    defer { seenReports = reports }
    return reports != seenReports
  }

  /// Returns the gates that are not watched, and marks them as watched.
  mutating func takeUnwatched() -> [GateSlot] {
    var unwatched: [GateSlot] = []
    for index in slots.indices where !slots[index].isWatched {
      slots[index].isWatched = true
      unwatched.append(slots[index])
    }
    return unwatched
  }

  /// The gates, in order.
  var stages: [any Gate] { slots.map(\.gate) }

  /// Replaces the gate with the same id, or adds the gate.
  mutating func replace(_ gate: any Gate) {
    noteReplacement()
    guard let index = slots.firstIndex(where: { $0.gate.id == gate.id }) else { return slots.append(GateSlot(gate)) }
    slots[index].stop.stop(())
    slots[index] = GateSlot(gate)
    seenReports = -1
  }

  /// Removes the gate with an id.
  /// - Returns: Whether there was such a gate.
  mutating func remove(id: String) -> Bool {
    guard let index = slots.firstIndex(where: { $0.gate.id == id }) else { return false }
    noteReplacement()
    slots[index].stop.stop(())
    slots.remove(at: index)
    seenReports = -1
    return true
  }

  /// Grows by more than the reports that go with a gate, so that no sum of both comes again.
  private mutating func noteReplacement() { replacements &+= reports &+ 1 }
}
