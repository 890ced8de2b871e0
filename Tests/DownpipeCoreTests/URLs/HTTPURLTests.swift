import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct HTTPURLTests {
  @Test(arguments: [
    // As written.
    ("https://example.org/file", "https://example.org/file"),
    ("http://h/caf%E9.txt", "http://h/caf%E9.txt"), ("http://h/a%2Fb%2f%41", "http://h/a%2Fb%2f%41"),
    ("http://h/?q=%e9&r=a+b;c,d'e", "http://h/?q=%e9&r=a+b;c,d'e"), ("http://h//a//b", "http://h//a//b"),
    ("http://h/a?b?c", "http://h/a?b?c"), ("http://h/?", "http://h/?"), ("http://h/x#part", "http://h/x#part"),
    // Encoded once, beside escapes that stay.
    ("http://h/[1]%20x", "http://h/%5B1%5D%20x"), ("http://h/é%20x", "http://h/%C3%A9%20x"),
    ("http://h/?q=a b%20c", "http://h/?q=a%20b%20c"),
    ("http://h/a|b^c`d{e}\"<f>", "http://h/a%7Cb%5Ec%60d%7Be%7D%22%3Cf%3E"),
    ("http://h/?a[]=1&b=\\", "http://h/?a%5B%5D=1&b=%5C"), ("http://h/100%", "http://h/100%25"),
    ("http://h/%zz%2", "http://h/%25zz%252"), ("http://h/a\u{7F}\u{1}b", "http://h/a%7F%01b"),
    ("http://h/?q=日本 %E9", "http://h/?q=%E6%97%A5%E6%9C%AC%20%E9"), ("http://h/x#a#b é", "http://h/x#a%23b%20%C3%A9"),
    // Ends, line breaks, slashes.
    ("  http://h/x \t\n", "http://h/x"), ("http://h/a\nb\tc", "http://h/abc"), ("http:h/x", "http://h/x"),
    ("http:/h/x", "http://h/x"), ("https:\\\\h\\a\\b?c\\d", "https://h/a/b?c%5Cd"),
    // Dots.
    ("http://h", "http://h/"), ("http://h?q", "http://h/?q"), ("http://h/a/../b/./c", "http://h/b/c"),
    ("http://h/a/%2e%2E/b", "http://h/b"), ("http://h/..hidden/...", "http://h/..hidden/..."),
    ("http://h/?a/../b", "http://h/?a/../b"), ("http://h/a/..", "http://h/"),
    // Authority.
    ("HTTP://Example.ORG:80/A", "http://example.org/A"), ("https://h:443/", "https://h/"),
    ("https://h:80/", "https://h:80/"), ("http://h:0080/", "http://h/"), ("http://h:/x", "http://h/x"),
    ("http://u:p@h/x", "http://u:p@h/x"), ("http://a@b:c d@h/", "http://a%40b:c%20d@h/"), ("http://:@h/", "http://h/"),
    ("http://é.example/x", "http://xn--9ca.example/x"), ("http://%C3%A9.example/x", "http://xn--9ca.example/x"),
    ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"), ("http://a_b/", "http://a_b/"),
    ("http://[::1]:8080/x", "http://[::1]:8080/x"), ("http://[FE80::1%eth0]/", "http://[fe80::1%25eth0]/"),
    ("http://[fe80::1%25eth0]/", "http://[fe80::1%25eth0]/"), ("http://1.2.3.4./", "http://1.2.3.4./"),
    // Other schemes: only what cannot be kept is encoded.
    ("file:///a b/caf%E9", "file:///a%20b/caf%E9"), ("file:///a/../b", "file:///a/../b"),
    ("FTP://h/é", "ftp://h/%C3%A9"),
    ("data:,hello world", "data:,hello%20world"), ("greeting:x", "greeting:x"), ("file:///a\\b", "file:///a%5Cb"),
  ])
  func parsed(_ text: String, _ expected: String) throws {
    let url = try #require(HTTPURL.parse(text))
    #expect(url.absoluteString == expected)
    // The text does not change any more: in the ledger, and when it is added again.
    #expect(HTTPURL.parse(url.absoluteString) == url)
    #expect(URL(string: url.absoluteString)?.absoluteString == expected)
    #expect(try DownloadRequest(text).url == url)
  }

  @Test(arguments: [
    "", "  ", "file", "/x", "//h/x", "example.org/file", "http:", "http://", "http://?q", "http://#", "http:///", "1:x",
    "http://h:99999/", "http://h:b/", "http://h:1:2/", "http://a b/", "http://a<b/", "http://a|b/", "http://ho%00st/",
    "http://ho%25st/", "http://h%E9/", "http://u@/x", "http://[::1/", "http://[]/", "http://[x]/", "http://[::1]a/",
    "é:x",
    "http://a\u{0}b/",
  ])
  func notParsed(_ text: String) {
    #expect(HTTPURL.parse(text) == nil, "\(String(describing: HTTPURL.parse(text)))")
    let error = #expect(throws: DownloadError.self) { _ = try DownloadRequest(text) }
    #expect(error?.code == .unsupportedURL)
  }

  @Test(arguments: [
    ("z", "http://a/x/z"), ("/z", "http://a/z"), ("?r", "http://a/x/y?r"), ("../z", "http://a/z"), ("..", "http://a/"),
    ("../../../../z", "http://a/z"), ("//b/z", "http://b/z"), ("https://b:1/z", "https://b:1/z"),
    ("./z?a/../b", "http://a/x/z?a/../b"),
    ("HTTP://B", "http://b/"), (" z ", "http://a/x/z"), ("z#part", "http://a/x/z"), ("#part", "http://a/x/y?q"),
    ("", "http://a/x/y?q"), ("http:///b/z", "http://b/z"), ("///b/z", "http://b/z"), ("http:/z", "http://a/z"),
    ("http:z", "http://a/x/z"), ("https:/b/z", "https://b/z"), ("\\\\b\\z", "http://b/z"), ("\\z", "http://a/z"),
    // Octets: Latin-1 stays Latin-1, UTF-8 stays UTF-8.
    ("/caf\u{E9}", "http://a/caf%E9"), ("/caf\u{C3}\u{A9}", "http://a/caf%C3%A9"), ("/日", "http://a/%E6%97%A5"),
    ("/%E9 %zz[1]", "http://a/%E9%20%25zz%5B1%5D"), ("//\u{C3}\u{A9}.example/", "http://xn--9ca.example/"),
    ("http://u:p@b/z", "http://u:p@b/z"), ("this should be ignored", "http://a/x/this%20should%20be%20ignored"),
    ("../moo.html/?name=d a niel&testcase=/400002    ", "http://a/moo.html/?name=d%20a%20niel&testcase=/400002"),
    ("ht3p://localhost/", "ht3p://localhost/"), ("mailto:a@b", "mailto:a@b"), ("a%2e%2e/%2e%2e/z", "http://a/x/z"),
  ])
  func resolved(_ location: String, _ expected: String) throws {
    let base = try #require(URL(string: "http://a/x/y?q#f"))
    #expect(HTTPURL.resolve(location, against: base)?.absoluteString == expected)
  }

  @Test(arguments: [
    ("http://u:p@Host:8080/a%E9?b=%2e#c", "http://Host:8080/a%E9?b=%2e", "/a%E9?b=%2e"),
    ("HTTP://h", "http://h/", "/"), ("http://h?q", "http://h/?q", "/?q"), ("http://h/?", "http://h/?", "/?"),
    ("http://h/a/../b;c", "http://h/a/../b;c", "/a/../b;c"), ("http://[::1]:1/x@y:z", "http://[::1]:1/x@y:z", "/x@y:z"),
    ("https://a@h/x?y@z", "https://h/x?y@z", "/x?y@z"), ("http://h/#", "http://h/", "/"),
    ("http://h:/", "http://h/", "/"),
  ])
  func sent(_ text: String, _ wire: String, _ target: String) throws {
    let url = try #require(URL(string: text))
    #expect(HTTPURL.wireText(url) == wire)
    #expect(HTTPURL.target(url) == target)
    let relative = try #require(URL(string: "../z%E9?y", relativeTo: url))
    #expect(HTTPURL.target(relative) == "/z%E9?y")
  }

  @Test(arguments: [
    ("https://example.org/a", "https://example.org", true), ("https://EXAMPLE.org:443", "https://example.org", true),
    ("http://example.org:80", "http://example.org", true), ("http://example.org", "https://example.org", false),
    ("https://example.org:444", "https://example.org", false), ("https://example.org.", "https://example.org", false),
    ("https://a.example.org", "https://example.org", false), ("https://é.example", "https://xn--9ca.example", true),
    ("https://u:p@example.org", "https://example.org", true), ("http://[::1]:80/", "http://[::1]", true),
    ("http://127.0.0.1", "http://127.1", false), ("ftp://h:21", "ftp://h", true), ("foo://h:1", "foo://h", false),
  ])
  func origins(_ left: String, _ right: String, _ areEqual: Bool) throws {
    let origins = (try #require(Origin(left)), try #require(Origin(right)))
    #expect((origins.0 == origins.1) == areEqual)
    let text = try JSONEncoder().encode([origins.0, origins.1])
    #expect(try JSONDecoder().decode([Origin].self, from: text) == [origins.0, origins.1])
  }

  @Test(arguments: ["file:///a", "data:,x", "mailto:a@b", "http:///x", "x", "http://h:99999999999999999999/"])
  func noOrigin(_ text: String) throws {
    #expect(Origin(try #require(URL(string: text))) == nil)
    #expect(Origin("not a URL") == nil)
  }

  @Test(arguments: [
    ("http://Example.org:8080/a", "example.org:8080", "http://example.org:8080/a"),
    ("http://u@h/caf%E9?q#f", "h", "http://h/caf%E9"), ("http://[FE80::1]:1/", "[fe80::1]:1", "http://[fe80::1]:1/"),
    ("file:///a/b", "", "file:///a/b"), ("mailto:a@b", "", "mailto://a@b"),
  ])
  func keys(_ text: String, _ host: String, _ resource: String) throws {
    let url = try #require(URL(string: text))
    #expect(url.hostKey == host)
    #expect(url.resourceKey == resource)
  }

  @Test(arguments: [
    ("http://h/", true), ("HTTPS://h/", true), ("http:x", true), ("httpx://h/", false), ("ftp://h/http:", false),
    ("file:///http://h/", false), ("http/x:y", false), ("http", false), ("", false), (":", false),
  ])
  func isHTTP(_ text: String, _ isHTTP: Bool) {
    #expect(text.hasHTTPScheme == isHTTP)
    #expect(URLText(text).isHTTP == isHTTP)
    if let url = URL(string: text) { #expect(url.isHTTP == isHTTP) }
  }

  @Test(arguments: [
    ("a.test", true), ("127.0.0.1", true), ("::1", true), ("a_b", true), ("", false), ("[::1]", false), ("a,b", false),
    ("a b", false), ("u@h", false), ("h/x", false), ("h?q", false), ("h%00", false), ("é", false), ("h\r\nX: y", false),
    (String(repeating: "a", count: 253), true), (String(repeating: "a", count: 254), false),
  ])
  func isHost(_ text: String, _ isHost: Bool) { #expect(text.isHost == isHost) }
}
