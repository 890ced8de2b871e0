import DownpipeCore
import Foundation

/// Reads the XML format: only the elements of Apple's PropertyList-1.0.dtd, no document type definitions, and therefore
/// no entities except XML's predefined five and character references.
struct XMLPropertyListReader {
  private let bytes: [UInt8]
  private var at = 0
  private var budget = PropertyListBudget()

  init(_ data: Data) {
    bytes = [UInt8](data)
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { at = 3 }
  }

  mutating func read() throws(PropertyListError) -> PropertyList {
    guard case .start("plist", isEmpty: false)? = try tag() else {
      throw PropertyListError("it is not a property list: pass the data that URLSession returned as resume data")
    }
    guard let first = try tag() else { throw broken("it has no value") }
    let value = try self.value(first, depth: 0)
    guard case .end("plist")? = try tag() else { throw broken("there is no </plist> after the value") }
    guard try tag() == nil else { throw broken("there is content after </plist>") }
    return value
  }

  private enum Tag: Equatable {
    case start(String, isEmpty: Bool)
    case end(String)
  }

  private mutating func value(_ tag: Tag, depth: Int) throws(PropertyListError) -> PropertyList {
    try budget.spend(depth: depth)
    guard case .start(let name, let isEmpty) = tag else { throw broken("an end tag has no start tag") }
    switch name {
    case "true", "false":
      if !isEmpty { _ = try text(until: name, depth: depth) }
      return .boolean(name == "true")
    case "array": return .array(isEmpty ? [] : try array(depth: depth))
    case "dict": return isEmpty ? .dictionary([:]) : try dictionary(depth: depth)
    case "string": return .string(isEmpty ? "" : try text(until: name, depth: depth))
    case "data":
      let text = isEmpty ? "" : try text(until: name, depth: depth)
      let digits = text.utf8.filter { !Self.isBlank($0) }
      guard let data = Data(base64Encoded: Data(digits)) else { throw broken("<data> is not Base64") }
      return .data(data)
    case "integer": return .integer(try integer(isEmpty ? "" : try text(until: name, depth: depth)))
    case "real":
      let text = try isEmpty ? "" : text(until: name, depth: depth).trimmingCharacters(in: .whitespacesAndNewlines)
      guard text.utf8.count <= 64, let value = Double(text) else { throw broken("<real> is not a number") }
      return .real(value)
    case "date":
      let text = try isEmpty ? "" : text(until: name, depth: depth).trimmingCharacters(in: .whitespacesAndNewlines)
      // Only the format 2001-01-01T00:00:00Z.
      guard text.utf8.count == 20, let date = try? Date(text, strategy: .iso8601) else {
        throw broken("<date> is not a date")
      }
      return .date(date.timeIntervalSinceReferenceDate)
    default: throw broken("<\(name.prefix(32).escaped)> is not an element of property lists")
    }
  }

  private mutating func array(depth: Int) throws(PropertyListError) -> [PropertyList] {
    var values: [PropertyList] = []
    while let next = try tag() {
      if next == .end("array") { return values }
      values.append(try value(next, depth: depth + 1))
    }
    throw broken("an array does not end")
  }

  private mutating func dictionary(depth: Int) throws(PropertyListError) -> PropertyList {
    var values: [String: PropertyList] = [:]
    while let next = try tag() {
      if next == .end("dict") { return Self.reference(values) ?? .dictionary(values) }
      guard case .start("key", let isEmpty) = next else { throw broken("a <key> is missing") }
      let key = isEmpty ? "" : try text(until: "key", depth: depth + 1)
      guard let next = try tag() else { break }
      let value = try value(next, depth: depth + 1)
      guard values.updateValue(value, forKey: key) == nil else { throw broken("a key is duplicated") }
    }
    throw broken("a dictionary does not end")
  }

  /// The reference of a keyed archive that Core Foundation writes as a dictionary.
  private static func reference(_ values: [String: PropertyList]) -> PropertyList? {
    guard values.count == 1, let number = values["CF$UID"]?.integer, let uid = UInt32(exactly: number) else {
      return nil
    }
    return .uid(uid)
  }

  private func integer(_ text: String) throws(PropertyListError) -> Int128 {
    let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
    var digits = text[...]
    let isNegative = digits.hasPrefix("-")
    if isNegative || digits.hasPrefix("+") { digits = digits.dropFirst() }
    let isHexadecimal = digits.hasPrefix("0x") || digits.hasPrefix("0X")
    if isHexadecimal { digits = digits.dropFirst(2) }
    // Int128's initialiser would accept another sign.
    guard digits.first?.isHexDigit == true, digits.utf8.count <= 32,
      let size = Int128(digits, radix: isHexadecimal ? 16 : 10)
    else { throw broken("<integer> is not an integer") }
    let value = isNegative ? -size : size
    guard PropertyList.integers.contains(value) else { throw broken("an <integer> has more than 64 bits") }
    return value
  }

