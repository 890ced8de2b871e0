public import Foundation

/// A format for progress: `1.50 MiB of 4.00 MiB  37%  812 KiB/s  0:04 left`.
///
/// ```swift
/// print(try await film.status.progress.formatted())
/// print(progress.formatted(ProgressFormat(bytes: .decimal, separator: ", ")))
/// ```
/// Unknown values are left out: total, percentage and remaining time if the server sends no length, and the speed if no
/// transfer is running. The text is the same in every locale.
public struct ProgressFormat: FormatStyle, Sendable {
  /// The format of byte counts and speeds.
  public var bytes: ByteFormat
  /// The text between two values.
  public var separator: String

  /// Creates a format.
  public init(bytes: ByteFormat = .binary, separator: String = "  ") {
    self.bytes = bytes
    self.separator = separator
  }

  /// Returns the progress as one line of text.
  public func format(_ progress: TransferProgress) -> String {
    var facts = [bytes.format(progress.received)]
    if let total = progress.total.bytes { facts[0] += " of \(bytes.format(total))" }
    if let fraction = progress.fraction { facts.append(Self.percent(fraction)) }
    if let speed = progress.bytesPerSecond { facts.append(bytes.speed(speed)) }
    if let left = progress.timeRemaining { facts.append("\(TimeLeftFormat().format(left)) left") }
    return facts.joined(separator: separator)
  }

  /// Returns a share from 0 to 1 as a percentage of at most four characters, rounded down, so that only a complete
  /// transfer has 100%.
  public static func percent(_ fraction: Double) -> String {
    "\(Int((min(1, max(0, fraction)) * 100).rounded(.down)))%"
  }
}

/// A format for a remaining time: `0:07`, `12:34`, `1:02:03`, `3d 04h`. The text has at most seven characters.
///
/// The time is rounded up to whole seconds, so that an unfinished transfer never has `0:00`.
public struct TimeLeftFormat: FormatStyle, Sendable {
  /// Creates a format.
  public init() {}

  /// Returns the time as text. A negative time is formatted as 0, and a time of more than 99 days as `>99d`.
  public func format(_ duration: Duration) -> String {
    let (whole, rest) = duration.components
    let seconds = max(0, rest > 0 ? whole + 1 : whole)
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400)
    if days > 99 { return ">99d" }
    if days > 0 { return "\(days)d \(Self.twoDigits(hours % 24))h" }
    if hours > 0 { return "\(hours):\(Self.twoDigits(minutes % 60)):\(Self.twoDigits(seconds % 60))" }
    return "\(minutes):\(Self.twoDigits(seconds % 60))"
  }

  private static func twoDigits(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
}

extension TransferProgress {
  /// Returns the progress as one line: `1.50 MiB of 4.00 MiB  37%  812 KiB/s  0:04 left`.
  public func formatted(_ format: ProgressFormat = ProgressFormat()) -> String { format.format(self) }
}
