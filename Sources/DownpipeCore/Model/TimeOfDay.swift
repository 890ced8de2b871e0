/// A time on a clock, to the minute.
///
/// ```swift
/// let morning = TimeOfDay(hour: 6, minute: 30)
/// ```
public struct TimeOfDay: Sendable, Hashable, CustomStringConvertible {
  /// The minutes since midnight: 0 to 1,439.
  public let minutes: Int

  /// Creates a time. Midnight is 0:00 or 24:00; other values outside a day wrap around, so that 25:00 is 1:00.
  public init(hour: Int, minute: Int = 0) {
    // Reduced first, so that no number overflows.
    let minutes = (hour % 24) * 60 + minute % 1440
    self.minutes = ((minutes % 1440) + 1440) % 1440
  }

  /// Parses `HH:MM` from `0:00` to `24:00`; `nil` for any other text.
  public init?(_ text: some StringProtocol) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
      parts.joined().utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let hour = Int(parts[0]), let minute = Int(parts[1]), minute < 60, hour < 24 || (hour == 24 && minute == 0)
    else { return nil }
    self.init(hour: hour, minute: minute)
  }

  /// `HH:MM`.
  public var description: String {
    func digits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(digits(minutes / 60)):\(digits(minutes % 60))"
  }
}
