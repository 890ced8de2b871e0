/// Packs bytes into a gzip file (RFC 1952) of stored blocks (RFC 1951 §3.2.4): enough for a file to be unpacked,
/// without a packer.
enum StoredGzip {
  /// The gzip file.
  static func pack(_ bytes: [UInt8]) -> [UInt8] {
    // No name, no time, an unknown system.
    var packed: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
    packed.reserveCapacity(bytes.count + bytes.count / 1000 + 64)
    var rest = bytes[...]
    repeat {
      let block = rest.prefix(0xFFFF)
      rest = rest.dropFirst(block.count)
      let length = UInt16(block.count)
      packed.append(rest.isEmpty ? 1 : 0)
      append(length, to: &packed)
      append(~length, to: &packed)
      packed += block
    } while !rest.isEmpty
    append(crc32(bytes), to: &packed)
    append(UInt32(truncatingIfNeeded: bytes.count), to: &packed)
    return packed
  }

  private static func append(_ value: some FixedWidthInteger, to bytes: inout [UInt8]) {
    for shift in stride(from: 0, to: value.bitWidth, by: 8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
  }

  /// CRC-32 as gzip has it (RFC 1952 §8).
  static func crc32(_ bytes: [UInt8]) -> UInt32 {
    let table = (0..<256).map { entry(UInt32($0)) }
    var crc: UInt32 = 0xFFFF_FFFF
    for byte in bytes { crc = table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] ^ (crc >> 8) }
    return ~crc
  }

  private static func entry(_ index: UInt32) -> UInt32 {
    var crc = index
    for _ in 0..<8 { crc = crc & 1 == 1 ? 0xEDB8_8320 ^ (crc >> 1) : crc >> 1 }
    return crc
  }
}
