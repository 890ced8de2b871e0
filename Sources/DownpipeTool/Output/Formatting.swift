import Downpipe
import Foundation

/// Times as people and programs read them. Bytes and progress: see `ByteFormat` and `ProgressFormat`.
enum Formatting {
  /// A short length of time in seconds, for sentences: `0.4 s`, `12 s`, and from a minute on `1:02`.
  static func seconds(_ duration: Duration) -> String {
    let seconds = max(0, duration / .seconds(1))
    if seconds < 9.95 {
      let tenths = Int((seconds * 10).rounded())
      return "\(tenths / 10).\(tenths % 10) s"
    }
    if seconds < 59.5 { return "\(Int(seconds.rounded())) s" }
    return TimeLeftFormat().format(duration)
  }

  /// A moment for programs, in whole seconds: `2027-01-15T08:00:00Z` (RFC 3339).
  static func timestamp(_ date: Date) -> String { date.formatted(.iso8601) }

  /// A moment for people, in their time zone: `2027-01-15 09:00:00`.
  static func time(_ date: Date, in zone: TimeZone = .current) -> String {
    date.formatted(
      Date.ISO8601FormatStyle(timeZone: zone).year().month().day().dateTimeSeparator(.space).time(
        includingFractionalSeconds: false))
  }
}