  // MARK: - Tokens

  /// The next tag after white space, comments, the XML declaration and the document type; `nil` at the end.
  private mutating func tag() throws(PropertyListError) -> Tag? {
    while true {
      while at < bytes.count, Self.isBlank(bytes[at]) { at += 1 }
      if at == bytes.count { return nil }
      guard bytes[at] == UInt8(ascii: "<") else { throw broken("there is text between the elements") }
      if consume("<!--") {
        try skip(past: "-->")
      } else if consume("<?") {
        try skip(past: "?>")
      } else if consume("<!DOCTYPE") {
        while at < bytes.count, bytes[at] != UInt8(ascii: ">") {
          guard bytes[at] != UInt8(ascii: "[") else {
            throw broken("its document type declares entities, which are not supported")
          }
          at += 1
        }
        try skip(past: ">")
      } else {
        return try element()
      }
    }
  }

  /// Reads a tag that starts at `<`; attributes are skipped.
  private mutating func element() throws(PropertyListError) -> Tag {
    at += 1
    let isEnd = consume("/")
    let start = at
    while at < bytes.count, Self.isLetter(bytes[at]) { at += 1 }
    let name = String(decoding: bytes[start..<at], as: UTF8.self)
    var last: UInt8 = 0
    var quote: UInt8?
    while at < bytes.count {
      let byte = bytes[at]
      at += 1
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: ">") {
        return isEnd ? .end(name) : .start(name, isEmpty: last == UInt8(ascii: "/"))
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      }
      last = byte
    }
    throw broken("a tag does not end")
  }

  /// The text of an element without child elements, up to and including its end tag.
  private mutating func text(until name: String, depth: Int) throws(PropertyListError) -> String {
    var found: [UInt8] = []
    while at < bytes.count {
      switch bytes[at] {
      case UInt8(ascii: "&"):
        found += try reference()
      case UInt8(ascii: "<"):
        if consume("<!--") {
          try skip(past: "-->")
        } else if consume("<![CDATA[") {
          let start = at
          try skip(past: "]]>")
          found += bytes[start..<at - 3]
        } else {
          guard try element() == .end(name) else { throw broken("<\(name)> does not end") }
          try budget.spend(found.count, depth: depth)
          guard let text = String(validating: found, as: UTF8.self) else { throw broken("its text is not UTF-8") }
          guard text.unicodeScalars.allSatisfy(XMLCharacter.isAllowed) else {
            throw broken("it contains control characters")
          }
          return text
        }
      default:
        found.append(bytes[at])
        at += 1
      }
    }
    throw broken("<\(name)> does not end")
  }

  /// A predefined entity or a character reference.
  private mutating func reference() throws(PropertyListError) -> [UInt8] {
    guard let end = bytes[at...].prefix(12).firstIndex(of: UInt8(ascii: ";")) else {
      throw broken("a reference does not end")
    }
    let name = String(decoding: bytes[at + 1..<end], as: UTF8.self)
    at = end + 1
    switch name {
    case "lt": return Array("<".utf8)
    case "gt": return Array(">".utf8)
    case "amp": return Array("&".utf8)
    case "quot": return Array("\"".utf8)
    case "apos": return Array("'".utf8)
    default:
      let digits = name.hasPrefix("#x") ? name.dropFirst(2) : name.dropFirst(1)
      guard name.hasPrefix("#"), digits.first?.isHexDigit == true,
        let number = UInt32(digits, radix: name.hasPrefix("#x") ? 16 : 10), let scalar = Unicode.Scalar(number)
      else { throw broken("&\(name.escaped); is not supported") }
      return Array(String(Character(scalar)).utf8)
    }
  }

  private mutating func consume(_ text: StaticString) -> Bool {
    let found = text.withUTF8Buffer { bytes[at...].starts(with: $0) }
    if found { at += text.utf8CodeUnitCount }
    return found
  }

  private mutating func skip(past text: StaticString) throws(PropertyListError) {
    while at < bytes.count {
      if consume(text) { return }
      at += 1
    }
    throw broken("it is truncated")
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

  private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

  private func broken(_ what: String) -> PropertyListError {
    PropertyListError("an XML property list in it is damaged (\(what)); copy it again from the original")
  }
}
