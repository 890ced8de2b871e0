/// The gates of a downloader with their latest reports, and their verdicts for a download.
struct Gates: Sendable {
  private(set) var watched: [WatchedGate] = []
  /// The number of rules that the gates have reported.
  private(set) var reports = 0
  /// Grows when a gate is added, replaced or removed.
  private(set) var replacements = 0
  private var lastNumber = 0

  init(_ gates: [any Gate]) { for gate in gates { watched.append(numbered(gate)) } }

  private mutating func numbered(_ gate: any Gate) -> WatchedGate {
    lastNumber += 1
    return WatchedGate(gate, number: lastNumber)
  }

  /// Takes the rule that a gate has reported.
  /// - Returns: Whether it is news: the first one, or another one. A rule of a gate that was replaced is not.
  mutating func report(_ rule: GateRule, of number: Int) -> Bool {
    guard let index = watched.firstIndex(where: { $0.number == number }) else { return false }
    let isNews = !watched[index].hasReported || !rule.isSame(as: watched[index].rule)
    (watched[index].rule, watched[index].hasReported) = (rule, true)
    if isNews { reports &+= 1 }
    return isNews
  }

  /// The current rules of all gates.
  var rules: [GateRule] { watched.map(\.rule) }

  /// Why runs that start fail: a gate has ended its watch without a rule; `nil` if none has.
  var failure: DownloadError? { watched.lazy.compactMap(\.rule.failure).first }

  /// Why a download may not run; `nil` if all gates are open for it.
  func reason(for candidate: Candidate) -> (id: String, text: String)? {
    for gate in watched {
      if case .closed(let text) = gate.rule.verdict(for: candidate) { return (gate.gate.id, text) }
    }
    return nil
  }

  /// Why a running download has to stop; `nil` if it may run. A new gate stops no download before its first report.
  func reasonToStop(_ candidate: Candidate) -> (id: String, text: String)? {
    for gate in watched where gate.hasReported {
      if case .closed(let text) = gate.rule.verdict(for: candidate) { return (gate.gate.id, text) }
    }
    return nil
  }

  /// Whether a gate is closed for every download.
  var isClosedForAll: Bool {
    watched.contains { gate in
      if case .all(.closed) = gate.rule.extent { true } else { false }
    }
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
    replacements &+= 1
    let new = numbered(gate)
    guard let index = watched.firstIndex(where: { $0.gate.id == gate.id }) else { return watched.append(new) }
    watched[index].stop.stop(())
    watched[index] = new
  }

  /// Removes the gate with an id.
  /// - Returns: Whether there was such a gate.
  mutating func remove(id: String) -> Bool {
    guard let index = watched.firstIndex(where: { $0.gate.id == id }) else { return false }
    replacements &+= 1
    watched[index].stop.stop(())
    watched.remove(at: index)
    return true
  }
}
