/// One JSON object (RFC 8259) on one line, with its keys in the order of the literal. `JSONEncoder` has no such order.
package struct JSONObject: JSONConvertible, ExpressibleByDictionaryLiteral {
  private var members = ""

  package init(dictionaryLiteral elements: (StaticString, any JSONConvertible)...) {
    for (key, value) in elements { add(key, value) }
  }

  package mutating func add(_ key: StaticString, _ value: any JSONConvertible) {
    members += (members.isEmpty ? "\"" : ",\"") + "\(key)\":" + value.json
  }

  package var json: String { "{\(members)}" }
}

/// A value of a JSON object.
package protocol JSONConvertible {
  var json: String { get }
}

extension Int: JSONConvertible { package var json: String { String(self) } }
extension Int64: JSONConvertible { package var json: String { String(self) } }
extension Bool: JSONConvertible { package var json: String { self ? "true" : "false" } }
extension Array: JSONConvertible where Element: JSONConvertible {
  package var json: String { "[\(map(\.json).joined(separator: ","))]" }
}
extension Optional: JSONConvertible where Wrapped: JSONConvertible { package var json: String { self?.json ?? "null" } }

extension String: JSONConvertible {
  /// Escapes what RFC 8259 requires, and line separators too: every reader takes the object for one line.
  package var json: String {
    if utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }) { return "\"\(self)\"" }
    var text = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      switch scalar.value {
      case 0x22, 0x5C: text += ["\\", scalar]
      case 0..<0x20, 0x7F...0x9F, 0x2028, 0x2029:
        let digits = String(scalar.value, radix: 16)
        text += ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).unicodeScalars
      default: text.append(scalar)
      }
    }
    return "\"\(String(text))\""
  }
}
