/// Measures the speed of a transfer over a moving window of five seconds.
struct SpeedMeter: Sendable {
  private var samples: [(at: Duration, bytes: Int64)] = []
  private static let window: Duration = .seconds(5)
  /// Samples are further apart than this, except the last one: thousands of transfers may be measured.
  private static let resolution: Duration = .milliseconds(500)

  /// Records the number of bytes received by `now`, and drops samples older than the window.
  mutating func record(_ bytes: Int64, at now: Duration) {
    // After a restart the count is smaller: earlier samples no longer apply.
    if let last = samples.last, bytes < last.bytes { samples.removeAll() }
    if samples.count > 1, now - samples[samples.count - 2].at < Self.resolution { samples.removeLast() }
    samples.append((now, bytes))
    while samples.count > 2, let first = samples.first, now - first.at > Self.window { samples.removeFirst() }
  }

  /// The number of bytes that was recorded last; `nil` before the first record.
  var latest: Int64? { samples.last?.bytes }

  /// The speed; `nil` until there are two samples at different times.
  var bytesPerSecond: Double? {
    guard let first = samples.first, let last = samples.last, last.at > first.at else { return nil }
    return Double(last.bytes - first.bytes) / ((last.at - first.at) / .seconds(1))
  }
}
