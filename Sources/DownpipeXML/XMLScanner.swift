/// Why a document cannot be read.
package struct MalformedXML: Error, Equatable {
  package let reason: String

  package init(reason: String) { self.reason = reason }
}

/// Reads the elements of an XML document that has no document type declaration.
///
/// Foundation's parser is not used: on Linux it ends the process on some malformed names, also in valid UTF-8, such as in
/// `<xmlns:q="">`, and a document comes from an untrusted server. Namespaces are left to the caller. Memory is that of one
/// tag or text.
package struct XMLScanner {
  package enum Event: Equatable {
    case start(String, [String: String])
    case end(String)
    case text(String)
  }

  private static let mostAttributes = 64
  private let bytes: [UInt8]
  private var place = 0
  /// The name of an element without content, whose end is the next event.
  private var emptyElement: String?

  /// - Parameter bytes: The document in UTF-8.
  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { place = 3 }
  }

  /// The number of the line in which the scanner is.
  package var line: Int { bytes[..<place].count { $0 == UInt8(ascii: "\n") } + 1 }

  /// Returns the next event; `nil` at the end of the document.
  /// - Throws: ``MalformedXML`` when the document is not well-formed.
  package mutating func next() throws(MalformedXML) -> Event? {
    if let name = emptyElement {
      emptyElement = nil
      return .end(name)
    }
    while place < bytes.count {
      if bytes[place] != UInt8(ascii: "<") { return .text(try text()) }
      if consume("<?") {
        _ = try through("?>")
      } else if consume("<!--") {
        _ = try through("-->")
      } else if consume("<![CDATA[") {
        return .text(String(decoding: try through("]]>"), as: UTF8.self))
      } else if consume("<!") {
        // Its entities could make a small document a large one, or name files of this computer.
        throw MalformedXML(reason: "it has a document type declaration")
      } else if consume("</") {
        let name = try self.name()
        skipBlanks()
        guard consume(">") else { throw malformed }
        return .end(name)
      } else {
        place += 1
        return try start()
      }
    }
    return nil
  }

  // MARK: Parts

  private mutating func start() throws(MalformedXML) -> Event {
    let name = try name()
    var attributes: [String: String] = [:]
    while true {
      let hasBlank = skipBlanks()
      if consume(">") { return .start(name, attributes) }
      if consume("/>") {
        emptyElement = name
        return .start(name, attributes)
      }
      let key = hasBlank ? try self.name() : ""
      skipBlanks()
      guard !key.isEmpty, consume("="), attributes[key] == nil, attributes.count < Self.mostAttributes else {
        throw malformed
      }
      skipBlanks()
      let isDouble = consume("\"")
      guard isDouble || consume("'") else { throw malformed }
      let value = try through(isDouble ? "\"" : "'")
      guard !value.contains(UInt8(ascii: "<")) else { throw malformed }
      attributes[key] = try resolved(value.map { $0 == 0x09 || $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }[...])
    }
  }

  private mutating func text() throws(MalformedXML) -> String {
    let start = place
    while place < bytes.count, bytes[place] != UInt8(ascii: "<") { place += 1 }
    return try resolved(bytes[start..<place])
  }

  private mutating func name() throws(MalformedXML) -> String {
    let start = place
    while place < bytes.count, Self.isInName(bytes[place], isFirst: place == start) { place += 1 }
    guard place > start else { throw malformed }
    return String(decoding: bytes[start..<place], as: UTF8.self)
  }

  private static func isInName(_ byte: UInt8, isFirst: Bool) -> Bool {
    switch byte {
    case 0x41...0x5A, 0x61...0x7A, 0x80...0xFF, UInt8(ascii: "_"), UInt8(ascii: ":"): true
    case 0x30...0x39, UInt8(ascii: "-"), UInt8(ascii: "."): !isFirst
    default: false
    }
  }

  /// Returns the text in which references to characters are replaced. The five entities of XML are the only ones.
  private func resolved(_ text: ArraySlice<UInt8>) throws(MalformedXML) -> String {
    guard text.contains(UInt8(ascii: "&")) else { return String(decoding: text, as: UTF8.self) }
    var result: [UInt8] = []
    var rest = text
    while let mark = rest.firstIndex(of: UInt8(ascii: "&")) {
      result += rest[..<mark]
      guard let end = rest[mark...].prefix(12).firstIndex(of: UInt8(ascii: ";")),
        let scalar = Self.scalar(String(decoding: rest[(mark + 1)..<end], as: UTF8.self))
      else { throw malformed }
      result += Array(String(Character(scalar)).utf8)
      rest = rest[(end + 1)...]
    }
    return String(decoding: result + rest, as: UTF8.self)
  }

  private static func scalar(_ reference: String) -> Unicode.Scalar? {
    switch reference {
    case "amp": return "&"
    case "lt": return "<"
    case "gt": return ">"
    case "quot": return "\""
    case "apos": return "'"
    default: break
    }
    guard reference.hasPrefix("#") else { return nil }
    let isHexadecimal = reference.hasPrefix("#x")
    let digits = reference.dropFirst(isHexadecimal ? 2 : 1)
    guard digits.first?.isHexDigit == true, let value = UInt32(digits, radix: isHexadecimal ? 16 : 10),
      value >= 0x20 || [0x09, 0x0A, 0x0D].contains(value)
    else { return nil }
    return Unicode.Scalar(value)
  }

  // MARK: Bytes

  private var malformed: MalformedXML { MalformedXML(reason: "it is not well-formed XML (line \(line))") }

  @discardableResult
  private mutating func skipBlanks() -> Bool {
    let start = place
    while place < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[place]) { place += 1 }
    return place > start
  }

  private mutating func consume(_ text: StaticString) -> Bool {
    let isNext = text.withUTF8Buffer { text in
      bytes.count - place >= text.count && text.indices.allSatisfy { bytes[place + $0] == text[$0] }
    }
    if isNext { place += text.utf8CodeUnitCount }
    return isNext
  }

  /// Returns the bytes up to a text, and goes on behind it.
  private mutating func through(_ end: StaticString) throws(MalformedXML) -> ArraySlice<UInt8> {
    let start = place
    while place < bytes.count {
      let found = place
      if consume(end) { return bytes[start..<found] }
      place += 1
    }
    throw malformed
  }
}
