/// How many columns of a terminal a text takes, and texts fitted into columns.
///
/// Follows Unicode's East Asian Width (UAX #11): wide and full-width characters and emoji take two columns,
/// combining marks none. A grapheme cluster is as wide as its base.
enum DisplayWidth {
  /// The columns that a text takes.
  static func of(_ text: some StringProtocol) -> Int {
    // ASCII without control characters needs no tables, and is what most names are.
    if text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) { return text.utf8.count }
    return text.reduce(0) { $0 + of($1) }
  }

  /// The columns that a character takes.
  static func of(_ character: Character) -> Int {
    let scalars = character.unicodeScalars
    guard let base = scalars.first else { return 0 }
    // U+FE0F asks for the coloured form, which is wide.
    if scalars.contains(where: { $0.value == 0xFE0F }) { return 2 }
    return of(base)
  }

  private static func of(_ scalar: Unicode.Scalar) -> Int {
    let value = scalar.value
    if value < 0x300 { return value < 0x20 || (0x7F...0x9F).contains(value) || value == 0xAD ? 0 : 1 }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control, .lineSeparator, .paragraphSeparator: return 0
    default: break
    }
    if scalar.properties.isEmojiPresentation { return 2 }
    return isWide(value) ? 2 : 1
  }

  /// The blocks that are wide as a whole or nearly so.
  private static func isWide(_ value: UInt32) -> Bool {
    switch value {
    case 0x1100...0x115F,  // Hangul initial consonants
      0x2E80...0x303E, 0x3041...0x33FF,  // CJK radicals, punctuation, kana, compatibility
      0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF, 0xA960...0xA97F,  // ideographs, Yi, Hangul
      0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F,  // Hangul, forms
      0xFF01...0xFF60, 0xFFE0...0xFFE6,  // full-width forms
      0x16FE0...0x18DFF, 0x1AFF0...0x1B2FF,  // Tangut, kana supplements
      0x1F200...0x1F2FF, 0x20000...0x3FFFD:  // enclosed ideographs, later planes
      true
    default: false
    }
  }

  /// The text cut or padded to exactly `columns`. A long one loses its middle, since the beginning and the
  /// extension of a file's name tell the most.
  static func fit(_ text: String, to columns: Int) -> String {
    guard columns > 0 else { return "" }
    let width = of(text)
    if width <= columns { return text + String(repeating: " ", count: columns - width) }
    let tail = suffix(of: text, columns: (columns - 1) / 3)
    let head = prefix(of: text, columns: columns - 1 - of(tail))
    let short = head + "…" + tail
    return short + String(repeating: " ", count: max(0, columns - of(short)))
  }

  /// The text cut at its end to at most `columns`.
  static func truncate(_ text: String, to columns: Int) -> String {
    guard of(text) > columns else { return text }
    return columns > 0 ? prefix(of: text, columns: columns - 1) + "…" : ""
  }

  private static func prefix(of text: String, columns: Int) -> String {
    var left = columns
    return String(
      text.prefix { character in
        left -= of(character)
        return left >= 0
      })
  }

  private static func suffix(of text: String, columns: Int) -> String {
    var left = columns
    var start = text.endIndex
    while start > text.startIndex {
      let before = text.index(before: start)
      left -= of(text[before])
      guard left >= 0 else { break }
      start = before
    }
    return String(text[start...])
  }

  /// The text fit for a terminal: control characters, and marks that turn the direction of writing, become `�`.
  /// Names and messages come from the network, and must not move the cursor or pose as something else.
  static func harmless(_ text: String) -> String {
    func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
      switch scalar.value {
      case 0..<0x20, 0x7F...0x9F, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
      default: false
      }
    }
    guard text.unicodeScalars.contains(where: isHarmful) else { return text }
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars { result.append(isHarmful(scalar) ? "\u{FFFD}" : scalar) }
    return String(result)
  }
}
