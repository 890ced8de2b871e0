extension Validator {
  /// The value of an `If-Range` field (RFC 9110 §13.1.5); `nil` unless the validator is strong.
  public var ifRange: String? {
    if let entityTag { return entityTag.isWeak ? nil : entityTag.field }
    return strongLastModified.map(HTTPDate.string(from:))
  }
}

// Conditional requests for a whole file (RFC 9110 §13.1).
extension Validator {
  /// The value of an `If-None-Match` field (RFC 9110 §13.1.2): the entity tag, also a weak one. `nil` without one.
  public var ifNoneMatch: String? { entityTag?.field }

  /// The value of an `If-Modified-Since` field (RFC 9110 §13.1.3); `nil` with an entity tag, which is the better question,
  /// and without a date.
  public var ifModifiedSince: String? { entityTag == nil ? lastModified.map(HTTPDate.string(from:)) : nil }

  /// The field of a conditional request; `nil` if the validator is empty or cannot be sent.
  package var conditionField: HeaderField? {
    let field =
      ifNoneMatch.map { HeaderField("If-None-Match", $0) }
      ?? ifModifiedSince.map { HeaderField("If-Modified-Since", $0) }
    return field.flatMap { $0.isValid ? $0 : nil }
  }

  /// Whether a server whose file has the validator `present` answers a request with this condition by saying that the
  /// file is not modified (RFC 9110 §13.2.2): for sources that answer conditional requests themselves.
  ///
  /// Entity tags are compared weakly, and a date only if the condition has no tag.
  public func isUnmodified(in present: Validator?) -> Bool {
    if let entityTag { return present?.entityTag?.opaque == entityTag.opaque }
    guard let lastModified, let changed = present?.lastModified else { return false }
    return changed <= lastModified
  }
}
