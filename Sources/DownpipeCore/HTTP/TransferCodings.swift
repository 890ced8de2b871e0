/// The transfer codings of an answer (RFC 9112 §6.1): what has been done to the body on its way.
enum TransferCodings {
  /// Refuses an answer whose body the client may not have read as it was meant.
  ///
  /// Where `chunked` is not the last coding the body ends with the connection, and `chunked` below another coding is
  /// part of what that coding wraps (RFC 9112 §6.3). Such a body looks complete although it is cut off, or still
  /// carries chunk sizes between its bytes. Codings are sent only to a client that asked for them with `TE`.
  ///
  /// `chunked` said twice is taken for a field that was sent twice: no sender may apply it twice (RFC 9112 §6.1), and
  /// no client undoes it twice. `identity` below it changes nothing.
  ///
  /// Empty list elements are refused as well, although a recipient should ignore them (RFC 9110 §5.6.1): clients read
  /// them differently (llhttp, for one, takes the body after `chunked,` as it is), and no server is known to send them.
  /// - Parameter decoded: the codings besides `chunked` that the client undid, in lower case.
  /// - Throws: ``DownloadError`` with `.invalidResponse` for every list but `identity` or codings that were decoded,
  ///   with or without `chunked` after them.
  static func check(_ headers: HeaderFields, decoded: [String]) throws(DownloadError) {
    guard headers["Transfer-Encoding"] != nil else { return }
    var codings = headers.values("Transfer-Encoding").flatMap { value in
      value.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimmingHTTPWhitespace.lowercased() }
    }
    while codings.last == "chunked" { codings.removeLast() }
    if codings.allSatisfy({ $0 == "identity" }) || codings.allSatisfy(decoded.contains) { return }
    throw refusal(headers)
  }

  /// The error for codings that the client does not undo.
  private static func refusal(_ headers: HeaderFields) -> DownloadError {
    let value = headers.values("Transfer-Encoding").joined(separator: ", ")
    return DownloadError(
      .invalidResponse,
      "the answer has the Transfer-Encoding “\(value.prefix(64).escaped)”, which was not asked for and hides where "
        + "the body ends; ask the server's operator")
  }
}
