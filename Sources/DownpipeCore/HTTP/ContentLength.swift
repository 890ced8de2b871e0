/// The length of a message's content as its `Content-Length` fields give it (RFC 9110 §8.6).
package enum ContentLength {
  /// Reads all `Content-Length` fields of an answer.
  ///
  /// The same number given several times, in one field or in several, is that number (RFC 9112 §6.3).
  /// - Throws: ``DownloadError`` with `.invalidResponse` for anything that is no number, does not fit into
  ///   63 bits, or contradicts itself.
  package static func parse(_ headers: HeaderFields) throws(DownloadError) -> ByteCount {
    var length: Int64?
    for value in headers.values("Content-Length") {
      for part in value.split(separator: ",", omittingEmptySubsequences: false) {
        guard let number = Int64(decimalDigits: part.trimmingHTTPWhitespace) else {
          throw DownloadError(
            .invalidResponse, "the answer's Content-Length “\(value.prefix(64).escaped)” is no number of bytes")
        }
        if let length, length != number {
          throw DownloadError(
            .invalidResponse, "the answer has two different Content-Lengths, \(length) and \(number)")
        }
        length = number
      }
    }
    return ByteCount(length)
  }
}

extension StringProtocol {
  /// The text with everything but printable ASCII escaped: what comes from the network may be shown in messages.
  package var escaped: String {
    unicodeScalars.map { $0.escaped(asASCII: true) }.joined()
  }
}
