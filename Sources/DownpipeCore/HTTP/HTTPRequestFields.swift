/// The header fields that every HTTP source sends.
package enum HTTPRequestFields {
  /// Returns the fields of a request: the user's fields, `Range`, `If-Range` (only with a range and a strong
  /// validator), `Accept-Encoding: identity`, and default values for `User-Agent` and `Accept`.
  ///
  /// `Accept-Encoding` is always `identity`, even if the user sets another value, because a transfer of encoded bytes
  /// cannot be resumed.
  /// - Throws: ``DownloadError`` with `.invalidRequest` for a malformed field, for a field that controls the connection
  ///   or the range, and for a range without bytes.
  package static func fields(for request: SourceRequest) throws(DownloadError) -> HeaderFields {
    var fields = request.headers
    for field in fields.fields {
      guard field.isValid else {
        throw DownloadError(
          .invalidRequest,
          "the header field “\(field.name.prefix(64).escaped)” is malformed: its name must be a token and its value "
            + "must not contain control characters")
      }
      if refused.contains(field.name.lowercased()) {
        throw DownloadError(
          .invalidRequest, "the header field \(field.name) cannot be set: the source sets it itself")
      }
    }
    if let range = request.range {
      guard range.start >= 0, range.end.map({ $0 > range.start }) ?? true else {
        throw DownloadError(.invalidRequest, "the range \(range.start)..<\(range.end ?? 0) contains no bytes")
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

  /// Fields that frame the message or control the connection (RFC 9110 §7.6.1), and fields that the source sets.
  private static let refused: Set<String> = [
    "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade",
    "http2-settings", "expect", "range", "if-range",
  ]
}
