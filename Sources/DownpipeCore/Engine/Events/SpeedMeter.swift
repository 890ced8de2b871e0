/// Bytes a second over a moving window of five seconds.
struct SpeedMeter: Sendable {
  private var samples: [(at: Duration, bytes: Int64)] = []
  private static let window: Duration = .seconds(5)

  /// Records how many bytes there are by now, and forgets what is older than the window.
  mutating func record(_ bytes: Int64, at now: Duration) {
    // A restart takes the count back: what was measured before says nothing any more.
    if let last = samples.last, bytes < last.bytes { samples.removeAll() }
    samples.append((now, bytes))
    while samples.count > 2, let first = samples.first, now - first.at > Self.window { samples.removeFirst() }
  }

  /// The speed; `nil` until there are two samples a moment apart.
  var bytesPerSecond: Double? {
    guard let first = samples.first, let last = samples.last, last.at > first.at else { return nil }
    return Double(last.bytes - first.bytes) / ((last.at - first.at) / .seconds(1))
  }
}
