/// One JSON object (RFC 8259), put together as text: in a list of a million files an encoder for each line
/// would cost more than the download.
struct JSONObject {
  private var text = "{"

  /// Adds a text, or `null`.
  mutating func add(_ key: StaticString, _ value: String?) {
    begin(key)
    if let value { Self.append(value, to: &text) } else { text += "null" }
  }

  /// Adds a whole number, or `null`.
  mutating func add(_ key: StaticString, _ value: (some BinaryInteger)?) {
    begin(key)
    if let value { text += String(value) } else { text += "null" }
  }

  /// Adds an object, or `null`.
  mutating func add(_ key: StaticString, _ value: JSONObject?) {
    begin(key)
    text += value?.closed ?? "null"
  }

  /// The object as one line, without the line's end.
  var closed: String { text + "}" }

  private mutating func begin(_ key: StaticString) {
    if text.utf8.count > 1 { text += "," }
    text += "\"\(key)\":"
  }

  /// Adds a text in quotation marks. Line separators are escaped too: one object is one line to every reader.
  private static func append(_ value: String, to text: inout String) {
    text += "\""
    if value.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }) {
      text += value
    } else {
      for scalar in value.unicodeScalars {
        switch scalar.value {
        case 0x22: text += "\\\""
        case 0x5C: text += "\\\\"
        case 0x0A: text += "\\n"
        case 0x0D: text += "\\r"
        case 0x09: text += "\\t"
        case 0..<0x20, 0x7F...0x9F, 0x2028, 0x2029:
          let digits = String(scalar.value, radix: 16)
          text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        default: text.unicodeScalars.append(scalar)
        }
      }
    }
    text += "\""
  }
}
