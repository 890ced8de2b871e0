public import Foundation

/// A format for numbers of bytes and speeds: `1.50 MiB`, `23.4 MB/s`.
///
/// ```swift
/// ByteFormat.binary.format(1_572_864)            // 1.50 MiB
/// ByteFormat.decimal.format(1_572_864)           // 1.57 MB
/// ByteFormat.decimal.speed(812_000)              // 812 KB/s
/// Int64(1_572_864).formatted(ByteFormat.binary)  // as any other format style
/// ```
/// The text is the same in every locale. With the precision ``Precision/threeDigits`` and no largest unit it has at
/// most eight characters (a speed at most ten), so that columns keep their width.
public struct ByteFormat: FormatStyle, Sendable {
  /// A system of units.
  public enum Units: Hashable, Codable, Sendable {
    /// `KiB`, `MiB`, `GiB` … with a factor of 1,024 (IEC 80000-13).
    case binary
    /// `KB`, `MB`, `GB` … with a factor of 1,000, as on disk labels and on Apple's systems.
    case decimal
    /// `KB`, `MB`, `GB` … with a factor of 1,024, as on Windows.
    case kilobytes1024
  }

  /// The magnitude of a unit.
  public enum Magnitude: Int, Hashable, Codable, Sendable {
    /// Bytes.
    case one
    /// 1,000 or 1,024 bytes.
    case kilo
    /// Each 1,000 or 1,024 times the previous magnitude.
    case mega, giga, tera, peta, exa
  }

  /// The number of digits. Bytes never have decimals.
  public enum Precision: Hashable, Codable, Sendable {
    /// Three digits, rounded: `1.50`, `23.4`, `812`.
    case threeDigits
    /// One decimal, rounded down: `1.5`, `23.4`, `812.0`.
    case oneDecimal
  }

  /// The system of units.
  public var units: Units
  /// The largest unit that is used.
  public var largest: Magnitude
  /// The number of digits.
  public var precision: Precision

  /// Creates a format.
  public init(_ units: Units, largest: Magnitude = .exa, precision: Precision = .threeDigits) {
    self.units = units
    self.largest = largest
    self.precision = precision
  }

  /// Three digits and `KiB`, `MiB`, `GiB` … with a factor of 1,024.
  public static let binary = ByteFormat(.binary)
  /// Three digits and `KB`, `MB`, `GB` … with a factor of 1,000.
  public static let decimal = ByteFormat(.decimal)
  /// Three digits and `KB`, `MB`, `GB` … with a factor of 1,024.
  public static let kilobytes1024 = ByteFormat(.kilobytes1024)

  /// Returns the number with its unit. A negative number is formatted as 0.
  public func format(_ bytes: Int64) -> String {
    let base: Double = units == .decimal ? 1000 : 1024
    // A number that rounds to the next larger unit is shown in that unit.
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

  /// Returns a speed in bytes per second, such as `23.4 MiB/s`; a dash for `nil`.
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
  /// Returns the number with its unit, such as `1.50 MiB`; a dash when the count is unknown.
  public func formatted(_ format: ByteFormat = .binary) -> String { bytes.map(format.format) ?? "–" }
}
