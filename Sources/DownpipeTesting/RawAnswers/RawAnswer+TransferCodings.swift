extension RawAnswer {
  private static let framed = "c\r\nhello, world\r\n0\r\n\r\n"
  /// ``text`` as gzip makes it.
  static let zipped = String(
    String.UnicodeScalarView(
      ([
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xD7, 0x51, 0x28,
        0xCF, 0x2F, 0xCA, 0x49, 0x01, 0x00, 0x3A, 0x72, 0xAB, 0xFF, 0x0C, 0x00, 0x00, 0x00,
      ] as [UInt8]).map { Unicode.Scalar($0) }))

  private static func coded(
    _ name: String, _ summary: String, _ value: String, _ body: String = framed,
    _ expectation: Expectation = .file(text)
  ) -> RawAnswer {
    RawAnswer(name, summary, ok("Transfer-Encoding: \(value)\r\n", body), expectation)
  }

  /// `Transfer-Encoding` and the chunked coding (RFC 9112 §6.1 and §7.1).
  static let transferCodings = [
    coded("chunked", "a chunked body", "Chunked"),
    coded("chunked-with-length", "chunked beside a Content-Length", "chunked\r\nContent-Length: 5"),
    coded("identity", "the coding identity", "identity", text),
    coded("identity-with-length", "identity beside a Content-Length", "identity\r\nContent-Length: 12", text),
    coded("identity-chunked", "the codings identity and chunked", "identity, chunked"),
    coded("chunked-twice", "the coding chunked twice in one field", "chunked, chunked"),
    coded("chunked-in-two-fields", "two fields with the coding chunked", "chunked\r\nTransfer-Encoding: chunked"),
    coded("chunk-extension", "a chunk with an extension", "chunked", "c;a=b\r\nhello, world\r\n0\r\n\r\n"),
    coded(
      "chunk-extension-with-spaces", "a chunk with an extension after a space", "chunked",
      "c ; a=b\r\nhello, world\r\n0\r\n\r\n"),
    coded("chunk-size-with-zeros", "a chunk size with zeros", "chunked", "000c\r\nhello, world\r\n000\r\n\r\n"),
    coded("trailers", "fields after the last chunk", "chunked", "c\r\nhello, world\r\n0\r\nX: a\r\nY: b\r\n\r\n"),
    coded(
      "bare-lf-in-chunks", "chunks whose lines end with LF alone", "chunked", "c\nhello, world\n0\n\n",
      .fileOrRefused(text)),
    coded("chunks-cut-short", "no last chunk", "chunked", "c\r\nhello, world\r\n", .cutShort),
    coded("chunk-cut-short", "the end of the connection in a chunk", "chunked", "c\r\nhello", .cutShort),
    coded("chunk-size-missing", "a chunk size without digits", "chunked", "zz\r\nhello\r\n0\r\n\r\n", .malformed),
    coded(
      "chunk-size-overflows", "a chunk size of more than 64 bits", "chunked",
      "ffffffffffffffffffff\r\nhello, world\r\n0\r\n\r\n", .malformed),
    coded("chunk-too-long", "a chunk that is longer than its size", "chunked", "5\r\n\(text)\r\n0\r\n\r\n", .malformed),
    coded("gzip", "the coding gzip, which was not requested", "gzip", zipped, .fileOrRefused(text)),
    coded(
      "gzip-chunked", "the codings gzip and chunked", "gzip, chunked", "20\r\n\(zipped)\r\n0\r\n\r\n",
      .fileOrRefused(text)),
    coded("unknown-coding", "an unknown coding", "another", text, .malformed),
    coded("unknown-then-chunked", "an unknown coding, then chunked", "another, chunked", framed, .malformed),
    coded("chunked-then-unknown", "chunked, then an unknown coding", "chunked, another", framed, .malformed),
    coded("chunked-then-gzip", "chunked, then gzip", "chunked, gzip", framed, .malformed),
    coded("chunked-then-identity", "chunked, then identity", "chunked, identity", framed, .malformed),
    coded("chunked-with-parameter", "chunked with a parameter", "chunked;q=1", framed, .malformed),
    coded("chunked-in-quotes", "chunked in quotes", "\"chunked\"", framed, .malformed),
    coded("chunked-misspelt", "a coding that begins with chunked", "chunkedd", framed, .malformed),
    coded(
      "unknown-in-second-field", "chunked, and an unknown coding in a second field",
      "chunked\r\nTransfer-Encoding: another", framed, .malformed),
    coded("no-coding", "a Transfer-Encoding without a value", "", framed, .malformed),
    coded("empty-members", "a list of codings with an empty member", "chunked,", framed, .fileOrRefused(text)),
  ]

  /// Bodies and statuses.
  static let bodies = [
    RawAnswer(
      "content-coding", "the Content-Encoding gzip, which was not requested: the bytes stay as they were sent",
      ok("Content-Encoding: gzip\r\nContent-Length: 32\r\n", zipped), .file(zipped)),
    RawAnswer(
      "unknown-content-coding", "an unknown Content-Encoding",
      ok("Content-Encoding: another\r\nContent-Length: 12\r\n")),
    RawAnswer(
      "no-content", "the status 204, which has no body", "HTTP/1.1 204 No Content\r\n\r\n", .status(204)),
    RawAnswer(
      "no-content-with-length", "the status 204 with a Content-Length",
      "HTTP/1.1 204 No Content\r\nContent-Length: 12\r\n\r\n", .status(204)),
    RawAnswer(
      "non-authoritative", "the status 203",
      "HTTP/1.1 203 Non-Authoritative Information\r\nContent-Length: 12\r\n\r\n\(text)"),
    RawAnswer(
      "malformed-length-of-an-error", "the status 404 with a body that is cut short",
      "HTTP/1.1 404 Not Found\r\nContent-Length: 99\r\n\r\n\(text)", .status(404)),
  ]
}
