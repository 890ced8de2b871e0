public import Foundation

/// Where the engine gets time from: the system's, or a virtual one in tests.
public protocol TimeSource: Sendable {
  /// Time since some fixed moment; never jumps. Intervals and speeds are measured with it.
  var now: Duration { get }
  /// The calendar's time, which may jump; only what outlives the process uses it.
  var date: Date { get }
  /// Returns after the interval.
  /// - Throws: `CancellationError` when the task is cancelled.
  func sleep(for interval: Duration) async throws
}

/// The system's clocks.
public struct SystemTime: TimeSource {
  private static let start = ContinuousClock.now

  /// The system's clocks.
  public init() {}

  /// Time since the process first asked.
  public var now: Duration { ContinuousClock.now - Self.start }
  /// The system's date.
  public var date: Date { Date() }
  /// Sleeps on the continuous clock.
  public func sleep(for interval: Duration) async throws {
    try await ContinuousClock().sleep(for: interval)
  }
}
