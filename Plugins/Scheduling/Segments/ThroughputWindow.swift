import DownpipeCore

/// The throughput of an unchanged number of connections over a time.
struct ThroughputWindow: Sendable, Hashable {
  /// The number of connections.
  private(set) var connections = 0
  private var start: Duration?
  private var last: Duration = .zero
  private var bytes = 0.0
  /// The throughput of the complete window.
  private(set) var bytesPerSecond = 0.0

  private let shortest: Duration
  /// With fewer bytes for a connection, single packets decide; a window of the longest time is complete anyway.
  private static let fewestBytes = 65_536.0
  private static let longest: Duration = .seconds(2)

  /// Creates a window.
  ///
  /// - Parameter shortest: The shortest time of a complete window.
  init(shortest: Duration = .milliseconds(250)) { self.shortest = shortest }

  /// Adds a measurement. A window is complete after the shortest time with enough bytes; the next one begins at its end.
  ///
  /// - Returns: Whether the window is complete.
  mutating func add(_ measurement: SegmentMeasurement) -> Bool {
    let now = measurement.time
    guard let start, measurement.connections == connections else {
      // The bytes so far were those of another number of connections.
      connections = measurement.connections
      restart(at: now)
      return false
    }
    bytes += max(0, measurement.bytesPerSecond) * (now - last).seconds
    last = now
    let time = now - start
    guard time >= shortest, bytes >= Self.fewestBytes * Double(connections) || time >= Self.longest,
      connections > 0
    else { return false }
    bytesPerSecond = bytes / time.seconds
    restart(at: now)
    return true
  }

  private mutating func restart(at now: Duration) {
    start = now
    last = now
    bytes = 0
  }
}

extension Duration {
  fileprivate var seconds: Double { self / .seconds(1) }
}
