public import Foundation

/// An entity tag (RFC 9110 §8.8.3).
public struct EntityTag: Hashable, Sendable, Codable {
  /// The opaque tag between the quotation marks.
  public let opaque: String
  /// Whether the tag is weak (`W/"…"`): equal meaning, perhaps other bytes.
  public let isWeak: Bool

  /// Makes a tag from its opaque part.
  public init(_ opaque: String, isWeak: Bool = false) {
    self.opaque = opaque
    self.isWeak = isWeak
  }

  /// Parses a field value such as `"abc"` or `W/"abc"`; `nil` when it is malformed or longer than 1 KiB.
  public init?(field: String) {
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

  /// The tag as a header field's value.
  public var field: String { isWeak ? "W/\"\(opaque)\"" : "\"\(opaque)\"" }
}

/// What a server said about *which* representation its bytes belong to (RFC 9110 §8.8).
///
/// Kept with the partial: bytes are only ever appended when the validators agree.
public struct Validator: Hashable, Sendable, Codable {
  /// The entity tag, if the server sent one.
  public var entityTag: EntityTag?
  /// The time of the last modification, if the server sent one.
  public var lastModified: Date?
  /// The server's own time when it answered; it decides whether ``lastModified`` is strong.
  public var responseDate: Date?

  /// Makes a validator.
  public init(entityTag: EntityTag? = nil, lastModified: Date? = nil, responseDate: Date? = nil) {
    self.entityTag = entityTag
    self.lastModified = lastModified
    self.responseDate = responseDate
  }

  /// Whether nothing was said at all.
  public var isEmpty: Bool { entityTag == nil && lastModified == nil }

  /// A last-modified time that identifies bytes: at least 60 seconds older than the answer that
  /// carried it, so that a change within the same second cannot hide (RFC 9110 §8.8.2.2).
  public var strongLastModified: Date? {
    guard let lastModified, let responseDate,
      responseDate.timeIntervalSince(lastModified) >= 60
    else { return nil }
    return lastModified
  }

  /// Whether the validator alone proves that two answers hold the same bytes.
  public var isStrong: Bool {
    if let entityTag { !entityTag.isWeak } else { strongLastModified != nil }
  }

  /// How a validator kept with a partial relates to the one of a new answer.
  public enum Comparison: Hashable, Sendable {
    /// Strong, and equal: the same bytes.
    case sameStrong
    /// Equal, but weak: the same meaning, perhaps other bytes.
    case sameWeak
    /// They contradict each other: another representation.
    case changed
    /// One of the two is missing: nothing is known.
    case absent
  }

  /// Compares what was kept with what a new answer says.
  public func compare(to other: Validator?) -> Comparison {
    guard let other else { return .absent }
    if let mine = entityTag, let theirs = other.entityTag {
      if mine.opaque != theirs.opaque { return .changed }
      return mine.isWeak || theirs.isWeak ? .sameWeak : .sameStrong
    }
    if let mine = lastModified, let theirs = other.lastModified {
      if mine != theirs { return .changed }
      // A tag on one side only: the date is all that both have.
      return strongLastModified != nil ? .sameStrong : .sameWeak
    }
    return .absent
  }
}
