extension Validator {
  /// The value of an `If-Range` field (RFC 9110 §13.1.5); `nil` unless the validator is strong.
  public var ifRange: String? {
    if let entityTag { return entityTag.isWeak ? nil : entityTag.field }
    return strongLastModified.map(HTTPDate.string(from:))
  }
}
