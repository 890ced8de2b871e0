internal import Foundation

/// The values of structured header fields (RFC 9651).
///
/// A field that does not parse is ignored as a whole (§4.2). The number of members and the length are bounded, because the
/// field comes from an untrusted server: a longer one does not parse.
package enum StructuredField {
  /// A value without parameters.
  package enum BareItem: Sendable, Hashable {
    case integer(Int64)
    /// A number with at most twelve digits before and three behind the point, in thousandths.
    case decimal(thousandths: Int64)
    case string(String)
    case token(String)
    case bytes([UInt8])
    case boolean(Bool)
    /// Seconds since 1970.
    case date(Int64)
    case displayString(String)
  }

  /// A key with its value.
  package struct Parameter: Sendable, Hashable {
    package let key: String
    package let value: BareItem
  }

  /// A value with its parameters.
  package struct Item: Sendable, Hashable {
    package let value: BareItem
    package let parameters: [Parameter]
  }

  /// A member of a list or dictionary.
  package enum Member: Sendable, Hashable {
    case item(Item)
    case innerList([Item], parameters: [Parameter])
  }

  /// The most bytes of a field: 64 KiB.
  package static let maximumBytes = 65_536
  /// The most members of a list, dictionary, inner list or set of parameters: 1024, as RFC 9651 §3 demands at least.
  package static let maximumMembers = 1024

  /// Parses a field that is one item; `nil` if it is malformed.
  package static func item(_ field: String) -> Item? { parse(field) { $0.item() } }

  /// Parses a field that is a list; `nil` if it is malformed.
  package static func list(_ field: String) -> [Member]? { parse(field) { $0.list() } }

  /// Parses a field that is a dictionary; `nil` if it is malformed. Each key is there once, with the value that counts.
  package static func dictionary(_ field: String) -> [(key: String, member: Member)]? {
    parse(field) { $0.dictionary() }
  }

  private static func parse<Value>(_ field: String, _ read: (inout Reader) -> Value?) -> Value? {
    guard field.utf8.count <= maximumBytes else { return nil }
    var reader = Reader(Array(field.utf8))
    reader.skip(" ")
    guard let value = read(&reader) else { return nil }
    reader.skip(" ")
    return reader.isAtEnd ? value : nil
  }
}

/// Reads the parts of a field, as RFC 9651 §4.2 describes it. Its functions return `nil` for malformed text.
private struct Reader {
  private let text: [UInt8]
  private var position = 0

  init(_ text: [UInt8]) { self.text = text }

  var isAtEnd: Bool { position == text.count }
  private var next: UInt8? { position < text.count ? text[position] : nil }

  mutating func skip(_ characters: String) {
    while let next, characters.utf8.contains(next) { position += 1 }
  }

  private mutating func consume(_ character: Character) -> Bool {
    guard let next, next == character.asciiValue else { return false }
    position += 1
    return true
  }

  // MARK: Lists and dictionaries

  mutating func list() -> [StructuredField.Member]? {
    var members: [StructuredField.Member] = []
    guard !isAtEnd else { return members }
    repeat {
      guard members.count < StructuredField.maximumMembers, let member = member() else { return nil }
      members.append(member)
      guard let hasMore = separator() else { return nil }
      if !hasMore { return members }
    } while true
  }

  mutating func dictionary() -> [(key: String, member: StructuredField.Member)]? {
    var members: [(key: String, member: StructuredField.Member)] = []
    guard !isAtEnd else { return members }
    var count = 0
    repeat {
      count += 1
      guard count <= StructuredField.maximumMembers, let key = key() else { return nil }
      let found: StructuredField.Member?
      if consume("=") {
        found = member()
      } else {
        found = parameters().map { .item(.init(value: .boolean(true), parameters: $0)) }
      }
      guard let found else { return nil }
      // The last value of a key counts, at the place of the first one.
      if let index = members.firstIndex(where: { $0.key == key }) {
        members[index].member = found
      } else {
        members.append((key, found))
      }
      guard let hasMore = separator() else { return nil }
      if !hasMore { return members }
    } while true
  }

  /// Whether a comma follows with another member; `nil` for other text and for a comma at the end.
  private mutating func separator() -> Bool? {
    skip(" \t")
    if isAtEnd { return false }
    guard consume(",") else { return nil }
    skip(" \t")
    return isAtEnd ? nil : true
  }

  private mutating func member() -> StructuredField.Member? {
    guard consume("(") else { return item().map { .item($0) } }
    var items: [StructuredField.Item] = []
    while true {
      skip(" ")
      if consume(")") { return parameters().map { .innerList(items, parameters: $0) } }
      guard items.count < StructuredField.maximumMembers, let item = item() else { return nil }
      items.append(item)
      guard let next, next == UInt8(ascii: " ") || next == UInt8(ascii: ")") else { return nil }
    }
  }

  // MARK: Items

  mutating func item() -> StructuredField.Item? {
    guard let value = bareItem(), let parameters = parameters() else { return nil }
    return .init(value: value, parameters: parameters)
  }

