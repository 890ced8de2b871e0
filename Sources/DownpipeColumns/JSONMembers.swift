/// The members of a JSON object (RFC 8259). Objects and arrays in it remain text, for the decoder of what they are.
///
/// Foundation's decoder would have to be told the type of each member before, and does not return the text of one.
package struct JSONMembers {
  /// A value. Numbers without a fraction or an exponent are integers, and so are `true` (1) and `false` (0).
  package enum Value: Hashable, Sendable {
    case integer(Int64)
    case real(Double)
    case string(String)
    /// The text of an object or an array, which may be no JSON.
    case json(String)
  }

  /// The members by name, without those that are `null`.
  package private(set) var values: [String: Value] = [:]

  private var bytes: ArraySlice<UInt8>

  /// - Throws: ``RecordLine/Damage`` for what is no object, and for a name that occurs twice.
  package init(_ text: some Collection<UInt8>) throws(RecordLine.Damage) {
    bytes = Array(text)[...]
    skipBlanks()
    guard take(UInt8(ascii: "{")) else { throw Self.damage }
    skipBlanks()
    if !take(UInt8(ascii: "}")) {
      repeat { try readMember() } while take(UInt8(ascii: ","))
      guard take(UInt8(ascii: "}")) else { throw Self.damage }
    }
    skipBlanks()
    guard bytes.isEmpty else { throw Self.damage }
  }

  private static let damage = RecordLine.Damage(reason: "it is not a JSON object")

  // MARK: Reading

  private mutating func skipBlanks() {
    while let first = bytes.first, [0x20, 0x09, 0x0A, 0x0D].contains(first) { bytes.removeFirst() }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard bytes.first == byte else { return false }
    bytes.removeFirst()
    return true
  }

  /// Reads a member, and the blanks around it.
  private mutating func readMember() throws(RecordLine.Damage) {
    skipBlanks()
    let name = try readString()
    skipBlanks()
    guard take(UInt8(ascii: ":")) else { throw Self.damage }
    skipBlanks()
    let value = try readValue()
    skipBlanks()
    guard values[name] == nil else { throw RecordLine.Damage(reason: "its member “\(name.prefix(50))” occurs twice") }
    values[name] = value
  }

  /// - Returns: `nil` for `null`.
  private mutating func readValue() throws(RecordLine.Damage) -> Value? {
    switch bytes.first {
    case UInt8(ascii: "\""): return .string(try readString())
    case UInt8(ascii: "{"), UInt8(ascii: "["): return .json(try readNested())
    default: break
    }
    let end = bytes.firstIndex { !Self.isPartOfWord($0) } ?? bytes.endIndex
    let word = String(decoding: bytes[..<end], as: UTF8.self)
    bytes = bytes[end...]
    switch word {
    case "null": return nil
    case "true": return .integer(1)
    case "false": return .integer(0)
    default:
      if let integer = Int64(word) { return .integer(integer) }
      guard word.utf8.allSatisfy({ $0 < UInt8(ascii: "A") || $0 == UInt8(ascii: "e") || $0 == UInt8(ascii: "E") }),
        let real = Double(word)
      else { throw Self.damage }
      return .real(real)
    }
  }

  private static func isPartOfWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"),
      UInt8(ascii: "+"),
      UInt8(ascii: "."), UInt8(ascii: "E"):
      true
    default: false
    }
  }

  /// Reads an object or an array up to its last bracket, without judging what is between.
  private mutating func readNested() throws(RecordLine.Damage) -> String {
    var (depth, isInString, isEscaped) = (0, false, false)
    for index in bytes.indices {
      let byte = bytes[index]
      if isEscaped {
        isEscaped = false
      } else if isInString {
        if byte == UInt8(ascii: "\\") { isEscaped = true } else if byte == UInt8(ascii: "\"") { isInString = false }
      } else {
        switch byte {
        case UInt8(ascii: "\""): isInString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
        default: break
        }
      }
      if depth == 0 {
        let end = bytes.index(after: index)
        guard let text = String(validating: bytes[..<end], as: UTF8.self) else { break }
        bytes = bytes[end...]
        return text
      }
    }
    throw Self.damage
  }

  private mutating func readString() throws(RecordLine.Damage) -> String {
    guard take(UInt8(ascii: "\"")) else { throw Self.damage }
    var unescaped: [UInt8] = []
    while let end = bytes.firstIndex(where: { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") || $0 < 0x20 }) {
      unescaped += bytes[..<end]
      let byte = bytes[end]
      bytes = bytes[(end + 1)...]
      switch byte {
      case UInt8(ascii: "\""):
        guard let text = String(validating: unescaped, as: UTF8.self) else { throw Self.damage }
        return text
      case UInt8(ascii: "\\"): try readEscape(into: &unescaped)
      default: throw Self.damage
      }
    }
    throw Self.damage
  }

  /// Reads an escape after its backslash.
  private mutating func readEscape(into text: inout [UInt8]) throws(RecordLine.Damage) {
    guard let kind = bytes.popFirst() else { throw Self.damage }
    switch kind {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(kind)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      var number = try readHex()
      // The first half of a pair, for a character beyond U+FFFF.
      if (0xD800..<0xDC00).contains(number) {
        guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw Self.damage }
        let second = try readHex()
        guard (0xDC00..<0xE000).contains(second) else { throw Self.damage }
        number = 0x10000 + (number - 0xD800) << 10 + (second - 0xDC00)
      }
      guard let scalar = Unicode.Scalar(number) else { throw Self.damage }
      text += Array(String(scalar).utf8)
    default: throw Self.damage
    }
  }

  private mutating func readHex() throws(RecordLine.Damage) -> UInt32 {
    let digits = bytes.prefix(4)
    guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
      let number = UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
    else { throw Self.damage }
    bytes = bytes.dropFirst(4)
    return number
  }

  // MARK: Writing

  /// A text as JSON.
  package static func quoted(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
    if isPlain { return "\"\(text)\"" }
    var quoted: [UInt8] = [UInt8(ascii: "\"")]
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): quoted += [UInt8(ascii: "\\"), byte]
      case 0..<0x20: quoted += escape(UInt32(byte))
      default: quoted.append(byte)
      }
    }
    quoted.append(UInt8(ascii: "\""))
    return String(decoding: quoted, as: UTF8.self)
  }

  /// JSON with escapes for the characters in its strings that end a line for some readers, or that control a terminal.
  package static func withoutSeparators(_ json: [UInt8]) -> [UInt8] {
    guard json.contains(where: { $0 == 0x7F || $0 == 0xC2 || $0 == 0xE2 }) else { return json }
    var escaped: [UInt8] = []
    escaped.reserveCapacity(json.count + 16)
    for scalar in String(decoding: json, as: UTF8.self).unicodeScalars {
      switch scalar.value {
      case 0x7F...0x9F, 0x2028, 0x2029: escaped += escape(scalar.value)
      default: escaped += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
      }
    }
    return escaped
  }

  private static func escape(_ number: UInt32) -> [UInt8] {
    let digits = String(number, radix: 16)
    return Array(("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8)
  }
}
