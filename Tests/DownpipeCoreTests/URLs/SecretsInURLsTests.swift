import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct SecretsInURLsTests {
  @Test(
    "Messages show the names of query fields, and no values",
    arguments: [
      ("https://h/p?name=Eve&b=2#c=3", "https://h/p?name=…&b=…#c=…"),
      ("http://me:pw@h/f?X-Amz-Date=1&token=abc;x=", "http://…@h/f?X-Amz-Date=…&token=…;x="),
      ("http://h/f?download", "http://h/f?download"), ("http://h/f?hunter2", "http://h/f?…"),
      ("http://h/f?c2VjcmV0==", "http://h/f?…"), ("http://h/f?9f86d081884c7d659a2feaa0c55ad015=1", "http://h/f?…"),
      ("http://h/f?", "http://h/f?"), ("http://h/f", "http://h/f"), ("h/f?a=b", "h/f?a=…"),
      ("http://h/f?a=…&…", "http://h/f?a=…&…"),
    ])
  func names(_ text: String, _ expected: String) throws {
    #expect(text.redactedURL == expected)
    #expect(expected.redactedURL == expected)
    if let url = URL(string: text), url.absoluteString == text { #expect(url.redacted == expected) }
  }

  @Test(
    "Where a URL tells a download from others, secrets are hidden",
    arguments: [
      ("http://user:pass@host/file", "http://…@host/file"),
      ("https://user@host:8080/file", "https://…@host:8080/file"),
      ("http://us:er:p@ss@host/file", "http://…@host/file"),
      ("http://bob:URL?SECRET@host/x", "http://…@host/x"),
      ("http://bob:URL#SECRET@host/x?page=2", "http://…@host/x?page=2"),
      ("http://user:pa%2Fss@[::1]:80/", "http://…@[::1]:80/"),
      ("http://h/f?token=abc&page=2", "http://h/f?token=…&page=2"),
      ("http://h/f?page=2;sig=abc;x", "http://h/f?page=2;sig=…;x"),
      ("http://h/f?X-Amz-Date=20270115&X-Amz-Signature=abc", "http://h/f?X-Amz-Date=…&X-Amz-Signature=…"),
      ("http://h/f?Expires=1&Signature=a&Key-Pair-Id=b", "http://h/f?Expires=1&Signature=…&Key-Pair-Id=…"),
      ("http://h/f?api_key=a&authKey=b&KEY=c&monkey=d", "http://h/f?api_key=…&authKey=…&KEY=…&monkey=d"),
      ("http://h/f?%74oken=abc", "http://h/f?%74oken=…"),
      ("http://h/f#access_token=abc&state=1", "http://h/f#access_token=…&state=1"),
      ("http://h/f?a=1#token=2", "http://h/f?a=1#token=…"),
      ("http://h/f?id=9f86d081884c7d659a2feaa0c55ad015", "http://h/f?id=…"),
      ("http://h/f?9f86d081884c7d659a2feaa0c55ad015", "http://h/f?…"),
      ("http://h/f?q=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "http://h/f?q=…"),
      ("http://h/f?url=https%3A%2F%2Fa%3Ab%40host%2F", "http://h/f?url=…"),
      // Text that is not a URL is shown in the message that rejects it.
      ("user:pass@host/file", "…@host/file"),
      ("http:/user:pass@host/file", "http:/…@host/file"),
      ("http://user:pa/ss@host/file", "http://…@host/file"),
      ("http://user:pass@ho st/file", "http://…@ho st/file"),
    ])
  func hidden(_ text: String, _ expected: String) throws {
    #expect(text.identifyingURL == expected)
    // A message has nothing that is hidden there.
    #expect(!text.redactedURL.contains("abc") && !text.redactedURL.contains("9f86"))
  }

  @Test(
    "The rest of a URL is kept",
    arguments: [
      "https://example.org/film.mkv", "http://h/@scope/package", "http://h:80/a@b", "http://h/f?page=2&lang=en#part",
      "http://h/f?file=ubuntu-24.04.1-live-server-amd64.iso", "http://h/f?a", "http://h/f?", "http://h/f?token=",
      "http://h/f?design=modern-and-very-long-without-digits", "", "#", "?", "nonsense",
      "http://h/f?t=20270115080000000000000000", "file:///a/@b",
    ])
  func kept(_ text: String) { #expect(text.identifyingURL == text) }

  @Test("URLs in messages of other libraries are redacted")
  func messages() {
    let text = #"Error "failed" {url = "http://u:p@host/f?sig=1", next: ftp://x:y@h/} and no more"#
    #expect(text.redactingURLs == #"Error "failed" {url = "http://…@host/f?sig=…", next: ftp://…@h/} and no more"#)
    #expect("no URL: a@b".redactingURLs == "no URL: a@b")
    #expect("://u:p@h ://".redactingURLs == "://…@h ://")
  }

  @Test("Errors and requests have no secrets in logs")
  func descriptions() throws {
    struct Foreign: Error, CustomStringConvertible {
      let description = "cannot open http://u:hunter2@host/f"
    }
    #expect(!DownloadError(Foreign(), as: .network).message.contains("hunter2"))
    var request = try DownloadRequest("http://u:hunter2@host/f", id: "a").with(
      \.headers, ["Authorization": "Basic hunter2"])
    request.mirrors = [request.url]
    #expect("\(request)" == "a http://…@host/f")
    #expect(!"\([request])".contains("hunter2"))
    #expect(!String(reflecting: request).contains("hunter2"))
    let error = #expect(throws: DownloadError.self) { try DownloadRequest("//u:hunter2@host/f") }
    #expect(error?.message.contains("hunter2") == false)
  }
}
