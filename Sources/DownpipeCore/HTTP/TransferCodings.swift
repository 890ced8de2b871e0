/// Validation of the transfer codings of a reply (RFC 9112 §6.1).
package enum TransferCodings {
  /// Throws for a reply whose body the client may have misread.
  ///
  /// If `chunked` is not the last coding, the body ends with the connection. If another coding wraps `chunked`, the
  /// chunks are part of its content (RFC 9112 §6.3). Such a body looks complete although it is cut off, or still has
  /// chunk sizes between its bytes. Servers may send other codings only to a client that requests them with `TE`.
  ///
  /// A repeated `chunked` is treated as a repeated field: no sender may apply it twice (RFC 9112 §6.1), and no client
  /// decodes it twice. `identity` before it has no effect.
  ///
  /// Empty list elements are rejected as well, although a recipient should ignore them (RFC 9110 §5.6.1): clients parse
  /// them differently (llhttp, for example, does not decode the body after `chunked,`), and no server is known to send
  /// them.
  /// - Parameter decoded: The codings besides `chunked` that the client has decoded, in lower case.
  /// - Throws: ``DownloadError`` with `.invalidResponse` for all lists except `identity` or decoded codings, with or
  ///   without `chunked` after them.
  static func check(_ headers: HeaderFields, decoded: [String]) throws(DownloadError) {
    guard headers["Transfer-Encoding"] != nil else { return }
    var codings = headers.values("Transfer-Encoding").flatMap { value in
      value.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimmingHTTPWhitespace.lowercased() }
    }
    let isFramed = codings.last == "chunked"
    while codings.last == "chunked" { codings.removeLast() }
    if codings.allSatisfy({ $0 == "identity" }) { return }
    // Without chunks a body that is cut short ends like a whole one, and decoders take it.
    if isFramed, codings.allSatisfy(decoded.contains) { return }
    throw refusal(headers)
  }

  /// Whether the body is sent as it is: without transfer codings, or with `identity` alone.
  package static func areIdentity(_ headers: HeaderFields) -> Bool {
    headers.values("Transfer-Encoding").allSatisfy { $0.trimmingHTTPWhitespace.caseInsensitivelyEquals("identity") }
  }

  /// Returns the error for codings that the client does not decode.
  private static func refusal(_ headers: HeaderFields) -> DownloadError {
    let value = headers.values("Transfer-Encoding").joined(separator: ", ")
    return DownloadError(
      .invalidResponse,
      "the response has the Transfer-Encoding “\(value.prefix(64).escaped)”, which was not requested and leaves the end "
        + "of the body unknown; ask the server's operator")
  }
}
