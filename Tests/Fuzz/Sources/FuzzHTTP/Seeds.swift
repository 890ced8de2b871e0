import Foundation
import FuzzSupport

/// The first inputs: answers that differ in what a parser has to do.
enum Seeds {
  private static let ok = "HTTP/1.1 200 OK\r\n"
  private static let text = "hello, world"

  static let texts: [(flags: UInt8, text: String)] = [
    (0, ok + "Content-Length: 12\r\n\r\n" + text),
    (0, ok + "Content-Length: 12, 12\r\nContent-Length: 12\r\nETag: \"a\"\r\n\r\n" + text),
    (0, ok + "\r\n" + text),
    (1, ok + "Content-Length: 99\r\nAccept-Ranges: bytes\r\n\r\n" + text),
    (1, "HTTP/1.1 200 OK\nX: a\n b\n\tc\nContent-Length: 12\n\n" + text),
    (0, ok + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\nc ; a=b\r\nhello, world\r\n0\r\nX: a\r\n\r\n"),
    (1, ok + "Transfer-Encoding: gzip, chunked\r\n\r\nc\r\nhello, world\r\n0\r\n\r\n"),
    (1, ok + "Transfer-Encoding: identity, chunked\r\nContent-Length: 5\r\n\r\nc\nhello, world\n0\n\n"),
    (
      0,
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 1\r\n\r\na"
    ),
    (0, "HTTP/1.0 204 No Content\r\n\r\n"),
    (0, "HTTP/2 200\r\nContent-Length: 12\r\n\r\n" + text),
    (
      2,
      "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-11/12\r\nETag: \"a\"\r\nContent-Length: 7\r\n\r\n, world"
    ),
    (2, "HTTP/1.1 206 Partial Content\r\nContent-Type: multipart/byteranges; boundary=x\r\n\r\n--x\r\n\r\n--x--"),
    (2, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */5\r\nContent-Length: 0\r\n\r\n"),
    (2, "HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"),
    (
      0,
      "HTTP/1.1 302 Found\r\nLocation: next?q=a b%20c#f\r\nContent-Length: 4\r\n\r\nmove@@@@" + ok
        + "Content-Length: 12\r\n\r\n" + text
    ),
    (
      16,
      "HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\nContent-Length: 4\r\n\r\nmove@@@@" + ok
        + "Content-Length: 0\r\n\r\n"
    ),
    (
      16,
      "HTTP/1.1 301 Moved\r\nLocation: ../a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nmove\r\n0\r\n\r\n@@@@" + ok
        + "\r\n"
    ),
    (0, "HTTP/1.1 308 Permanent Redirect\r\nLocation: //127.0.0.1/[1]\r\nLocation: x\r\n\r\n"),
    (
      4,
      "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth,auth-int\", "
        + "algorithm=SHA-256, opaque=\"o\", userhash=true\r\nContent-Length: 2\r\n\r\nno@@@@" + ok
        + "Authentication-Info: nextnonce=\"m\"\r\nContent-Length: 12\r\n\r\n" + text
    ),
    (
      20,
      "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\nWWW-Authenticate: Digest realm=r, nonce=n, stale=true\r\n"
        + "Content-Length: 0\r\n\r\n@@@@HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest nonce=x\r\nContent-Length: 0\r\n\r\n"
    ),
    (4, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: NTLM\r\nContent-Length: 2\r\n\r\nno"),
    (
      8,
      ok + "Set-Cookie: id=7; Path=/; Max-Age=60; HttpOnly; SameSite=Lax\r\nSet-Cookie: a=b; Domain=.0.0.1; "
        + "Expires=Wed, 09 Jun 2027 10:18:14 GMT; Secure\r\nContent-Length: 12\r\n\r\n" + text
    ),
    (24, ok + "Set-Cookie: __Host-x=\"y\"; path=/\r\nSet-Cookie: ;;=\r\nContent-Length: 0\r\n\r\n"),
    (64, ok + "Content-Length: 12\r\n\r\n" + text),
    (80, ok + "Transfer-Encoding: chunked\r\n\r\nc\r\nhello, world\r\n"),
    (
      0,
      ok
        + "Content-Disposition: attachment; filename=\"caf\u{E9}.txt\"; filename*=UTF-8''caf%C3%A9.txt; filename*0*=x\r\n"
        + "Content-Type: text/html; charset=utf-8\r\nRepr-Digest: sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:\r\n"
        + "Retry-After: 120\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-MD5: a\r\n\r\n" + text
    ),
    (0, "HTTP/1.1 503 Busy\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n"),
    (0, "<html>hello</html>\n"), (0, "220 mail.example ESMTP\r\n"), (0, ""),
  ]

  /// `text` in each coding.
  static let coded: [(coding: String, base64: String)] = [
    ("gzip", "H4sIAAAAAAACA8tIzcnJ11FIzs8rSc0rAdIpmXnpXAAaNXF2FgAAAA=="),
    ("deflate", "eNrLSM3JyddRSM7PK0nNKwHSKZl56VwAXiIH+g=="), ("deflate", "y0jNycnXUUjOzytJzSsB0imZeelcAA=="),
    ("br", "HxUA+KUVQMbe9CCFKKKJ5ECXi9iptrMA"), ("zstd", "KLUv/QBYsQAAaGVsbG8sIGNvbnRlbnQgY29kaW5nCg=="),
  ]

  static let words = [
    "HTTP/1.1 ", "HTTP/1.0 ", "\\x0d\\x0a", "\\x0d\\x0a\\x0d\\x0a", "@@@@", "Content-Length: ", "Transfer-Encoding: ",
    "chunked",
    "gzip", "deflate", "br", "zstd", "identity", "Content-Encoding: ", "Content-Range: bytes ", "Location: ",
    "ETag: \\x22",
    "W/", "Last-Modified: ", "Connection: close", "Connection: keep-alive", "Upgrade: h2c", "WWW-Authenticate: Digest ",
    "nonce=",
    "realm=", "algorithm=MD5-sess", "stale=true", "Set-Cookie: ", "Max-Age=", "Expires=", "Domain=", "Path=",
    "Retry-After: ",
    "Content-Disposition: ", "filename*=", "UTF-8''", "multipart/byteranges", "9223372036854775807", "-1",
    "Repr-Digest: ",
  ]

  static func bytes(_ text: String) -> [UInt8] { text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }

  static var all: [[UInt8]] {
    texts.map { [$0.flags, 0] + bytes($0.text) }
      + coded.flatMap { coding, base64 in
        let body = Data(base64Encoded: base64).map(Array.init) ?? []
        let head = bytes(ok + "Content-Encoding: \(coding)\r\nContent-Length: \(body.count)\r\n\r\n")
        let framed = bytes(ok + "Transfer-Encoding: \(coding), chunked\r\n\r\n\(String(body.count, radix: 16))\r\n")
        return [[32, 0] + head + body, [33, 1] + framed + body + bytes("\r\n0\r\n\r\n")]
      }
  }

  /// Writes the inputs into the folder, and the dictionary beside it.
  static func write(to folder: URL) -> Bool {
    do {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      for (number, bytes) in all.enumerated() { try Data(bytes).write(to: folder.appending(path: "seed-\(number)")) }
      let lines = words.map { "\"\($0)\"\n" }.joined()
      try Data(lines.utf8).write(to: folder.deletingLastPathComponent().appending(path: "words.dict"))
      return true
    } catch {
      note("the first inputs cannot be written: \(error)")
      return false
    }
  }
}
