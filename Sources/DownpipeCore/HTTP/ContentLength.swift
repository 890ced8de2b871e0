/// The length of a message's content according to its `Content-Length` fields (RFC 9110 §8.6).
package enum ContentLength {
  /// Parses all `Content-Length` fields of a reply.
  ///
  /// The same number may be repeated, in one field or in several (RFC 9112 §6.3). Parameters after a number (`5 ; a=b`)
  /// have no meaning and are ignored, as libcurl and browsers ignore them.
  /// - Throws: ``DownloadError`` with `.invalidResponse` for a value that is not a number or does not fit into 63 bits,
  ///   and for different values.
  package static func parse(_ headers: HeaderFields) throws(DownloadError) -> ByteCount {
    var length: Int64?
    for value in headers.values("Content-Length") {
      // Almost every value is one number.
      if length == nil, let number = Int64(decimalDigits: value) {
        length = number
        continue
      }
      for part in value.split(separator: ",", omittingEmptySubsequences: false) {
        guard let number = Int64(decimalDigits: part.prefix { $0 != ";" }.trimmingHTTPWhitespace) else {
          throw DownloadError(
            .invalidResponse, "the response's Content-Length “\(value.prefix(64).escaped)” is not a number of bytes")
        }
        if let length, length != number {
          throw DownloadError(
            .invalidResponse, "the response has two different Content-Lengths, \(length) and \(number)")
        }
        length = number
      }
    }
    return ByteCount(length)
  }
}

extension StringProtocol {
  /// The text with all characters except printable ASCII escaped, because text from the network may be shown in
  /// messages.
  package var escaped: String {
    unicodeScalars.map { $0.escaped(asASCII: true) }.joined()
  }
}
