public import DownpipeCore
public import Foundation

/// A gate that is open during a part of each day.
///
/// ```swift
/// TimeWindow(from: TimeOfDay(hour: 22), to: TimeOfDay(hour: 6))
/// TimeWindow(from: TimeOfDay(hour: 1), to: TimeOfDay(hour: 5), in: .gmt)
/// ```
/// The window includes its first minute and ends at the start of its last one. One that ends before it begins crosses
/// midnight. If both times are equal, the gate is always open. Waiting downloads say when it opens: `TimeWindow: opens
/// at 22:00`.
///
/// The window opens and closes once a day, also when clocks change. A time that occurs twice, when clocks go back,
/// counts at its first occurrence. A time that is skipped, when they go forward, is the first moment after the gap.
///
/// The gate sleeps until the next change. It wakes at least once an hour to compare the date, since the clock of the
/// system can be set and its time zone can change. The time while the machine is suspended counts.
public struct TimeWindow: Gate {
  /// Identifies the gate in its pipeline; `TimeWindow` by default.
  public let id: String
  private let window: DailyWindow
  private let time: any TimeSource

  /// The longest sleep.
  package static let longestSleep: Duration = .seconds(3600)

  /// Creates a gate.
  ///
  /// - Parameters:
  ///   - from: The time at which it opens.
  ///   - to: The time at which it closes.
  ///   - zone: The time zone; by default, that of the system, also after it has changed.
  ///   - id: Identifies the gate in its pipeline.
  ///   - time: The clock; the system's by default.
  public init(
    from: TimeOfDay, to: TimeOfDay, in zone: TimeZone? = nil, id: String = "TimeWindow",
    time: any TimeSource = SystemTime()
  ) {
    self.id = id
    window = DailyWindow(from: from, to: to, in: zone)
    self.time = time
  }

  /// `22:00–06:00`, and the time zone if it was given.
  public var summary: String { window.description }

  /// Publishes the current rule and then each change, until the task is cancelled.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    var published: DailyWindow.State?
    while true {
      let now = time.date
      let state = window.state(at: now)
      if state != published {
        published = state
        publish(rule(for: state))
      }
      guard let interval = state.duration(from: now) else { return }
      try await time.sleep(for: min(interval, Self.longestSleep))
    }
  }

  private func rule(for state: DailyWindow.State) -> GateRule {
    guard case .closed(let until) = state else { return .open }
    return .closed("\(name): opens at \(window.clock(at: until))\(window.zoneText)")
  }
}
