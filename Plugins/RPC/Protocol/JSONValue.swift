import Foundation

/// A value of JSON (RFC 8259).
enum JSONValue: Sendable, Hashable {
  case null
  case bool(Bool)
  case integer(Int64)
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  struct TooLarge: Error {}

  /// The most levels of a value.
  static let mostLevels = 100
  /// The most values in one: a small text can have a million, each of which costs many times its byte.
  static let mostValues = 50_000

  /// Parses a text.
  /// - Throws: an error of Foundation for a text that is not JSON; ``TooLarge``.
  init(parsing bytes: [UInt8]) throws {
    // Before anything is made of it: each value but the first has a comma or a bracket before it.
    let marks = bytes.count { $0 == 0x2C || $0 == 0x5B || $0 == 0x7B }
    guard marks <= 4 * Self.mostValues else { throw TooLarge() }
    var values = Self.mostValues
    try self.init(
      try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed), levels: Self.mostLevels, &values)
  }

  private init(_ value: Any, levels: Int, _ values: inout Int) throws(TooLarge) {
    values -= 1
    guard values >= 0 else { throw TooLarge() }
    switch value {
    case let text as String: self = .string(text)
    case let elements as [Any]:
      guard levels > 0 else { throw TooLarge() }
      var list: [JSONValue] = []
      for element in elements { list.append(try JSONValue(element, levels: levels - 1, &values)) }
      self = .array(list)
    case let elements as [String: Any]:
      guard levels > 0 else { throw TooLarge() }
      var members: [String: JSONValue] = [:]
      for (key, element) in elements { members[key] = try JSONValue(element, levels: levels - 1, &values) }
      self = .object(members)
    case let number as NSNumber:
      if type(of: number) == type(of: NSNumber(value: true)) {
        self = .bool(number.boolValue)
      } else {
        let isReal = ["d", "f"].contains(String(cString: number.objCType))
        self =
          isReal ? .number(number.doubleValue) : (value as? Int64).map { .integer($0) } ?? .number(number.doubleValue)
      }
    default: self = .null
    }
  }

  /// The value as text on one line.
  var bytes: [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    // Only numbers that JSON does not have could fail, and the parser has none.
    return (try? encoder.encode(self)).map { Array($0) } ?? Array("null".utf8)
  }

  subscript(_ key: String) -> JSONValue? {
    if case .object(let members) = self { members[key] } else { nil }
  }

  var text: String? { if case .string(let text) = self { text } else { nil } }
  var list: [JSONValue]? { if case .array(let values) = self { values } else { nil } }
}

extension JSONValue: Encodable {
  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let values): try container.encode(values)
    case .object(let members): try container.encode(members)
    }
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
  init(stringLiteral value: String) { self = .string(value) }
  init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(Dictionary(elements) { $1 })
  }
}
