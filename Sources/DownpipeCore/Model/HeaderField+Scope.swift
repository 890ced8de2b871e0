package import Foundation

extension HeaderField {
  /// The origins that the field of a request is sent to. Mirrors, fresh links and redirects may lead to other origins
  /// than that of the request's URL.
  ///
  /// ```swift
  /// let headers = HeaderFields([
  ///   HeaderField("Authorization", "Bearer …"),                       // for the host of the URL only
  ///   HeaderField("Referer", "https://example.org/", scope: .everywhere),
  /// ])
  /// ```
  public enum Scope: Hashable, Sendable {
    /// The origin of the download's own URL only, also for a field that an interceptor has added, unless the field says
    /// nothing about the user, as `Accept`, `Range` and `User-Agent` do.
    case automatic
    /// One origin, which need not be that of the request: such as a mirror that needs another key. A redirect to that
    /// origin does not get the field: a server would choose what it is sent for.
    indirect case origin(Origin)
    /// Every origin. The field must not contain a secret.
    case everywhere
  }

  /// Whether the field is sent to an origin, when it is a field of a request whose URL has the origin `first`.
  ///
  /// - Parameters:
  ///   - origin: The origin of the request that is sent; `nil` when its URL has none.
  ///   - first: The origin that the fields were given for; `nil` when its URL has none.
  package func reaches(_ origin: Origin?, from first: Origin?) -> Bool {
    switch scope {
    case .everywhere: true
    case .origin(let only): only == origin
    case .automatic: (origin != nil && origin == first) || Self.impersonal.contains(name.lowercased())
    }
  }

  /// Fields that are the same for every user of a program, and those that describe the requested bytes.
  private static let impersonal: Set<String> = [
    "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "if-match", "if-modified-since",
    "if-none-match", "if-range", "if-unmodified-since", "pragma", "priority", "range", "user-agent",
    "want-content-digest", "want-digest", "want-repr-digest",
  ]
}

extension HeaderFields {
  /// Returns the fields that are sent to an origin; see ``HeaderField/reaches(_:from:)``.
  package func reaching(_ origin: Origin?, from first: Origin?) -> HeaderFields {
    // Most requests stay at their origin.
    if fields.allSatisfy({ $0.reaches(origin, from: first) }) { return self }
    return HeaderFields(fields.filter { $0.reaches(origin, from: first) })
  }

  /// Returns the fields that are sent to a URL of a download, such as a mirror, when they were given for the download's own
  /// URL.
  package func reaching(_ target: URL, ofDownloadAt own: URL) -> HeaderFields {
    if fields.isEmpty { return self }
    let (origin, isOwn) = (Origin(target), target.isAtOrigin(of: own))
    return HeaderFields(fields.filter { isOwn && $0.scope == .automatic || $0.reaches(origin, from: nil) })
  }

  /// The fields that are sent to a place that a server has named: those for every origin.
  package var forEverybody: HeaderFields { reaching(nil, from: nil) }

  /// Returns the fields of a request whose URL is replaced by one of another origin: those for the earlier URL alone
  /// stay bound to its origin.
  package func bound(to origin: Origin?) -> HeaderFields {
    HeaderFields(
      fields.compactMap { field in
        if field.reaches(nil, from: nil) || field.scope != .automatic { return field }
        return origin.map { HeaderField(field.name, field.value, scope: .origin($0)) }
      })
  }
}

extension HeaderField: CustomStringConvertible {
  /// The name, and the value if the field says nothing about the user.
  public var description: String { "\(name): \(Self.impersonal.contains(name.lowercased()) ? value : "…")" }
}

extension HeaderField: Codable {
  private enum CodingKeys: String, CodingKey {
    case name, value, scope
  }

  private static let everywhere = "everywhere"

  /// Decodes a field. Earlier versions did not write the scope.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    var scope = Scope.automatic
    if let text = try container.decodeIfPresent(String.self, forKey: .scope) {
      scope = text == Self.everywhere ? .everywhere : .origin(try container.decode(Origin.self, forKey: .scope))
    }
    self.init(
      try container.decode(String.self, forKey: .name), try container.decode(String.self, forKey: .value), scope: scope)
  }

  /// Encodes the field.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(name, forKey: .name)
    try container.encode(value, forKey: .value)
    switch scope {
    case .automatic: break
    case .everywhere: try container.encode(Self.everywhere, forKey: .scope)
    case .origin(let origin): try container.encode(origin, forKey: .scope)
    }
  }
}
