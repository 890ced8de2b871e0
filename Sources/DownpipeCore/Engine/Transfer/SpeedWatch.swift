/// The slowest transfer that is not given up: so many bytes over so much time.
public struct MinimumSpeed: Sendable, Hashable {
  /// The bytes that have to arrive in each window.
  public var bytesPerWindow: Int64
  /// The window.
  public var window: Duration

  /// Sets a minimum: a byte a second over a minute, unless told otherwise.
  ///
  /// - Parameters:
  ///   - bytesPerSecond: the speed below which a transfer has failed.
  ///   - window: how long the speed is measured before it counts.
  public init(bytesPerSecond: Double = 1, over window: Duration = .seconds(60)) {
    bytesPerWindow = Int64(max(0, min(bytesPerSecond * (window / .seconds(1)), 1e15)).rounded(.up))
    self.window = window
  }
}

/// Finds out whether the body that is being received is slower than a minimum.
struct SpeedWatch: Sendable {
  private let minimum: MinimumSpeed
  private var began: Duration
  private var bytes: Int64

  /// Watches from a moment at which `bytes` have arrived.
  init(_ minimum: MinimumSpeed, at now: Duration, bytes: Int64) {
    self.minimum = minimum
    began = now
    self.bytes = bytes
  }

  /// Looks at the bytes that have arrived by now: an error when there were too few in a whole window.
  mutating func check(_ bytes: Int64, at now: Duration) -> DownloadError? {
    guard now - began >= minimum.window else { return nil }
    let arrived = bytes - self.bytes
    let span = now - began
    began = now
    self.bytes = bytes
    guard arrived < minimum.bytesPerWindow else { return nil }
    return DownloadError(
      .timedOut,
      "only \(arrived) bytes arrived in \(Int(span / .seconds(1))) seconds: the connection is given up as too slow")
  }
}
