/// A header field of a request or a reply.
public struct HeaderField: Hashable, Sendable {
  /// The name. Fields are looked up without regard to its case.
  public let name: String
  /// The value, without line breaks.
  public let value: String
  /// The origins that the field of a request is sent to.
  public let scope: Scope

  /// Creates a field.
  public init(_ name: String, _ value: String, scope: Scope = .automatic) {
    self.name = name
    self.value = value
    self.scope = scope
  }

  /// Whether the field may be sent: its name is a token, and its value has no control characters (RFC 9110 §5).
  public var isValid: Bool {
    let symbols = "!#$%&'*+-.^_`|~".utf8
    return !name.isEmpty
      && name.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
          || symbols.contains(byte)
      }
      && value.utf8.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }
  }
}

/// An ordered list of header fields, looked up without regard to case.
public struct HeaderFields: Hashable, Sendable, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
  /// The fields in the order in which they were given.
  public var fields: [HeaderField]

  /// Creates a list of fields.
  public init(_ fields: [HeaderField] = []) { self.fields = fields }

  /// Creates a list of fields from a literal.
  public init(arrayLiteral elements: HeaderField...) { fields = elements }

  /// Creates a list of fields from a literal, such as `["Accept": "text/html"]`.
  public init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { HeaderField($0, $1) }
  }

  /// Returns all values of a field, in order.
  public func values(_ name: String) -> [String] {
    // Most fields that are looked up are not there: nothing is allocated for them.
    var values: [String] = []
    for index in fields.indices where fields[index].name.caseInsensitivelyEquals(name) {
      values.append(fields[index].value)
    }
    return values
  }

  /// The first value of a field. Setting it replaces all values of the field; setting `nil` removes them.
  public subscript(_ name: String) -> String? {
    get {
      for index in fields.indices where fields[index].name.caseInsensitivelyEquals(name) { return fields[index].value }
      return nil
    }
    set {
      fields.removeAll { $0.name.caseInsensitivelyEquals(name) }
      if let newValue { fields.append(HeaderField(name, newValue)) }
    }
  }

  /// Whether the list has no fields.
  public var isEmpty: Bool { fields.isEmpty }
}

extension HeaderFields: Codable {
  /// Decodes a list of fields.
  public init(from decoder: any Decoder) throws {
    fields = try decoder.singleValueContainer().decode([HeaderField].self)
  }

  /// Encodes the list of fields.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(fields)
  }
}

extension StringProtocol {
  /// Compares ASCII text without regard to case and without allocating.
  @inlinable
  package func caseInsensitivelyEquals(_ other: some StringProtocol) -> Bool {
    // Most compared names differ in length.
    utf8.count == other.utf8.count
      && utf8.elementsEqual(other.utf8) { left, right in
        left == right || ((left ^ right) == 0x20 && (0x61...0x7A).contains(left | 0x20))
      }
  }
}
