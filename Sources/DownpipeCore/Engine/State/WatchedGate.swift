/// A gate with its latest rule, and the signal that stops watching it.
struct WatchedGate: Sendable {
  let gate: any Gate
  /// Differs from that of every other gate of the downloader, also of those that it has replaced.
  let number: Int
  let stop = StopSignal<Void>()
  var rule: GateRule
  var hasReported = false
  var isWatched = false

  init(_ gate: any Gate, number: Int) {
    self.gate = gate
    self.number = number
    rule = .closed("\(gate.name): has not reported yet")
  }
}
