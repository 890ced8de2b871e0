/// The limits of a process: those in force, and those of calls that have not returned.
struct ReplacedLimits: Sendable {
  private var calls: [(number: Int, limits: SimulatedLimits)]
  private var last = 0

  init(_ limits: SimulatedLimits) { calls = [(0, limits)] }

  mutating func begin(_ limits: SimulatedLimits) -> Int {
    last += 1
    calls.append((last, limits))
    return last
  }

  /// Notes that a call has returned: it and all earlier ones have taken effect, in the order of the calls.
  ///
  /// Calls of an earlier downloader of the process are not known any more.
  mutating func end(_ number: Int) {
    if calls.contains(where: { $0.number == number }) { calls.removeAll { $0.number < number } }
  }

  /// While limits are replaced, a download may start under the old or the new ones.
  var concurrent: Int { calls.map(\.limits.concurrent).max() ?? 0 }
  var perHost: Int { calls.map(\.limits.perHost).max() ?? 0 }
}
