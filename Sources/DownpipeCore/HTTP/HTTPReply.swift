public import Foundation

extension SourceReply {
  /// Creates a reply from the head of an HTTP reply, for custom sources that use HTTP.
  ///
  /// The coverage is computed from the status and `Content-Range` alone, and never from the request.
  /// - Parameters:
  ///   - httpStatus: The final status, after redirects.
  ///   - headers: The header fields of the reply.
  ///   - url: The URL that served the reply.
  ///   - body: The content, in the coding given by `Content-Encoding`.
  ///   - decodedTransferCodings: The transfer codings besides `chunked` that the source decodes, in lower case.
  /// - Throws: ``DownloadError`` with `.invalidResponse` when a reply with bytes has no readable length, or has a
  ///   transfer coding other than `chunked` alone, `identity` or those that the source decodes.
  public init(
    httpStatus: Int, headers: HeaderFields, url: URL, body: Body, decodedTransferCodings: [String] = []
  ) throws(DownloadError) {
    let coverage = Coverage(httpStatus: httpStatus, headers: headers)
    let coding = Self.contentCoding(headers)
    let length: ByteCount
    if case .none = coverage {
      // The length of an error page is irrelevant; that of a 304 is the length of the representation.
      length = .unknown
    } else {
      try TransferCodings.check(headers, decoded: decodedTransferCodings)
      // Transfer-Encoding overrides Content-Length (RFC 9112 §6.3), unless it says nothing.
      length = TransferCodings.areIdentity(headers) ? try ContentLength.parse(headers) : .unknown
    }
    let validator = Validator(
      entityTag: headers["ETag"].flatMap(EntityTag.init(parsing:)),
      lastModified: headers["Last-Modified"].flatMap(HTTPDate.date(from:)),
      responseDate: headers["Date"].flatMap(HTTPDate.date(from:)))
    self.init(
      coverage: coverage,
      length: length,
      validator: validator.isEmpty ? nil : validator,
      contentCoding: coding,
      suggestedName: headers["Content-Disposition"].flatMap { ContentDisposition(parsing: $0).fileName },
      mediaType: Self.mediaType(headers),
      digests: coverage.hasBytes ? ReprDigest.digests(in: headers, isWholeContent: coverage == .whole) : [],
      finalURL: url,
      retryAfter: headers["Retry-After"].flatMap { RetryAfter(parsing: $0, sentAt: headers["Date"]) },
      freshFor: coverage.hasBytes || coverage == .none(.notModified) ? Freshness.duration(in: headers) : nil,
      acceptsRanges: Self.acceptsRanges(headers, coverage),
      duplicates: coverage.hasBytes ? DuplicateLinks.urls(in: headers, of: url) : [],
      descriptions: coverage.hasBytes ? DescriptionLinks.descriptions(in: headers, of: url) : [],
      body: body)
    if coverage == .whole, let field = headers["Content-Range"],
      case .part(let range, let total) = ContentRange(parsing: field)
    {
      claimedRange = .range(range, total: total)
    }
  }

  /// Returns the codings in lower case under their registered names, joined by `, `; `nil` for identity.
  private static func contentCoding(_ headers: HeaderFields) -> String? {
    var codings: [String] = []
    for coding in headers.list("Content-Encoding").map({ $0.lowercased() }) where coding != "identity" {
      // Recipients must treat the old names like the new ones (RFC 9110 §8.4.1).
      codings.append(coding == "x-gzip" ? "gzip" : coding == "x-compress" ? "compress" : coding)
    }
    return codings.isEmpty ? nil : String(codings.joined(separator: ", ").prefix(255))
  }

  private static func mediaType(_ headers: HeaderFields) -> String? {
    guard let value = headers["Content-Type"]?.trimmingHTTPWhitespace, !value.isEmpty else { return nil }
    // Counting characters is slow.
    return value.utf8.count <= 255 ? value : String(value.prefix(255))
  }

  private static func acceptsRanges(_ headers: HeaderFields, _ coverage: Coverage) -> Bool? {
    if case .range = coverage { return true }
    let units = headers.list("Accept-Ranges")
    if units.contains(where: { $0.caseInsensitivelyEquals("bytes") }) { return true }
    return units.contains { $0.caseInsensitivelyEquals("none") } ? false : nil
  }
}

extension Coverage {
  /// Determines what the bytes of an HTTP reply are.
  fileprivate init(httpStatus: Int, headers: HeaderFields) {
    switch httpStatus {
    case 200, 203:
      self = .whole
    case 206:
      self = Self.partial(headers)
    case 304:
      self = .none(.notModified)
    case 412:
      self = .none(.preconditionFailed)
    case 416:
      let range = headers["Content-Range"].flatMap(ContentRange.init(parsing:))
      if case .unsatisfied(let total) = range {
        self = .none(.rangeNotSatisfiable(total: .known(total)))
      } else {
        self = .none(.rangeNotSatisfiable(total: .unknown))
      }
    default:
      self = .none(.status(httpStatus))
    }
  }

  private static func partial(_ headers: HeaderFields) -> Coverage {
    let type = headers["Content-Type"]?.trimmingHTTPWhitespace ?? ""
    if type.prefix(20).caseInsensitivelyEquals("multipart/byteranges") { return .multipart }
    let values = Set(headers.values("Content-Range"))
    guard let value = values.first else { return .unreadable("206 without Content-Range") }
    guard values.count == 1 else { return .unreadable("206 with several different Content-Ranges") }
    guard case .part(let range, let total) = ContentRange(parsing: value) else {
      return .unreadable("206 with the malformed Content-Range “\(value.prefix(64).escaped)”")
    }
    return .range(range, total: total)
  }

}

extension HeaderFields {
  /// Returns the members of a comma-separated list in all fields of a name (RFC 9110 §5.6.1).
  fileprivate func list(_ name: String) -> [String] {
    var members: [String] = []
    for value in values(name) {
      if !value.utf8.contains(UInt8(ascii: ",")) {
        let trimmed = value.trimmingHTTPWhitespace
        if !trimmed.isEmpty { members.append(trimmed) }
        continue
      }
      for member in value.split(separator: ",") {
        let trimmed = member.trimmingHTTPWhitespace
        if !trimmed.isEmpty { members.append(trimmed) }
      }
    }
    return members
  }
}
