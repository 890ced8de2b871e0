/// The gates of a downloader with their latest reports, and their verdicts for a download.
struct Gates: Sendable {
  private(set) var watched: [WatchedGate] = []
  /// The number of reports when the loop last checked.
  private var seenReports = 0
  /// Grows when a gate is added, replaced or removed.
  private(set) var replacements = 0

  init(_ gates: [any Gate]) { watched = gates.map(WatchedGate.init) }

  /// The current rules of all gates.
  var rules: [GateRule] { watched.map(\.rule) }

  /// Why a download may not run; `nil` if all gates are open for it.
  func reason(for candidate: Candidate) -> String? {
    for gate in watched {
      if case .closed(let reason) = gate.rule.verdict(for: candidate) { return reason }
    }
    return nil
  }

  /// Why a running download has to stop; `nil` if it may run. A new gate stops no download before its first report.
  func reasonToStop(_ candidate: Candidate) -> String? {
    for gate in watched where gate.latest.hasReported {
      if case .closed(let reason) = gate.rule.verdict(for: candidate) { return reason }
    }
    return nil
  }

  /// Whether a gate is closed for every download.
  var isClosedForAll: Bool {
    watched.contains { gate in
      if case .all(.closed) = gate.rule.extent { true } else { false }
    }
  }

  /// The number of rules that the gates have reported.
  var reports: Int { watched.reduce(0) { $0 &+ $1.latest.reports } }

  /// Whether a gate has reported a new rule since the last call.
  mutating func takeNews() -> Bool {
    let reports = reports
    defer { seenReports = reports }
    return reports != seenReports
  }

  /// Returns the gates that are not watched, and marks them as watched.
  mutating func takeUnwatched() -> [WatchedGate] {
    var unwatched: [WatchedGate] = []
    for index in watched.indices where !watched[index].isWatched {
      watched[index].isWatched = true
      unwatched.append(watched[index])
    }
    return unwatched
  }

  /// The gates, in order.
  var stages: [any Gate] { watched.map(\.gate) }

  /// Replaces the gate with the same id, or adds the gate.
  mutating func replace(_ gate: any Gate) {
    noteReplacement()
    guard let index = watched.firstIndex(where: { $0.gate.id == gate.id }) else {
      return watched.append(WatchedGate(gate))
    }
    watched[index].stop.stop(())
    watched[index] = WatchedGate(gate)
    seenReports = -1
  }

  /// Removes the gate with an id.
  /// - Returns: Whether there was such a gate.
  mutating func remove(id: String) -> Bool {
    guard let index = watched.firstIndex(where: { $0.gate.id == id }) else { return false }
    noteReplacement()
    watched[index].stop.stop(())
    watched.remove(at: index)
    seenReports = -1
    return true
  }

  /// Grows by more than the reports that go with a gate, so that no sum of both comes again.
  private mutating func noteReplacement() { replacements &+= reports &+ 1 }
}
