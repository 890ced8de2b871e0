extension RawAnswer {
  /// `Content-Length` (RFC 9112 §6.3), and bodies that are shorter or longer than it.
  static let lengths = [
    RawAnswer(
      "length-twice", "two fields with the same Content-Length",
      ok("Content-Length: 12\r\nContent-Length: 12\r\n")),
    RawAnswer("length-list", "one Content-Length field with the same number twice", ok("Content-Length: 12, 12\r\n")),
    RawAnswer(
      "lengths-differ", "two fields with different Content-Lengths",
      ok("Content-Length: 12\r\nContent-Length: 5\r\n"), .invalid),
    RawAnswer(
      "length-list-differs", "one Content-Length field with different numbers", ok("Content-Length: 5, 12\r\n"),
      .invalid),
    RawAnswer("length-negative", "a negative Content-Length", ok("Content-Length: -5\r\n"), .malformed),
    RawAnswer("length-with-letters", "a Content-Length with a letter", ok("Content-Length: 12x\r\n"), .malformed),
    RawAnswer(
      "length-overflows", "a Content-Length of more than 63 bits", ok("Content-Length: 99999999999999999999\r\n"),
      .malformed),
    RawAnswer("length-is-zero", "a Content-Length of 0", ok("Content-Length: 0\r\n", ""), .file("")),
    RawAnswer("no-length", "no Content-Length: the body ends with the connection", ok("")),
    RawAnswer(
      "body-cut-short", "a body that is shorter than its Content-Length", ok("Content-Length: 99\r\n"), .cutShort),
    RawAnswer(
      "body-missing", "the end of the connection right after the head", ok("Content-Length: 12\r\n", ""), .cutShort),
    RawAnswer("body-too-long", "bytes after the Content-Length", ok("Content-Length: 12\r\n", text + " and more")),
  ]
}
