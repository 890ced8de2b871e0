import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// The parts of URLs, as RFC 3986 §3 names them.
@Suite(.endsHangs)
struct URLTextTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let text: String
    let parts: [String?]
    var testDescription: String { text }

    /// Scheme, user information, host, port, path, query and fragment.
    init(_ text: String, _ parts: String?...) {
      self.text = text
      self.parts = parts
    }
  }

  @Test(
    "The parts are those that are written",
    arguments: [
      Case("https://example.org/a/b?c=d#e", "https", nil, "example.org", nil, "/a/b", "c=d", "e"),
      Case("HTTP://Example.ORG", "HTTP", nil, "Example.ORG", nil, "", nil, nil),
      Case("http://h:8080", "http", nil, "h", "8080", "", nil, nil),
      Case("http://h:/a", "http", nil, "h", nil, "/a", nil, nil),
      Case("http://user:pa@ss@h:1/", "http", "user:pa@ss", "h", "1", "/", nil, nil),
      Case("http://@h/", "http", "", "h", nil, "/", nil, nil),
      Case("http://[::1]:80/a", "http", nil, "[::1]", "80", "/a", nil, nil),
      Case("http://[fe80::1%25eth0]?q", "http", nil, "[fe80::1%25eth0]", nil, "", "q", nil),
      Case("http://a]b@[::1]/", "http", "a]b", "[::1]", nil, "/", nil, nil),
      Case("http://h?a/b@c:1", "http", nil, "h", nil, "", "a/b@c:1", nil),
      Case("http://h/#", "http", nil, "h", nil, "/", nil, ""),
      Case("http://h/?#a?b#c", "http", nil, "h", nil, "/", "", "a?b#c"),
      Case("http://", "http", nil, "", nil, "", nil, nil),
      Case("http:/a", "http", nil, nil, nil, "/a", nil, nil),
      Case("data:text/plain,a?b#c", "data", nil, nil, nil, "text/plain,a", "b", "c"),
      Case("//h/a:b", "", nil, "h", nil, "/a:b", nil, nil),
      Case("/a:b", "", nil, nil, nil, "/a:b", nil, nil),
      Case("http://bücher.example/ü?ü#ü", "http", nil, "bücher.example", nil, "/ü", "ü", "ü"),
      Case("", "", nil, nil, nil, "", nil, nil),
    ])
  func parts(_ example: Case) {
    let url = URLText(example.text)
    let parts = [url.scheme, url.userInfo, url.host, url.portText, url.path, url.query, url.fragment]
    #expect(parts.map { $0.map(String.init) } == example.parts)
  }

  @Test(
    "A URL with a port has one form, whichever way it is parsed",
    arguments: [
      ("http://h:8080/a", "http://h:8080/a"), ("http://h:80/a", "http://h/a"), ("https://h:443/a", "https://h/a"),
      ("https://h:80/a", "https://h:80/a"), ("http://h:0080/a", "http://h/a"), ("http://h:08080/a", "http://h:8080/a"),
      ("http://h:/a", "http://h/a"), ("http://h:65535/a", "http://h:65535/a"), ("http://h:65536/a", nil),
      ("http://h:8a/a", nil), ("http://h:+8/a", nil), ("http://h:8080/.a", "http://h:8080/.a"),
      ("http://h:8080/a/../b", "http://h:8080/b"), ("http://h:8080", "http://h:8080/"),
    ] as [(String, String?)])
  func port(_ text: String, _ expected: String?) {
    #expect(HTTPURL.parse(text)?.absoluteString == expected)
  }

  @Test("The host that limits apply to is in lower case, with the port")
  func hostKey() {
    #expect(URLText("http://Example.ORG/a").hostKey == "example.org")
    #expect(URLText("http://example.org:8080/a").hostKey == "example.org:8080")
    #expect(URLText("http://BÜCHER.example:1").hostKey == "bücher.example:1")
    #expect(URLText("http://example.org/A:B").hostKey == "example.org")
    #expect(URLText("http://user:secret@[2001:db8::1]:8080?q").hostKey == "[2001:db8::1]:8080")
    #expect(URLText("http://example.org:/a").hostKey == "example.org")
    #expect(URLText("http://example.org:080/a").hostKey == "example.org:80")
    #expect(URLText("http://example.org:8080x/a").hostKey == "example.org")
    #expect(URLText("data:,a").hostKey == "")
  }
}
