/// The minimum speed of a transfer: a number of bytes in each window of time.
///
/// A slower transfer fails with `.timedOut` and is subject to the retry policy. Windows in which a ``RatePolicy`` has
/// paused the transfer do not count.
public struct MinimumSpeed: Sendable, Hashable {
  /// The number of bytes that have to arrive in each window.
  public var bytesPerWindow: Int64
  /// The length of a window.
  public var window: Duration

  /// Creates a minimum speed; by default 60 bytes in a minute, which ends stalled transfers only.
  ///
  /// - Parameters:
  ///   - bytesPerSecond: The average speed in a window below which the transfer fails.
  ///   - window: The time over which the speed is averaged.
  public init(bytesPerSecond: Double = 1, over window: Duration = .seconds(60)) {
    bytesPerWindow = Int64(max(0, min(bytesPerSecond * (window / .seconds(1)), 1e15)).rounded(.up))
    self.window = window
  }
}

/// Compares the speed of a body with a minimum.
struct SpeedWatch: Sendable {
  private let minimum: MinimumSpeed
  private var began: Duration
  private var bytes: Int64

  /// Starts the first window, at a time when `bytes` have arrived.
  init(_ minimum: MinimumSpeed, at now: Duration, bytes: Int64) {
    self.minimum = minimum
    began = now
    self.bytes = bytes
  }

  /// Starts another window.
  mutating func restart(_ bytes: Int64, at now: Duration) {
    began = now
    self.bytes = bytes
  }

  /// Returns an error if a window has ended in which too few bytes arrived.
  mutating func check(_ bytes: Int64, at now: Duration) -> DownloadError? {
    guard now - began >= minimum.window else { return nil }
    let arrived = bytes - self.bytes
    let span = now - began
    restart(bytes, at: now)
    guard arrived < minimum.bytesPerWindow else { return nil }
    return DownloadError(
      .timedOut,
      "the transfer is too slow: only \(arrived) bytes arrived in \(Int(span / .seconds(1))) seconds")
  }
}
