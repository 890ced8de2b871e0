public import Foundation

/// A 128-bit key that sorts waiting downloads. The smallest key goes first.
///
/// A rank is composed of parts: each part decides between ranks whose previous parts are equal.
/// ```swift
/// Rank().descending(context.priority).ascending(context.arrival)
/// ```
/// A part that does not fit into what is left of the 128 bits is cut: its highest bits decide, and numbers that differ
/// only in the others rank alike. Of what is appended to a full rank nothing is left.
public struct Rank: Sendable, Hashable, Comparable {
  /// The 128 bits of the key.
  @_spi(Ledger) public private(set) var value: UInt128
  private var bitsUsed = 0

  /// Creates a rank without parts.
  public init() { value = 0 }

  /// Creates a rank from its 128 bits, as ledgers store them.
  @_spi(Ledger) public init(value: UInt128) {
    self.value = value
    bitsUsed = 128
  }

  /// Appends a number in `bits` bits. A larger number is replaced by the largest that fits.
  ///
  /// - Parameters:
  ///   - number: The number; the smallest goes first.
  ///   - bits: The number of bits, moved into 0 … 64.
  public func appending(_ number: UInt64, bits: Int) -> Rank {
    let bits = min(max(0, bits), 64)
    let limit = bits == 64 ? UInt64.max : (1 << UInt64(bits)) - 1
    let kept = min(bits, 128 - bitsUsed)
    var copy = self
    copy.bitsUsed += kept
    copy.value |= UInt128(min(number, limit) >> UInt64(bits - kept)) << UInt128(128 - copy.bitsUsed)
    return copy
  }

  /// Appends a priority (16 bits), the highest first.
  public func descending(_ priority: Priority) -> Rank {
    appending(UInt64(Int32(Int16.max) - Int32(priority.rawValue)), bits: 16)
  }

  /// Appends a number (64 bits), the smallest first. A negative number counts as 0.
  public func ascending(_ number: Int64) -> Rank { appending(UInt64(max(0, number)), bits: 64) }

  /// Appends a number (64 bits), the largest first. A negative number counts as 0.
  public func descending(_ number: Int64) -> Rank { appending(UInt64(Int64.max - max(0, number)), bits: 64) }

  /// Appends a date (48 bits of milliseconds since 1970), the earliest first. A date before 1970 counts as 1970.
  public func ascending(_ date: Date) -> Rank { appending(Self.milliseconds(date), bits: 48) }

  /// Appends a date (48 bits of milliseconds since 1970), the latest first. A date before 1970 counts as 1970.
  public func descending(_ date: Date) -> Rank { appending(Self.lastInstant - Self.milliseconds(date), bits: 48) }

  /// Appends the beginning of a text (8 bits for each byte of its UTF-8), in the order of its bytes.
  ///
  /// - Parameters:
  ///   - text: The text. Later parts decide between texts with the same beginning.
  ///   - bytes: The number of bytes that count, moved into 1 … 8.
  public func ascending(_ text: String, bytes: Int = 6) -> Rank {
    let bytes = min(max(1, bytes), 8)
    var key: UInt64 = 0
    var rest = text.utf8.makeIterator()
    for _ in 0..<bytes { key = key << 8 | UInt64(rest.next() ?? 0) }
    return appending(key, bits: 8 * bytes)
  }

  private static let lastInstant: UInt64 = 1 << 48 - 1

  private static func milliseconds(_ date: Date) -> UInt64 {
    let milliseconds = (date.timeIntervalSince1970 * 1000).rounded(.down)
    // NaN compares as false and counts as 1970.
    return milliseconds > 0 ? min(lastInstant, UInt64(min(milliseconds, 1e18))) : 0
  }

  /// Whether two keys are equal.
  public static func == (left: Self, right: Self) -> Bool { left.value == right.value }
  /// Hashes the key.
  public func hash(into hasher: inout Hasher) { hasher.combine(value) }
  /// Orders ranks by key.
  public static func < (left: Self, right: Self) -> Bool { left.value < right.value }
}
