public import Foundation

/// A part of each day, in a time zone.
///
/// ```swift
/// DailyWindow(from: TimeOfDay(hour: 22), to: TimeOfDay(hour: 6))
/// ```
/// The window includes its first minute and ends at the start of its last one. One that ends before it begins crosses
/// midnight. If both times are equal, it is the whole day.
///
/// It begins and ends once a day, also when clocks change. A time that occurs twice, when clocks go back, counts at
/// its first occurrence. A time that is skipped, when they go forward, is the first moment after the gap.
public struct DailyWindow: Sendable, Hashable, CustomStringConvertible {
  /// The time at which it begins.
  public let from: TimeOfDay
  /// The time at which it ends.
  public let to: TimeOfDay
  /// The given time zone; `nil` for that of the system, also after it has changed.
  public let zone: TimeZone?

  /// Creates a window.
  ///
  /// - Parameters:
  ///   - from: The time at which it begins.
  ///   - to: The time at which it ends.
  ///   - zone: The time zone; by default, that of the system, also after it has changed.
  public init(from: TimeOfDay, to: TimeOfDay, in zone: TimeZone? = nil) {
    self.from = from
    self.to = to
    self.zone = zone
  }

  /// `22:00–06:00`, and the time zone if it was given.
  public var description: String { "\(from)–\(to)\(zoneText)" }

  /// The time zone in parentheses, if it was given, after a space.
  package var zoneText: String { zone.map { " (\($0.identifier))" } ?? "" }

  /// The state at a moment, and the moment of the next change.
  package enum State: Sendable, Hashable {
    case open(until: Date)
    case closed(until: Date)
    /// The window is the whole day.
    case alwaysOpen

    /// The time from a moment to the next change, at most three days; `nil` if there is none.
    package func duration(from date: Date) -> Duration? {
      switch self {
      case .alwaysOpen: return nil
      case .open(let until), .closed(let until):
        // Rounded up, because a look that comes too early finds the old state.
        let seconds = max(0, min(until.timeIntervalSince(date), 86_400 * 3))
        return .milliseconds(Int64((seconds * 1000).rounded(.up)))
      }
    }
  }

  /// Returns the state at a moment.
  package func state(at date: Date) -> State {
    if from == to { return .alwaysOpen }
    let now = date.timeIntervalSince1970
    let today = Self.floorDivide(Int64(now.rounded(.down)) + offset(at: now), by: Self.secondsPerDay)
    // Yesterday's window may still be open. Zones have skipped a whole day, hence a day more on either side.
    let openings = (today - 2...today + 2).map { day -> (start: Double, end: Double) in
      (instant(of: from, day: day), instant(of: to, day: from.minutes < to.minutes ? day : day + 1))
    }.filter { $0.start < $0.end }
    if var current = openings.first(where: { $0.start <= now && now < $0.end }) {
      for next in openings where next.start <= current.end && next.end > current.end { current.end = next.end }
      return .open(until: Date(timeIntervalSince1970: current.end))
    }
    let next = openings.map(\.start).filter { $0 > now }.min() ?? now + Double(Self.secondsPerDay)
    return .closed(until: Date(timeIntervalSince1970: next))
  }

  /// The local time of a moment, as `HH:MM`.
  package func clock(at date: Date) -> String {
    let now = date.timeIntervalSince1970
    let local = Int64(now.rounded(.down)) + offset(at: now)
    let seconds = local - Self.floorDivide(local, by: Self.secondsPerDay) * Self.secondsPerDay
    return TimeOfDay(hour: Int(seconds / 3600), minute: Int(seconds / 60 % 60)).description
  }

  private static let secondsPerDay: Int64 = 86_400

  /// The seconds that local clocks are ahead of UTC.
  private func offset(at instant: Double) -> Int64 {
    Int64((zone ?? .autoupdatingCurrent).secondsFromGMT(for: Date(timeIntervalSince1970: instant)))
  }

  /// The first moment at which clocks show a time on a day, counted from 1970-01-01; the end of the gap if they skip it.
  private func instant(of time: TimeOfDay, day: Int64) -> Double {
    let local = Double(day * Self.secondsPerDay + Int64(time.minutes) * 60)
    let range = Double(Self.secondsPerDay)
    let offsets = [offset(at: local - range), offset(at: local + range)]
    let candidates = offsets.map { local - Double($0) }.filter { $0 + Double(offset(at: $0)) == local }
    if let first = candidates.min() { return first }
    // Skipped: the offset changes between the two candidates.
    var (before, after) = (local - range, local + range)
    while after - before > 1 {
      let middle = ((before + after) / 2).rounded(.down)
      if middle + Double(offset(at: middle)) < local { before = middle } else { after = middle }
    }
    return after
  }

  private static func floorDivide(_ number: Int64, by divisor: Int64) -> Int64 {
    number >= 0 ? number / divisor : (number - divisor + 1) / divisor
  }
}
