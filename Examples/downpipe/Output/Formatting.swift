import Foundation

/// Numbers as people read them. Everything is short and of bounded width, so that columns hold.
enum Formatting {
  private static let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

  /// Bytes with a binary unit and three significant digits: `0 B`, `1.50 KiB`, `23.4 MiB`, `1023 GiB`.
  /// At most eight characters.
  static func bytes(_ bytes: Int64) -> String {
    guard bytes >= 1024 else { return "\(max(0, bytes)) B" }
    var value = Double(bytes)
    var unit = 0
    // 1023.5 and more would be shown as 1024 of the smaller unit.
    while value >= 1023.5, unit < units.count - 1 {
      value /= 1024
      unit += 1
    }
    return "\(threeDigits(value)) \(units[unit])"
  }

  /// Bytes a second: `23.4 MiB/s`; a dash while it is not known. At most ten characters.
  static func speed(_ bytesPerSecond: Double?) -> String {
    guard let bytesPerSecond, bytesPerSecond.isFinite, bytesPerSecond >= 0 else { return "–" }
    return bytes(Int64(min(bytesPerSecond, 9e18))) + "/s"
  }

  /// A length of time: `0:07`, `12:34`, `1:02:03`, `3d 04h`. At most seven characters.
  static func duration(_ duration: Duration) -> String {
    let seconds = max(0, duration.components.seconds)
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400)
    if days > 99 { return ">99d" }
    if days > 0 { return "\(days)d \(twoDigits(hours % 24))h" }
    if hours > 0 { return "\(hours):\(twoDigits(minutes % 60)):\(twoDigits(seconds % 60))" }
    return "\(minutes):\(twoDigits(seconds % 60))"
  }

  /// A short length of time in seconds, for sentences: `0.4 s`, `12 s`, and from a minute on as ``duration(_:)``.
  static func seconds(_ duration: Duration) -> String {
    let seconds = max(0, duration / .seconds(1))
    if seconds < 9.95 { return "\(oneDecimal(seconds)) s" }
    if seconds < 59.5 { return "\(Int(seconds.rounded())) s" }
    return Self.duration(duration)
  }

  /// A moment for programs, in whole seconds: `2027-01-15T08:00:00Z` (RFC 3339).
  static func timestamp(_ date: Date) -> String { date.formatted(.iso8601) }

  /// A moment for people, in their time zone: `2027-01-15 09:00:00`.
  static func time(_ date: Date, in zone: TimeZone = .current) -> String {
    date.formatted(
      Date.ISO8601FormatStyle(timeZone: zone).year().month().day().dateTimeSeparator(.space).time(
        includingFractionalSeconds: false))
  }

  /// A share from 0 to 1 as a percentage of at most four characters. 100% means complete and nothing less.
  static func percent(_ fraction: Double) -> String {
    let hundredths = Int((min(1, max(0, fraction)) * 100).rounded(.down))
    return "\(hundredths)%"
  }

  /// Fewer than ten have two decimals, fewer than a hundred have one.
  private static func threeDigits(_ value: Double) -> String {
    if value < 9.995 {
      let hundredths = Int((value * 100).rounded())
      return "\(hundredths / 100).\(twoDigits(Int64(hundredths % 100)))"
    }
    if value < 99.95 { return oneDecimal(value) }
    return "\(Int(value.rounded()))"
  }

  private static func oneDecimal(_ value: Double) -> String {
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }

  private static func twoDigits(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
}
