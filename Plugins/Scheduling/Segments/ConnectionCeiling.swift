import DownpipeCore

/// The most connections that servers accept, as far as their refusals show it.
struct ConnectionCeiling: Sendable, Hashable {
  /// The present limit, at least 1.
  private(set) var value: Int
  private let maximum: Int
  /// The instant of the last decrease, and the one at which the limit rises by one; `nil` while it is the maximum.
  private var lowered: Duration?
  private var rise: Duration?
  private var wait = Self.firstWait
  /// The refusals that follow each other, and the last of them.
  private var refusals = 0
  private var lastRefusal: Duration?

  private static let firstWait: Duration = .seconds(5)
  private static let longestWait: Duration = .seconds(60)
  /// A single connection that is lost is opened again: only more refusals within this time show a limit.
  private static let memory: Duration = .seconds(5)
  private static let fewestRefusals = 2
  /// For so long after a decrease, refusals may be those of connections that were asked for before it.
  private static let echo: Duration = .seconds(1)

  init(maximum: Int) {
    self.maximum = maximum
    value = maximum
  }

  /// Lowers the limit after refusals, and raises it by one some time after the last of them.
  ///
  /// - Parameter wanted: The number of connections that was asked for.
  /// - Returns: Whether the limit was lowered.
  mutating func update(after measurement: SegmentMeasurement, wanted: Int) -> Bool {
    let now = measurement.time
    guard measurement.refusals > 0 else {
      raise(at: now)
      return false
    }
    if let lastRefusal, now - lastRefusal > Self.memory { refusals = 0 }
    refusals += measurement.refusals
    lastRefusal = now
    if rise != nil { rise = now + wait }
    guard refusals >= Self.fewestRefusals else { return false }
    // What is open works. When all of the wanted ones are open again, one of them is too many.
    let open = max(1, measurement.connections)
    let isEcho = lowered.map { now - $0 < Self.echo } ?? false
    let limit = open < wanted ? open : isEcho ? value : max(1, wanted - 1)
    guard limit < value else { return false }
    if lowered != nil, !isEcho { wait = min(wait * 2, Self.longestWait) }
    value = limit
    lowered = now
    rise = now + wait
    return true
  }

  private mutating func raise(at now: Duration) {
    guard let instant = rise, now >= instant else { return }
    value += 1
    rise = value < maximum ? now + wait : nil
  }
}
