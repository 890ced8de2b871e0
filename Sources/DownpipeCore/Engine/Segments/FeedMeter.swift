/// The speed of one feed, over the last few measurements.
struct FeedMeter: Sendable {
  private let startedAt: Duration
  private var firstByteAt: Duration?
  private var measuredAt: Duration
  private var lastPosition: Int64?
  /// Bytes per second; `nil` before the first measurement of arriving bytes.
  private(set) var speed: Double?
  /// The number of measurements.
  private(set) var count = 0
  /// The number of measurements in a row without a byte.
  private var emptyCount = 0
  private static let mostEmpty = 2

  init(at now: Duration) {
    startedAt = now
    measuredAt = now
  }

  /// The time from the request to the first byte; `nil` before that.
  var setup: Duration? { firstByteAt.map { $0 - startedAt } }

  /// Begins to measure, when the reply has come.
  mutating func begin(at position: Int64, _ now: Duration) {
    firstByteAt = now
    measuredAt = now
    lastPosition = position
  }

  /// How long bytes take at a speed; an hour when it is zero.
  static func time(for bytes: Int64, at speed: Double) -> Duration {
    speed > 0 ? .seconds(min(Double(bytes) / max(speed, 1), longest)) : .seconds(longest)
  }
  private static let longest = 3600.0

  /// Measures the speed since the last measurement, and weighs it with earlier ones.
  mutating func measure(_ position: Int64, at now: Duration) {
    guard let last = lastPosition, now > measuredAt else { return }
    let current = Double(position - last) / ((now - measuredAt) / .seconds(1))
    emptyCount = position == last ? emptyCount + 1 : 0
    // A stalled feed does not slow down, it has stopped.
    speed = emptyCount >= Self.mostEmpty ? 0 : speed.map { ($0 + current) / 2 } ?? current
    lastPosition = position
    measuredAt = now
    count += 1
  }
}
