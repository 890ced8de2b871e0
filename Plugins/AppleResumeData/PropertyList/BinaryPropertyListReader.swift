import Foundation

/// Reads `bplist00`: a header, the objects, a table of their offsets, and a trailer of 32 bytes with the position of
/// the table. Core Foundation's CFBinaryPList.c documents the format.
struct BinaryPropertyListReader {
  private let bytes: [UInt8]
  private let offsetSize: Int
  private let referenceSize: Int
  private let count: Int
  private let root: Int
  private let table: Int
  private var budget = PropertyListBudget()

  init(_ data: Data) throws(PropertyListError) {
    let bytes = [UInt8](data)
    guard bytes.count >= 8 + 1 + 1 + 32, bytes.starts(with: "bplist00".utf8) else { throw Self.broken("its header") }
    let trailer = bytes.count - 32
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    func word(_ at: Int) -> UInt64 { bytes[at..<at + 8].reduce(0) { $0 << 8 | UInt64($1) } }
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
      // Each object takes at least one byte, and its offset another.
      let count = Int(exactly: word(trailer + 8)), (1...trailer).contains(count),
      let root = Int(exactly: word(trailer + 16)), root < count,
      let table = Int(exactly: word(trailer + 24)), (9...trailer).contains(table),
      count * offsetSize <= trailer - table
    else { throw Self.broken("its trailer") }
    self.bytes = bytes
    self.count = count
    self.root = root
    self.table = table
  }

  mutating func read() throws(PropertyListError) -> PropertyList { try object(root, depth: 0) }

  private mutating func object(_ index: Int, depth: Int) throws(PropertyListError) -> PropertyList {
    try budget.spend(depth: depth)
    guard index < count else { throw Self.broken("a reference") }
    guard let offset = Int(exactly: try number(table + index * offsetSize, offsetSize, before: bytes.count)),
      (8..<table).contains(offset)
    else { throw Self.broken("an offset") }
    let low = Int(bytes[offset] & 0x0F)
    switch bytes[offset] >> 4 {
    case 0x0 where low == 8: return .boolean(false)
    case 0x0 where low == 9: return .boolean(true)
    case 0x1 where low <= 4: return .integer(try integer(offset + 1, 1 << low))
    case 0x2 where low == 2:
      return .real(Double(Float(bitPattern: UInt32(truncatingIfNeeded: try number(offset + 1, 4)))))
    case 0x2 where low == 3: return .real(Double(bitPattern: try number(offset + 1, 8)))
    case 0x3 where low == 3: return .date(Double(bitPattern: try number(offset + 1, 8)))
    case 0x4: return .data(Data(try content(offset, low, width: 1, depth: depth)))
    case 0x5:
      let text = try content(offset, low, width: 1, depth: depth)
      guard text.allSatisfy({ $0 < 0x80 }) else { throw Self.broken("a string") }
      return .string(String(decoding: text, as: UTF8.self))
    case 0x6:
      let text = try content(offset, low, width: 2, depth: depth)
      let units = stride(from: text.startIndex, to: text.endIndex, by: 2).map { at in
        UInt16(text[at]) << 8 | UInt16(text[at + 1])
      }
      guard let string = String(validating: units, as: UTF16.self) else { throw Self.broken("a string") }
      return .string(string)
    case 0x8 where low < 8:
      guard let uid = UInt32(exactly: try number(offset + 1, low + 1)) else { throw Self.broken("a reference") }
      return .uid(uid)
    case 0xA: return .array(try array(offset, low, depth: depth))
    case 0xD: return .dictionary(try dictionary(offset, low, depth: depth))
    default: throw Self.broken("an object of an unknown type")
    }
  }

  private mutating func array(_ offset: Int, _ low: Int, depth: Int) throws(PropertyListError) -> [PropertyList] {
    let items = try references(offset, low, perItem: 1)
    var values: [PropertyList] = []
    values.reserveCapacity(items.count)
    for item in items { values.append(try object(item, depth: depth + 1)) }
    return values
  }

  private mutating func dictionary(
    _ offset: Int, _ low: Int, depth: Int
  ) throws(PropertyListError) -> [String: PropertyList] {
    let items = try references(offset, low, perItem: 2)
    let half = items.count / 2
    var values: [String: PropertyList] = [:]
    for at in 0..<half {
      guard let key = try object(items[at], depth: depth + 1).string else { throw Self.broken("a key") }
      let value = try object(items[half + at], depth: depth + 1)
      guard values.updateValue(value, forKey: key) == nil else { throw Self.broken("a duplicate key") }
    }
    return values
  }

  /// The references of a container, keys first.
  private func references(_ offset: Int, _ low: Int, perItem: Int) throws(PropertyListError) -> [Int] {
    let (start, items) = try length(offset, low)
    // This cannot overflow: `items` is at most the size of the file.
    guard items * perItem * referenceSize <= table - start else { throw Self.broken("the size of a container") }
    var found: [Int] = []
    found.reserveCapacity(items * perItem)
    for at in 0..<items * perItem {
      guard let index = Int(exactly: try number(start + at * referenceSize, referenceSize)) else {
        throw Self.broken("a reference")
      }
      found.append(index)
    }
    return found
  }

  private mutating func content(
    _ offset: Int, _ low: Int, width: Int, depth: Int
  ) throws(PropertyListError) -> ArraySlice<UInt8> {
    let (start, items) = try length(offset, low)
    guard items * width <= table - start else { throw Self.broken("a length") }
    try budget.spend(items * width, depth: depth)
    return bytes[start..<start + items * width]
  }

  /// Where the content of a value starts, and its number of units. A number above 14 is a separate integer.
  private func length(_ offset: Int, _ low: Int) throws(PropertyListError) -> (start: Int, items: Int) {
    guard low == 0x0F else { return (offset + 1, low) }
    guard offset + 1 < table, bytes[offset + 1] >> 4 == 0x1, bytes[offset + 1] & 0x0F <= 3 else {
      throw Self.broken("a length")
    }
    let size = 1 << Int(bytes[offset + 1] & 0x0F)
    guard let items = Int(exactly: try number(offset + 2, size)), items <= bytes.count else {
      throw Self.broken("a length")
    }
    return (offset + 2 + size, items)
  }

  /// Integers of up to four bytes are unsigned, longer ones are signed.
  private func integer(_ offset: Int, _ size: Int) throws(PropertyListError) -> Int128 {
    if size < 8 { return Int128(try number(offset, size)) }
    if size == 8 { return Int128(Int64(bitPattern: try number(offset, 8))) }
    let value = Int128(Int64(bitPattern: try number(offset, 8))) << 64 | Int128(try number(offset + 8, 8))
    guard PropertyList.integers.contains(value) else { throw Self.broken("an integer of more than 64 bits") }
    return value
  }

  private func number(_ offset: Int, _ size: Int, before end: Int? = nil) throws(PropertyListError) -> UInt64 {
    guard size <= (end ?? table) - offset else { throw Self.broken("a number") }
    return bytes[offset..<offset + size].reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static func broken(_ what: String) -> PropertyListError {
    PropertyListError("a binary property list in it is damaged (\(what)); copy it again from the original")
  }
}
