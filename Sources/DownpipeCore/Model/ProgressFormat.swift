public import Foundation

/// Writes a progress for people to read: `1.50 MiB of 4.00 MiB  37%  812 KiB/s  0:04 left`.
///
/// ```swift
/// print(try await film.status.progress.formatted())
/// print(progress.formatted(ProgressFormat(bytes: .decimal, separator: ", ")))
/// ```
/// What is not known is left out: the total, the share and the time that is left of a server that announces no length,
/// and the speed of what does not run. The text is the same in every locale.
public struct ProgressFormat: FormatStyle, Sendable {
  /// How bytes and speeds are written.
  public var bytes: ByteFormat
  /// What stands between two facts.
  public var separator: String

  /// Makes a format.
  public init(bytes: ByteFormat = .binary, separator: String = "  ") {
    self.bytes = bytes
    self.separator = separator
  }

  /// The progress in a line.
  public func format(_ progress: TransferProgress) -> String {
    var facts = [bytes.format(progress.received)]
    if let total = progress.total.bytes { facts[0] += " of \(bytes.format(total))" }
    if let fraction = progress.fraction { facts.append(Self.percent(fraction)) }
    if let speed = progress.bytesPerSecond { facts.append(bytes.speed(speed)) }
    if let left = progress.timeRemaining { facts.append("\(TimeLeftFormat().format(left)) left") }
    return facts.joined(separator: separator)
  }

  /// A share from 0 to 1 as a percentage of at most four characters, rounded down: 100% means complete and nothing less.
  public static func percent(_ fraction: Double) -> String {
    "\(Int((min(1, max(0, fraction)) * 100).rounded(.down)))%"
  }
}

/// Writes a length of time that is left: `0:07`, `12:34`, `1:02:03`, `3d 04h`. At most seven characters.
///
/// Rounded up to whole seconds: what is not over takes a second still.
public struct TimeLeftFormat: FormatStyle, Sendable {
  /// Makes a format.
  public init() {}

  /// The length of time; a negative one counts as none, and more than 99 days are `>99d`.
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
  /// The progress in a line: `1.50 MiB of 4.00 MiB  37%  812 KiB/s  0:04 left`.
  public func formatted(_ format: ProgressFormat = ProgressFormat()) -> String { format.format(self) }
}
