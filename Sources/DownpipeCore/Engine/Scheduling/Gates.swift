/// The gates of a downloader: what each last reported, and what that means for a download.
struct Gates: Sendable {
  private(set) var slots: [GateSlot] = []
  /// How often the gates had reported when the loop last looked.
  private var seenReports = 0

  init(_ gates: [any Gate]) { slots = gates.map(GateSlot.init) }

  /// The rules in force.
  var rules: [GateRule] { slots.map(\.rule) }

  /// Why a download may not run; `nil` when all gates are open for it.
  func reason(for candidate: Candidate) -> String? {
    for slot in slots {
      if case .closed(let reason) = slot.rule.verdict(for: candidate) { return reason }
    }
    return nil
  }

  /// Why a running download has to stop: a gate that has just been put in closes nothing before it has reported.
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

  /// Whether a gate has reported something new since this was last asked.
  mutating func takeNews() -> Bool {
    let reports = slots.reduce(0) { $0 &+ $1.latest.reports }
    defer { seenReports = reports }
    return reports != seenReports
  }

  /// The gates that nobody watches yet; they count as watched from now on.
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

  /// Puts a gate in the place of the one with its id, or adds it.
  mutating func replace(_ gate: any Gate) {
    guard let index = slots.firstIndex(where: { $0.gate.id == gate.id }) else { return slots.append(GateSlot(gate)) }
    slots[index].stop.stop(())
    slots[index] = GateSlot(gate)
    seenReports = -1
  }

  /// Removes the gate with an id.
  /// - Returns: whether there was one.
  mutating func remove(id: String) -> Bool {
    guard let index = slots.firstIndex(where: { $0.gate.id == id }) else { return false }
    slots[index].stop.stop(())
    slots.remove(at: index)
    seenReports = -1
    return true
  }
}
