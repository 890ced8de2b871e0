import Foundation

/// Writes `bplist00`, with sorted keys, so that equal lists give equal bytes.
struct BinaryPropertyListWriter {
  private var objects: [PropertyList] = []
  /// The indices of the objects in each container.
  private var children: [Int: [Int]] = [:]
  /// The indices of strings. Only strings are shared, because keys repeat.
  private var strings: [String: Int] = [:]

  static func write(_ list: PropertyList) -> Data {
    var writer = BinaryPropertyListWriter()
    _ = writer.add(list)
    return writer.file()
  }

  private mutating func add(_ value: PropertyList) -> Int {
    // Swift compares strings by canonical equivalence, so strings with different scalars can be equal: only ASCII is
    // safe to share.
    let shared = value.string.flatMap { text in text.utf8.allSatisfy { $0 < 0x80 } ? text : nil }
    if let shared, let known = strings[shared] { return known }
    let index = objects.count
    objects.append(value)
    if let shared { strings[shared] = index }
    switch value {
    case .array(let items): children[index] = items.map { add($0) }
    case .dictionary(let items):
      let sorted = items.sorted { $0.key < $1.key }
      children[index] = sorted.map { add(.string($0.key)) } + sorted.map { add($0.value) }
    default: break
    }
    return index
  }

  private func file() -> Data {
    let referenceSize = Self.size(UInt64(objects.count))
    var bytes = Array("bplist00".utf8)
    var offsets: [Int] = []
    for (index, object) in objects.enumerated() {
      offsets.append(bytes.count)
      encode(object, to: &bytes)
      for child in children[index] ?? [] { bytes.append(number: UInt64(child), size: referenceSize) }
    }
    let table = bytes.count
    let offsetSize = Self.size(UInt64(table))
    for offset in offsets { bytes.append(number: UInt64(offset), size: offsetSize) }
    bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    for number in [objects.count, 0, table] { bytes.append(number: UInt64(number), size: 8) }
    return Data(bytes)
  }

  private func encode(_ value: PropertyList, to bytes: inout [UInt8]) {
    switch value {
    case .boolean(let value): bytes.append(value ? 0x09 : 0x08)
    case .integer(let value): Self.encode(value, to: &bytes)
    case .real(let value):
      bytes.append(0x23)
      bytes.append(number: value.bitPattern, size: 8)
    case .date(let value):
      bytes.append(0x33)
      bytes.append(number: value.bitPattern, size: 8)
    case .data(let value):
      Self.begin(0x40, value.count, to: &bytes)
      bytes += value
    case .string(let value) where value.utf8.allSatisfy({ $0 < 0x80 }):
      Self.begin(0x50, value.utf8.count, to: &bytes)
      bytes += value.utf8
    case .string(let value):
      Self.begin(0x60, value.utf16.count, to: &bytes)
      for unit in value.utf16 { bytes.append(number: UInt64(unit), size: 2) }
    case .uid(let value):
      let size = Self.size(UInt64(value))
      bytes.append(0x80 | UInt8(size - 1))
      bytes.append(number: UInt64(value), size: size)
    case .array(let items): Self.begin(0xA0, items.count, to: &bytes)
    case .dictionary(let items): Self.begin(0xD0, items.count, to: &bytes)
    }
  }

  private static func begin(_ marker: UInt8, _ count: Int, to bytes: inout [UInt8]) {
    bytes.append(marker | UInt8(min(count, 0x0F)))
    if count >= 0x0F { encode(Int128(count), to: &bytes) }
  }

  private static func encode(_ value: Int128, to bytes: inout [UInt8]) {
    if value < 0 {
      bytes.append(0x13)
      bytes.append(number: UInt64(bitPattern: Int64(truncatingIfNeeded: value)), size: 8)
    } else if value > Int128(Int64.max) {
      bytes.append(0x14)
      bytes.append(number: 0, size: 8)
      bytes.append(number: UInt64(truncatingIfNeeded: value), size: 8)
    } else {
      let size = size(UInt64(value))
      bytes.append(0x10 | UInt8(size.trailingZeroBitCount))
      bytes.append(number: UInt64(value), size: size)
    }
  }

  /// The smallest size of a number in bytes: 1, 2, 4 or 8.
  private static func size(_ number: UInt64) -> Int {
    switch number {
    case ...0xFF: 1
    case ...0xFFFF: 2
    case ...0xFFFF_FFFF: 4
    default: 8
    }
  }
}

extension [UInt8] {
  fileprivate mutating func append(number: UInt64, size: Int) {
    for at in (0..<size).reversed() { append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(at)))) }
  }
}
