import Foundation

/// Writes the XML format as Core Foundation does: tabs, sorted keys, and references as `CF$UID`.
struct XMLPropertyListWriter {
  private var text = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">

    """

  static func write(_ list: PropertyList) throws(PropertyListError) -> Data {
    var writer = XMLPropertyListWriter()
    try writer.add(list, indent: "")
    writer.text += "</plist>\n"
    return Data(writer.text.utf8)
  }

  private mutating func add(_ value: PropertyList, indent: String) throws(PropertyListError) {
    switch value {
    case .string(let value): line("string", try Self.escape(value), indent)
    case .integer(let value): line("integer", "\(value)", indent)
    case .real(let value): line("real", "\(value)", indent)
    case .boolean(let value): text += "\(indent)<\(value)/>\n"
    case .date(let value): line("date", try Self.date(value), indent)
    case .data(let value): line("data", value.base64EncodedString(), indent)
    case .uid(let value): try add(.dictionary(["CF$UID": .integer(Int128(value))]), indent: indent)
    case .array(let items):
      text += "\(indent)<array>\n"
      for item in items { try add(item, indent: indent + "\t") }
      text += "\(indent)</array>\n"
    case .dictionary(let items):
      text += "\(indent)<dict>\n"
      for (key, item) in items.sorted(by: { $0.key < $1.key }) {
        line("key", try Self.escape(key), indent + "\t")
        try add(item, indent: indent + "\t")
      }
      text += "\(indent)</dict>\n"
    }
  }

  private mutating func line(_ name: String, _ content: String, _ indent: String) {
    text += "\(indent)<\(name)>\(content)</\(name)>\n"
  }

  private static func escape(_ value: String) throws(PropertyListError) -> String {
    var escaped = ""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "&": escaped += "&amp;"
      // A parser would convert it to a line feed.
      case "\r": escaped += "&#13;"
      case _ where !XMLCharacter.isAllowed(scalar):
        throw PropertyListError(
          "a string in it has characters that XML does not allow: write it as a binary property list")
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  private static func date(_ value: Double) throws(PropertyListError) -> String {
    let seconds = value.rounded(.down)
    // The years 1 to 9999.
    guard seconds >= -63_113_904_000, seconds < 252_455_616_000 else {
      throw PropertyListError("a date in it is outside the range of XML: write it as a binary property list")
    }
    return Date(timeIntervalSinceReferenceDate: seconds).formatted(.iso8601)
  }
}

/// The characters of XML 1.0 (§2.2). Surrogates need no check: strings do not contain them.
enum XMLCharacter {
  static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09, 0x0A, 0x0D: true
    case ..<0x20, 0xFFFE, 0xFFFF: false
    default: true
    }
  }
}