  private mutating func parameters() -> [StructuredField.Parameter]? {
    var parameters: [StructuredField.Parameter] = []
    var count = 0
    while consume(";") {
      count += 1
      skip(" ")
      guard count <= StructuredField.maximumMembers, let key = key() else { return nil }
      var value = StructuredField.BareItem.boolean(true)
      if consume("=") {
        guard let given = bareItem() else { return nil }
        value = given
      }
      if let index = parameters.firstIndex(where: { $0.key == key }) {
        parameters[index] = .init(key: key, value: value)
      } else {
        parameters.append(.init(key: key, value: value))
      }
    }
    return parameters
  }

  private mutating func key() -> String? {
    guard let first = next, Self.isLower(first) || first == UInt8(ascii: "*") else { return nil }
    return text { Self.isLower($0) || Self.isDigit($0) || "_-.*".utf8.contains($0) }
  }

  /// The characters that fulfil a condition.
  private mutating func text(while isPart: (UInt8) -> Bool) -> String {
    let start = position
    while let next, isPart(next) { position += 1 }
    return String(decoding: text[start..<position], as: UTF8.self)
  }

  private mutating func bareItem() -> StructuredField.BareItem? {
    guard let first = next else { return nil }
    switch first {
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return number()
    case UInt8(ascii: "\""): return string().map { .string($0) }
    case UInt8(ascii: "*"): return token()
    case UInt8(ascii: ":"): return bytes().map { .bytes($0) }
    case UInt8(ascii: "?"): return boolean()
    case UInt8(ascii: "@"): return date()
    case UInt8(ascii: "%"): return displayString().map { .displayString($0) }
    default: return Self.isAlpha(first) ? token() : nil
    }
  }

  private mutating func number() -> StructuredField.BareItem? {
    let isNegative = consume("-")
    let whole = text(while: Self.isDigit)
    guard !whole.isEmpty else { return nil }
    guard next == UInt8(ascii: ".") else {
      guard whole.utf8.count <= 15, let value = Int64(whole) else { return nil }
      return .integer(isNegative ? -value : value)
    }
    position += 1
    let fraction = text(while: Self.isDigit)
    guard whole.utf8.count <= 12, (1...3).contains(fraction.utf8.count),
      let value = Int64(whole + fraction + String(repeating: "0", count: 3 - fraction.utf8.count))
    else { return nil }
    return .decimal(thousandths: isNegative ? -value : value)
  }

  private mutating func string() -> String? {
    guard consume("\"") else { return nil }
    var bytes: [UInt8] = []
    while var character = next {
      position += 1
      if character == UInt8(ascii: "\"") { return String(decoding: bytes, as: UTF8.self) }
      if character == UInt8(ascii: "\\") {
        guard let escaped = next, escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\") else { return nil }
        position += 1
        character = escaped
      }
      guard (0x20..<0x7F).contains(character) else { return nil }
      bytes.append(character)
    }
    return nil
  }

  private mutating func token() -> StructuredField.BareItem {
    .token(text { Self.isAlpha($0) || Self.isDigit($0) || "!#$%&'*+-.^_`|~:/".utf8.contains($0) })
  }

  private mutating func bytes() -> [UInt8]? {
    guard consume(":") else { return nil }
    var base64 = text { Self.isAlpha($0) || Self.isDigit($0) || "+/=".utf8.contains($0) }
    guard consume(":") else { return nil }
    // Padding may be missing (§4.2.7).
    if !base64.utf8.count.isMultiple(of: 4), !base64.contains("=") {
      base64 += String(repeating: "=", count: 4 - base64.utf8.count % 4)
    }
    return Data(base64Encoded: base64).map(Array.init)
  }

  private mutating func boolean() -> StructuredField.BareItem? {
    guard consume("?") else { return nil }
    if consume("1") { return .boolean(true) }
    return consume("0") ? .boolean(false) : nil
  }

  private mutating func date() -> StructuredField.BareItem? {
    guard consume("@"), case .integer(let seconds)? = number() else { return nil }
    return .date(seconds)
  }

  private mutating func displayString() -> String? {
    guard consume("%"), consume("\"") else { return nil }
    var bytes: [UInt8] = []
    while let character = next {
      position += 1
      guard (0x20..<0x7F).contains(character) else { return nil }
      switch character {
      case UInt8(ascii: "\""): return String(validating: bytes, as: UTF8.self)
      case UInt8(ascii: "%"):
        guard let high = hexDigit(), let low = hexDigit() else { return nil }
        bytes.append(high << 4 | low)
      default: bytes.append(character)
      }
    }
    return nil
  }

  /// A hexadecimal digit in lower case.
  private mutating func hexDigit() -> UInt8? {
    guard let next else { return nil }
    position += 1
    switch next {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): return next - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): return next - UInt8(ascii: "a") + 10
    default: return nil
    }
  }

  private static func isLower(_ character: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(character)
  }
  private static func isAlpha(_ character: UInt8) -> Bool { isLower(character | 0x20) }
  private static func isDigit(_ character: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character)
  }
}
