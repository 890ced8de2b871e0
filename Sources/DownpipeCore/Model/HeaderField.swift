/// One header field of a request or an answer.
public struct HeaderField: Hashable, Sendable, Codable {
  /// The name; compared without regard to case.
  public let name: String
  /// The value, without line breaks.
  public let value: String

  /// Makes a field.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }

  /// Whether name and value may be sent: a token, and no control characters (RFC 9110 §5).
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

/// Header fields in order, looked up without regard to case.
public struct HeaderFields: Hashable, Sendable, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
  /// The fields in the order they were given.
  public var fields: [HeaderField]

  /// Makes a list of fields.
  public init(_ fields: [HeaderField] = []) { self.fields = fields }

  /// Makes a list in source text.
  public init(arrayLiteral elements: HeaderField...) { fields = elements }

  /// Makes a list in source text, `["Accept": "text/html"]`.
  public init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { HeaderField($0, $1) }
  }

  /// Every value of a field, in order.
  public func values(_ name: String) -> [String] {
    fields.filter { $0.name.caseInsensitivelyEquals(name) }.map(\.value)
  }

  /// The first value of a field. Setting replaces every one; setting `nil` removes them.
  public subscript(_ name: String) -> String? {
    get { fields.first { $0.name.caseInsensitivelyEquals(name) }?.value }
    set {
      fields.removeAll { $0.name.caseInsensitivelyEquals(name) }
      if let newValue { fields.append(HeaderField(name, newValue)) }
    }
  }

  /// Whether there is no field.
  public var isEmpty: Bool { fields.isEmpty }
}

extension HeaderFields: Codable {
  /// Decodes a list of fields.
  public init(from decoder: any Decoder) throws {
    fields = try decoder.singleValueContainer().decode([HeaderField].self)
  }

  /// Encodes a list of fields.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(fields)
  }
}

extension StringProtocol {
  /// ASCII case-insensitive equality, without allocating.
  @inlinable
  package func caseInsensitivelyEquals(_ other: some StringProtocol) -> Bool {
    // Most names that are compared differ in length.
    utf8.count == other.utf8.count
      && utf8.elementsEqual(other.utf8) { left, right in
        left == right || ((left ^ right) == 0x20 && (0x61...0x7A).contains(left | 0x20))
      }
  }
}
