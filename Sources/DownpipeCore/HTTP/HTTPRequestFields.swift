/// The header fields that every HTTP source sends.
package enum HTTPRequestFields {
  /// Returns the fields of a request: the user's fields, `Range`, `If-Range` (only with a range and a strong
  /// validator), `If-None-Match` or `If-Modified-Since` (in place of the user's, only without a range),
  /// `Accept-Encoding: identity`, and default values for `User-Agent` and `Accept`.
  ///
  /// `Accept-Encoding` is always `identity`, even if the user sets another value, because a transfer of encoded bytes
  /// cannot be resumed. Fields of the connection are left out, see
  /// ``isOfTheConnection(_:)``: the source and its proxy have their own.
  /// - Throws: ``DownloadError`` with `.invalidRequest` for a malformed field, for a field that frames the message or
  ///   controls the range, and for a range without bytes.
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
    if fields.fields.contains(where: { isOfTheConnection($0.name) }) {
      fields.fields.removeAll { isOfTheConnection($0.name) }
    }
    if let range = request.range {
      guard range.start >= 0, range.end.map({ $0 > range.start }) ?? true else {
        throw DownloadError(.invalidRequest, "the range \(range.start)..<\(range.end ?? 0) contains no bytes")
      }
      fields["Range"] = range.field
      if let ifRange = request.validator?.ifRange, HeaderField("If-Range", ifRange).isValid {
        fields["If-Range"] = ifRange
      }
    } else if let condition = request.condition, let field = condition.conditionField {
      // An answer to another question than this one would be taken for the answer to this one.
      for name in ["If-None-Match", "If-Modified-Since"] { fields[name] = nil }
      fields[field.name] = field.value
    }
    fields["Accept-Encoding"] = "identity"
    if fields["User-Agent"] == nil { fields["User-Agent"] = "downpipe" }
    if fields["Accept"] == nil { fields["Accept"] = "*/*" }
    return fields
  }

  /// Whether a field is for a connection and not for the server that has the file (RFC 9110 §7.6.1). It is not sent.
  package static func isOfTheConnection(_ name: String) -> Bool { ofTheConnection.contains(name.lowercased()) }

  private static let ofTheConnection: Set<String> = [
    "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "http2-settings",
  ]

  /// Fields that frame the message, and fields that the source sets.
  private static let refused: Set<String> = ["content-length", "expect", "range", "if-range"]
}
