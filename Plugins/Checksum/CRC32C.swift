/// CRC-32C: the CRC with Castagnoli's polynomial (RFC 9260 Appendix A), eight bytes at a time by tables.
struct CRC32C: Sendable {
  /// The complement of the checksum, as the tables need it.
  private var state: UInt32 = .max

  /// The checksum of the bytes so far.
  var value: UInt32 { ~state }

  /// Takes the next bytes.
  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    var crc = state
    Self.tables.withUnsafeBufferPointer { tables in
      var index = 0
      while bytes.count - index >= 8 {
        let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)) ^ UInt64(crc)
        crc = 0
        for byte in 0..<8 { crc ^= tables[(7 - byte) << 8 | Int(truncatingIfNeeded: word >> (8 * byte) & 0xFF)] }
        index += 8
      }
      while index < bytes.count {
        crc = crc >> 8 ^ tables[Int(UInt8(truncatingIfNeeded: crc) ^ bytes[index])]
        index += 1
      }
    }
    state = crc
  }

  /// Eight tables of 256 values, one after the other: what a byte adds that many bytes later.
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 8 << 8)
    for byte in 0..<256 {
      var crc = UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 0 ? crc >> 1 : crc >> 1 ^ 0x82F6_3B78 }
      tables[byte] = crc
    }
    for index in 256..<tables.count {
      let earlier = tables[index - 256]
      tables[index] = earlier >> 8 ^ tables[Int(earlier & 0xFF)]
    }
    return tables
  }()
}
