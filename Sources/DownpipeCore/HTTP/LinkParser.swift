/// Reads the links of a `Link` field (RFC 8288, appendix B.2).
struct LinkParser {
  struct Link {
    /// The reference between the angle brackets, one character an octet unless it was decoded as UTF-8.
    let target: String
    /// The parameters in order, with names in lower case. A parameter without a value has an empty one.
    let parameters: [(name: String, value: String)]

    /// The value of the first parameter of a name, which is the one that counts.
    subscript(_ name: String) -> String? { parameters.first { $0.name == name }?.value }
  }

  private let scalars: [Unicode.Scalar]
  /// The rest of a longer field was left out, so that a parameter of the last link may be missing.
  private let isCut: Bool
  private var position = 0

  private static let longestField = 8192
  private static let mostParameters = 32

  init(_ field: String) {
    scalars = Array(field.unicodeScalars.prefix(Self.longestField))
    isCut = field.unicodeScalars.dropFirst(Self.longestField).first != nil
  }

  /// Returns the next link that is well-formed; `nil` at the end of the field.
  mutating func nextLink() -> Link? {
    while position < scalars.count {
      let link = readLink()
      // What follows a link up to the comma is malformed, and so is the link.
      let isWhole = skipToComma()
      if isCut, position >= scalars.count { return nil }
      position += 1
      if let link, isWhole { return link }
    }
    return nil
  }

  private mutating func readLink() -> Link? {
    skipBlanks()
    guard consume("<") else { return nil }
    let target = text(upTo: { $0 == ">" })
    guard consume(">") else { return nil }
    var parameters: [(String, String)] = []
    skipBlanks()
    while consume(";") {
      skipBlanks()
      let name = text(upTo: { $0 == "=" || $0 == ";" || $0 == "," || Self.isBlank($0) }).lowercased()
      skipBlanks()
      var value = ""
      if consume("=") {
        skipBlanks()
        guard let given = readValue() else { return nil }
        value = given
        skipBlanks()
      }
      // Empty parameters, as in `; ;`, are ignored.
      if !name.isEmpty { parameters.append((name, value)) }
      guard parameters.count <= Self.mostParameters else { return nil }
    }
    return Link(target: target, parameters: parameters)
  }

  /// Returns a token or a quoted string; `nil` for a string without an end.
  private mutating func readValue() -> String? {
    guard consume("\"") else { return text(upTo: { $0 == ";" || $0 == "," || Self.isBlank($0) }) }
    var value = String.UnicodeScalarView()
    while position < scalars.count, scalars[position] != "\"" {
      if scalars[position] == "\\", position + 1 < scalars.count { position += 1 }
      value.append(scalars[position])
      position += 1
    }
    return consume("\"") ? String(value) : nil
  }

  /// Moves to the next comma that is not in a quoted string, or to the end.
  ///
  /// - Returns: Whether there was nothing before it.
  private mutating func skipToComma() -> Bool {
    let start = position
    while position < scalars.count, scalars[position] != "," {
      if scalars[position] == "\"" { _ = readValue() } else { position += 1 }
    }
    return position == start
  }

  private mutating func skipBlanks() {
    while position < scalars.count, Self.isBlank(scalars[position]) { position += 1 }
  }

  private mutating func consume(_ scalar: Unicode.Scalar) -> Bool {
    guard position < scalars.count, scalars[position] == scalar else { return false }
    position += 1
    return true
  }

  private mutating func text(upTo isEnd: (Unicode.Scalar) -> Bool) -> String {
    let start = position
    while position < scalars.count, !isEnd(scalars[position]) { position += 1 }
    return String(String.UnicodeScalarView(scalars[start..<position]))
  }

  private static func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }
}
