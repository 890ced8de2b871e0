/// The header fields that every HTTP source sends.
package enum HTTPRequestFields {
  /// The user's fields and what belongs to a download: `Range`, `If-Range` (with a range and a strong
  /// validator only), `Accept-Encoding: identity`, and `User-Agent` and `Accept` unless given.
  ///
  /// `Accept-Encoding` is always `identity`, whatever the user says: the bytes may have to be resumed, and the
  /// bytes of a coded answer cannot be.
  /// - Throws: ``DownloadError`` with `.invalidRequest` for a malformed field, for one that belongs to the
  ///   connection or to the range, and for a range without bytes.
  package static func fields(for request: SourceRequest) throws(DownloadError) -> HeaderFields {
    var fields = request.headers
    for field in fields.fields {
      guard field.isValid else {
        throw DownloadError(
          .invalidRequest,
          "the header field “\(field.name.prefix(64).escaped)” is malformed: its name must be a token and its value "
            + "must not hold control characters")
      }
      if refused.contains(field.name.lowercased()) {
        throw DownloadError(
          .invalidRequest, "the header field \(field.name) cannot be set: the source sets it itself")
      }
    }
    if let range = request.range {
      guard range.start >= 0, range.end.map({ $0 > range.start }) ?? true else {
        throw DownloadError(.invalidRequest, "the range \(range.start)..<\(range.end ?? 0) holds no bytes")
      }
      fields["Range"] = range.field
      if let ifRange = request.validator?.ifRange, HeaderField("If-Range", ifRange).isValid {
        fields["If-Range"] = ifRange
      }
    }
    fields["Accept-Encoding"] = "identity"
    if fields["User-Agent"] == nil { fields["User-Agent"] = "downpipe" }
    if fields["Accept"] == nil { fields["Accept"] = "*/*" }
    return fields
  }

  /// What frames the message or belongs to the connection (RFC 9110 §7.6.1), and what the source decides.
  private static let refused: Set<String> = [
    "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade",
    "http2-settings", "expect", "range", "if-range",
  ]
}
