/// A number of bytes per second.
public struct ByteRate: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The number of bytes per second, at least 1.
  public let bytesPerSecond: Int64

  private init(_ bytesPerSecond: Int64) { self.bytesPerSecond = max(1, bytesPerSecond) }

  /// A rate in bytes per second; below 1 it counts as 1.
  public static func bytesPerSecond(_ count: Int64) -> ByteRate { ByteRate(count) }
  /// A rate in kilobytes (1,000 bytes) per second.
  public static func kilobytesPerSecond(_ count: Double) -> ByteRate { ByteRate(scaled(count, by: 1e3)) }
  /// A rate in megabytes (1,000,000 bytes) per second.
  public static func megabytesPerSecond(_ count: Double) -> ByteRate { ByteRate(scaled(count, by: 1e6)) }
  /// A rate in mebibytes (1,048,576 bytes) per second.
  public static func mebibytesPerSecond(_ count: Double) -> ByteRate { ByteRate(scaled(count, by: 1_048_576)) }

  private static func scaled(_ count: Double, by unit: Double) -> Int64 {
    // NaN compares as false.
    count * unit < 9e18 ? Int64(max(0, count * unit)) : (count > 0 ? .max : 0)
  }

  /// The rate with its unit, such as `20.0 MB/s`.
  public var description: String { ByteFormat.decimal.speed(Double(bytesPerSecond)) }

  /// Compares the numbers of bytes.
  public static func < (left: Self, right: Self) -> Bool { left.bytesPerSecond < right.bytesPerSecond }
}
