extension ContentDisposition {
  /// Splits the field at its semicolons.
  struct Parser {
    /// A parameter, or the disposition type.
    struct Part {
      /// The name in lower case.
      var name: String
      /// The value without quotation marks and escapes; `nil` when there is no equals sign.
      var value: [UInt8]?
      var isQuoted = false
    }

    private let octets: [UInt8]
    private var position = 0

    private static let semicolon = UInt8(ascii: ";")
    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")

    init(_ field: String) {
      // Longer names are of no use, and the field comes from an untrusted server.
      let scalars = field.unicodeScalars.prefix(8192)
      octets =
        scalars.allSatisfy { $0.value <= 0xFF }
        ? scalars.map { UInt8($0.value) } : Array(String(String.UnicodeScalarView(scalars)).utf8)
    }

    mutating func nextPart() -> Part? {
      guard position < octets.count else { return nil }
      defer {
        _ = read { $0 == Self.semicolon }
        position += 1
      }
      skipBlanks()
      if isAtQuote {
        // A string in place of a name: its semicolons and equals signs separate nothing.
        position += 1
        _ = readQuoted()
        return Part(name: "", isQuoted: true)
      }
      let name = String(decoding: read { $0 == Self.semicolon || $0 == UInt8(ascii: "=") }, as: UTF8.self)
        .trimmingHTTPWhitespace.lowercased()
      guard position < octets.count, octets[position] == UInt8(ascii: "=") else { return Part(name: name) }
      position += 1
      skipBlanks()
      guard isAtQuote else { return Part(name: name, value: readUnquoted()) }
      position += 1
      return Part(name: name, value: readQuoted(), isQuoted: true)
    }

    private var isAtQuote: Bool { position < octets.count && octets[position] == Self.quote }

    /// Whether a path such as `C:\dev` begins here.
    private var isAtDrive: Bool {
      guard position + 2 < octets.count else { return false }
      let letters = UInt8(ascii: "A")...UInt8(ascii: "Z")
      return letters.contains(octets[position] & 0xDF) && octets[position + 1] == UInt8(ascii: ":")
        && octets[position + 2] == Self.backslash
    }

    private mutating func skipBlanks() {
      while position < octets.count, octets[position] == 0x20 || octets[position] == 0x09 { position += 1 }
    }

    private mutating func read(until stop: (UInt8) -> Bool) -> [UInt8] {
      let start = position
      while position < octets.count, !stop(octets[position]) { position += 1 }
      return Array(octets[start..<position])
    }

    /// Reads a value up to the next semicolon. Semicolons between two quotation marks belong to the value, as in
    /// Chromium.
    private mutating func readUnquoted() -> [UInt8] {
      let start = position
      while position < octets.count, octets[position] != Self.semicolon {
        if octets[position] == Self.quote, let close = octets[(position + 1)...].firstIndex(of: Self.quote) {
          position = close
        }
        position += 1
      }
      let value = octets[start..<position]
      let end = value.lastIndex { $0 != 0x20 && $0 != 0x09 }
      return end.map { Array(value[...$0]) } ?? []
    }

    /// Reads the rest of a quoted string. A string without a closing mark ends with the field.
    ///
    /// A backslash escapes every character (RFC 9110 §5.6.4), except in a path with a drive letter: Windows servers send
    /// such paths without escaping them.
    private mutating func readQuoted() -> [UInt8] {
      let isPath = isAtDrive
      var value: [UInt8] = []
      while position < octets.count, octets[position] != Self.quote {
        if octets[position] == Self.backslash, position + 1 < octets.count,
          !isPath || octets[position + 1] == Self.quote || octets[position + 1] == Self.backslash
        {
          position += 1
        }
        value.append(octets[position])
        position += 1
      }
      // Skip the closing quotation mark, if there is one.
      position = min(position + 1, octets.count)
      return value
    }
  }
}
