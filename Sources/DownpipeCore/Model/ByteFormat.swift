public import Foundation

/// Writes a number of bytes, or a speed, for people to read: `1.50 MiB`, `23.4 MB/s`.
///
/// ```swift
/// ByteFormat.binary.format(1_572_864)            // 1.50 MiB
/// ByteFormat.decimal.format(1_572_864)           // 1.57 MB
/// ByteFormat.decimal.speed(812_000)              // 812 KB/s
/// Int64(1_572_864).formatted(ByteFormat.binary)  // as any other format style
/// ```
/// The text is the same in every locale, and at most eight characters long (a speed ten) where the precision is
/// ``Precision/threeDigits`` and no largest unit is set, so that columns hold.
public struct ByteFormat: FormatStyle, Sendable {
  /// What a unit is called, and how many of the next smaller one it is.
  public enum Units: Hashable, Codable, Sendable {
    /// `KiB`, `MiB`, `GiB` … of 1,024 each (IEC 80000-13).
    case binary
    /// `KB`, `MB`, `GB` … of 1,000 each, as disks are sold and as systems of Apple count.
    case decimal
    /// `KB`, `MB`, `GB` … of 1,024 each, as Windows counts.
    case kilobytes1024
  }

  /// A unit's place in the row of units.
  public enum Magnitude: Int, Hashable, Codable, Sendable {
    /// Bytes.
    case one
    /// 1,000 or 1,024 bytes.
    case kilo
    /// 1,000 or 1,024 times as many as ``kilo``, and so on.
    case mega, giga, tera, peta, exa
  }

  /// How many digits a number has. Bytes never have decimals.
  public enum Precision: Hashable, Codable, Sendable {
    /// Three digits, rounded: `1.50`, `23.4`, `812`.
    case threeDigits
    /// One decimal, rounded down: `1.5`, `23.4`, `812.0`.
    case oneDecimal
  }

  /// What a unit is called, and how many of the next smaller one it is.
  public var units: Units
  /// The largest unit that is used.
  public var largest: Magnitude
  /// How many digits a number has.
  public var precision: Precision

  /// Makes a format.
  public init(_ units: Units, largest: Magnitude = .exa, precision: Precision = .threeDigits) {
    self.units = units
    self.largest = largest
    self.precision = precision
  }

  /// Three digits and `KiB`, `MiB`, `GiB` … of 1,024 each.
  public static let binary = ByteFormat(.binary)
  /// Three digits and `KB`, `MB`, `GB` … of 1,000 each.
  public static let decimal = ByteFormat(.decimal)
  /// Three digits and `KB`, `MB`, `GB` … of 1,024 each.
  public static let kilobytes1024 = ByteFormat(.kilobytes1024)

  /// The number with its unit; a negative one counts as none.
  public func format(_ bytes: Int64) -> String {
    let base: Double = units == .decimal ? 1000 : 1024
    // What would be rounded to a whole unit is shown as one.
    let limit = precision == .threeDigits ? base - 0.5 : base
    var value = Double(max(0, bytes))
    var magnitude = 0
    while value >= (magnitude == 0 ? base : limit), magnitude < largest.rawValue {
      value /= base
      magnitude += 1
    }
    guard magnitude > 0 else { return "\(max(0, bytes)) B" }
    return "\(digits(of: value)) \(Self.prefixes[magnitude - 1])\(units == .binary ? "iB" : "B")"
  }

  /// Bytes a second: `23.4 MiB/s`; a dash where the speed is not known.
  public func speed(_ bytesPerSecond: Double?) -> String {
    guard let bytesPerSecond, bytesPerSecond.isFinite, bytesPerSecond >= 0 else { return "–" }
    return format(Int64(min(bytesPerSecond, 9e18))) + "/s"
  }

  private static let prefixes = ["K", "M", "G", "T", "P", "E"]

  private func digits(of value: Double) -> String {
    if precision == .oneDecimal { return Self.decimals(Int64((value * 10).rounded(.down)), 10) }
    if value < 9.995 { return Self.decimals(Int64((value * 100).rounded()), 100) }
    if value < 99.95 { return Self.decimals(Int64((value * 10).rounded()), 10) }
    return "\(Int64(value.rounded()))"
  }

  private static func decimals(_ value: Int64, _ parts: Int64) -> String {
    let fraction = value % parts
    return "\(value / parts).\(parts == 100 && fraction < 10 ? "0" : "")\(fraction)"
  }
}

extension ByteCount {
  /// The number with its unit, `1.50 MiB`; a dash while it is not known.
  public func formatted(_ format: ByteFormat = .binary) -> String { bytes.map(format.format) ?? "–" }
}
