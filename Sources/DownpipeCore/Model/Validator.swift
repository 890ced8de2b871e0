public import Foundation

/// An entity tag (RFC 9110 §8.8.3).
public struct EntityTag: Hashable, Sendable, Codable {
  /// The opaque tag between the quotation marks.
  public let opaque: String
  /// Whether the tag is weak (`W/"…"`): equal tags then mean equivalent content, but not necessarily equal bytes.
  public let isWeak: Bool

  /// Creates a tag from its opaque part.
  public init(_ opaque: String, isWeak: Bool = false) {
    self.opaque = opaque
    self.isWeak = isWeak
  }

  /// Parses a field value such as `"abc"` or `W/"abc"`; `nil` when it is malformed or longer than 1 KiB.
  public init?(parsing field: String) {
    var rest = field.utf8[...]
    while let first = rest.first, first == 0x20 || first == 0x09 { rest.removeFirst() }
    while let last = rest.last, last == 0x20 || last == 0x09 { rest.removeLast() }
    let weak = rest.starts(with: "W/".utf8)
    if weak { rest = rest.dropFirst(2) }
    guard rest.count >= 2, rest.count <= 1024, rest.first == 0x22, rest.last == 0x22 else { return nil }
    let inner = rest.dropFirst().dropLast()
    guard inner.allSatisfy({ $0 == 0x21 || ($0 >= 0x23 && $0 != 0x7F) }) else { return nil }
    self.init(String(decoding: inner, as: UTF8.self), isWeak: weak)
  }

  /// The value of the header field.
  public var field: String { isWeak ? "W/\"\(opaque)\"" : "\"\(opaque)\"" }
}

/// The metadata by which a server identifies a representation (RFC 9110 §8.8).
///
/// It is kept with the partial. Bytes are only appended when the validators agree.
public struct Validator: Hashable, Sendable, Codable {
  /// The entity tag; `nil` when the server sent none.
  public var entityTag: EntityTag?
  /// The time of the last modification; `nil` when the server sent none.
  public var lastModified: Date?
  /// The date of the reply by the server's clock. It decides whether ``lastModified`` is strong.
  public var responseDate: Date?

  /// Creates a validator.
  public init(entityTag: EntityTag? = nil, lastModified: Date? = nil, responseDate: Date? = nil) {
    self.entityTag = entityTag
    self.lastModified = lastModified
    self.responseDate = responseDate
  }

  /// Whether the validator has neither an entity tag nor a modification time.
  public var isEmpty: Bool { entityTag == nil && lastModified == nil }

  /// The modification time, if it identifies the bytes: it is at least 60 seconds older than the reply that carried it,
  /// so that a second change in the same second cannot go unnoticed (RFC 9110 §8.8.2.2). Otherwise `nil`.
  public var strongLastModified: Date? {
    guard let lastModified, let responseDate,
      responseDate.timeIntervalSince(lastModified) >= 60
    else { return nil }
    return lastModified
  }

  /// Whether equality of this validator proves that two replies carry the same bytes.
  public var isStrong: Bool {
    if let entityTag { !entityTag.isWeak } else { strongLastModified != nil }
  }

  /// The relation between the stored validator and that of a new reply.
  public enum Comparison: Hashable, Sendable {
    /// Strong and equal: the bytes are the same.
    case sameStrong
    /// Equal but weak: the content is equivalent, but the bytes may differ.
    case sameWeak
    /// Different: the representation has changed.
    case changed
    /// Not comparable: one of the two is missing, or they have no property in common.
    case absent
  }

  /// Compares the stored validator with that of a new reply.
  public func compare(to other: Validator?) -> Comparison {
    guard let other else { return .absent }
    if let mine = entityTag, let theirs = other.entityTag {
      if mine.opaque != theirs.opaque { return .changed }
      return mine.isWeak || theirs.isWeak ? .sameWeak : .sameStrong
    }
    if let mine = lastModified, let theirs = other.lastModified {
      if mine != theirs { return .changed }
      // At most one of the two has a tag; both have a date.
      return strongLastModified != nil ? .sameStrong : .sameWeak
    }
    return .absent
  }
}
