/// Text for a terminal. Widths are counted in columns: wide characters (East Asian Width, UAX #11) and emoji take two,
/// combining marks none, and a grapheme cluster is as wide as its base.
extension String {
  var columns: Int {
    utf8.allSatisfy { (0x20...0x7E).contains($0) } ? utf8.count : reduce(0) { $0 + $1.columns }
  }

  /// The text cut or padded to this many columns. A long text loses its middle: the beginning and the extension of a
  /// file name tell the most.
  func fitted(to width: Int) -> String {
    guard columns > width else { return self + String(repeating: " ", count: width - columns) }
    guard width > 0 else { return "" }
    let tail = String(String(reversed()).prefix(columns: (width - 1) / 3).reversed())
    return (prefix(columns: width - 1 - tail.columns) + "…" + tail).fitted(to: width)
  }

  /// The text cut at its end to at most this many columns.
  func truncated(to width: Int) -> String {
    if columns <= width { return self }
    return width > 0 ? prefix(columns: width - 1) + "…" : ""
  }

  /// The text with spaces before it, so that it takes at least this many columns.
  func rightAligned(to width: Int) -> String { String(repeating: " ", count: max(0, width - columns)) + self }

  private func prefix(columns: Int) -> String {
    var rest = columns
    return String(
      prefix { character in
        rest -= character.columns
        return rest >= 0
      })
  }

  /// The text with `�` in place of control characters and of marks that change the direction of writing: names and
  /// messages come from the network, and must neither move the cursor nor look like another name.
  var harmless: String {
    func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
      switch scalar.value {
      case 0..<0x20, 0x7F...0x9F, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
      default: false
      }
    }
    var text = String.UnicodeScalarView()
    for scalar in unicodeScalars { text.append(isHarmful(scalar) ? "\u{FFFD}" : scalar) }
    return String(text)
  }
}

extension Character {
  var columns: Int {
    guard let base = unicodeScalars.first else { return 0 }
    // U+FE0F asks for the emoji form.
    if base.properties.isEmojiPresentation || unicodeScalars.contains("\u{FE0F}") { return 2 }
    switch base.value {
    case 0x20..<0x7F: return 1
    case 0x1100...0x115F, 0x2E80...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x1B2FF, 0x1F200...0x1F2FF, 0x20000...0x3FFFD:
      return base.value == 0x303F ? 1 : 2
    default: break
    }
    switch base.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control, .lineSeparator, .paragraphSeparator: return 0
    default: return 1
    }
  }
}
