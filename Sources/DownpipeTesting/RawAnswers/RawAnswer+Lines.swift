extension RawAnswer {
  /// The status line and the lines of the fields (RFC 9112 §2.2, §4 and §5).
  static let lines = [
    RawAnswer("bare-lf", "lines that end with LF alone", "HTTP/1.1 200 OK\nContent-Length: 12\n\n\(text)"),
    RawAnswer(
      "folded-field", "a field that continues in the next line", ok("X: a\r\n b\r\n\tc\r\nContent-Length: 12\r\n")),
    RawAnswer(
      "control-characters", "control characters in the value of a field",
      ok("X: a\u{1}b\u{7F}c\r\nContent-Length: 12\r\n")),
    RawAnswer("nul-in-a-field", "a NUL in the value of a field", ok("X: a\0b\r\nContent-Length: 12\r\n"), .malformed),
    RawAnswer("latin-1-field", "the value of a field in Latin-1", ok("X: caf\u{E9}\r\nContent-Length: 12\r\n")),
    RawAnswer(
      "many-fields", "300 fields",
      ok(String(repeating: "X-Field: value\r\n", count: 300) + "Content-Length: 12\r\n")),
    RawAnswer(
      "long-field", "a field of 60 KB", ok("X: \(String(repeating: "a", count: 60_000))\r\nContent-Length: 12\r\n")),
    RawAnswer(
      "endless-field", "a field of 4 MB", ok("X: \(String(repeating: "a", count: 4_000_000))\r\n"), .tooLarge),
    RawAnswer("endless-fields", "4 MB of fields", ok(String(repeating: "A: b\r\n", count: 700_000)), .tooLarge),
    RawAnswer(
      "field-without-colon", "a line of the head without a colon", ok("nonsense\r\nContent-Length: 12\r\n"),
      .fileOrRefused(text)),
    RawAnswer(
      "space-before-colon", "a space between the name of a field and the colon", ok("Content-Length : 12\r\n"),
      .fileOrRefused(text)),
    RawAnswer("no-reason", "a status line without a reason", "HTTP/1.1 200\r\nContent-Length: 12\r\n\r\n\(text)"),
    RawAnswer("http-1.0", "an answer of HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 12\r\n\r\n\(text)"),
    RawAnswer(
      "informational", "the statuses 103 and 102 before the answer",
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + ok("Content-Length: 12\r\n")),
    RawAnswer("http-0.9", "a body without a head", "<html>hello</html>\n", .malformed),
    RawAnswer("not-http", "the greeting of another protocol", "220 mail.example ESMTP\r\n", .malformed),
    RawAnswer("no-such-version", "the version HTTP/7.9", "HTTP/7.9 200 OK\r\nContent-Length: 0\r\n\r\n", .malformed),
    RawAnswer("no-such-status", "the status 9999", "HTTP/1.1 9999 OK\r\nContent-Length: 0\r\n\r\n", .malformed),
    RawAnswer("head-cut-short", "the end of the connection in the head", "HTTP/1.1 200 OK\r\nContent-Le", .malformed),
    RawAnswer("no-answer", "the end of the connection instead of an answer", "", .cutShort),
  ]
}
