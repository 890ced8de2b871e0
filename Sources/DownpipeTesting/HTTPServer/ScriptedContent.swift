/// The bytes of a served file, generated while they are sent, so that a server can offer a terabyte.
///
/// Each byte is a pure function of its position and the seed, so a test can check any part that it received.
public struct ScriptedContent: Sendable, Hashable {
  private enum Kind: Hashable {
    case pattern(seed: UInt64)
    case bytes([UInt8])
  }

  private let kind: Kind

  /// The number of bytes.
  public let size: Int64

  /// Pseudo-random bytes that do not compress and do not repeat.
  public static func pattern(size: Int64, seed: UInt64 = 1) -> ScriptedContent {
    ScriptedContent(kind: .pattern(seed: seed), size: max(0, size))
  }

  /// A content with the given bytes.
  public static func bytes(_ bytes: [UInt8]) -> ScriptedContent {
    ScriptedContent(kind: .bytes(bytes), size: Int64(bytes.count))
  }

  /// The UTF-8 bytes of a text.
  public static func text(_ text: String) -> ScriptedContent { .bytes(Array(text.utf8)) }

  /// The byte at a position, which must be at least 0 and less than ``size``.
  public func byte(at position: Int64) -> UInt8 {
    switch kind {
    case .bytes(let bytes): bytes[Int(position)]
    case .pattern(let seed):
      UInt8(truncatingIfNeeded: Self.word(position / 8, seed: seed) >> (UInt64(position % 8) * 8))
    }
  }

  /// The bytes of a range, which is clamped to the content.
  public func bytes(in range: Range<Int64>) -> [UInt8] {
    let range = range.clamped(to: 0..<size)
    return [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
      fill(UnsafeMutableRawBufferPointer(buffer), from: range.lowerBound)
      count = range.count
    }
  }

  /// All bytes. Use it for small contents only.
  public var allBytes: [UInt8] { bytes(in: 0..<size) }

  /// Returns whether received bytes equal those at the position.
  public func matches(_ received: RawSpan, at position: Int64) -> Bool {
    let end = position + Int64(received.byteCount)
    guard position >= 0, end <= size else { return false }
    return bytes(in: position..<end).withUnsafeBytes { expected in
      received.withUnsafeBytes { $0.elementsEqual(expected) }
    }
  }

  /// Fills the buffer with the bytes from a position on, all of which must exist.
  func fill(_ buffer: UnsafeMutableRawBufferPointer, from position: Int64) {
    switch kind {
    case .bytes(let bytes):
      bytes.withUnsafeBytes { source in
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[Int(position)..<Int(position) + buffer.count]))
      }
    case .pattern(let seed):
      var index = 0
      var position = position
      while index < buffer.count, position % 8 != 0 {
        buffer[index] = byte(at: position)
        index += 1
        position += 1
      }
      while index + 8 <= buffer.count {
        let word = Self.word(position / 8, seed: seed).littleEndian
        buffer.storeBytes(of: word, toByteOffset: index, as: UInt64.self)
        index += 8
        position += 8
      }
      while index < buffer.count {
        buffer[index] = byte(at: position)
        index += 1
        position += 1
      }
    }
  }

  /// Output number `index` of the SplitMix64 generator, computed without the previous ones.
  private static func word(_ index: Int64, seed: UInt64) -> UInt64 {
    var z = seed &+ (UInt64(bitPattern: index) &+ 1) &* 0x9E37_79B9_7F4A_7C15
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
