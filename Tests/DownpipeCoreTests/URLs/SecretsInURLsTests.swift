import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct SecretsInURLsTests {
  @Test(
    "Scheme, host, path and the names of query fields are shown, and no values",
    arguments: [
      ("https://h/p?name=Eve&b=2#c=3", "https://h/p?name=…&b=…"),
      ("http://me:pw@h/f?X-Amz-Date=1&token=abc;x=", "http://…@h/f?X-Amz-Date=…&token=…;…"),
      (
        "http://h/f?X-Amz-Content-Sha256=a&response-content-disposition=b&a.b_c=d",
        "http://h/f?X-Amz-Content-Sha256=…&response-content-disposition=…&a.b_c=…"
      ),
      // No name.
      ("http://h/f?download", "http://h/f?…"), ("http://h/f?hunter2", "http://h/f?…"),
      ("http://h?hunter2", "http://h?…"),
      ("http://h/f?c2VjcmV0==", "http://h/f?…"), ("http://h/f?c2VjcmV0=&a==b", "http://h/f?…&a=…"),
      // No plain name.
      ("http://h/f?9f86d081884c7d659a2feaa0c55ad015=1", "http://h/f?…"), ("http://h/f?%74oken=abc", "http://h/f?…"),
      ("http://h/f?abcdefghijklmnopqrstuvwxyzabcdefg=1", "http://h/f?…"), ("http://h/f?é=1&=2", "http://h/f?…&…"),
      ("http://h/f?", "http://h/f?"), ("http://h/f", "http://h/f"), ("h/f?a=b", "h/f?a=…"), ("/f?a=b", "/f?a=…"),
      ("http://h/f?a=…&…", "http://h/f?a=…&…"), ("http://h/f#part", "http://h/f"), ("http://h/f#a?b=c", "http://h/f"),
      ("", ""), ("#", ""), ("?", "?"), ("nonsense", "nonsense"),
      // Marks that make another character of the one before.
      ("http://h/f?\u{301}a&b=\u{301}c#\u{301}d", "http://h/f?…&b=…"), ("http://u:p@\u{301}h/", "http://…@\u{301}h/"),
    ])
  func names(_ text: String, _ expected: String) throws {
    #expect(Array(text.redactedURL.unicodeScalars) == Array(expected.unicodeScalars))
    #expect(expected.redactedURL == expected)
    if let url = URL(string: text), url.absoluteString == text { #expect(url.redacted == expected) }
  }

  @Test(
    "User information is hidden, also in text that is not a URL",
    arguments: [
      ("http://user:pass@host/file", "http://…@host/file"),
      ("https://user@host:8080/file", "https://…@host:8080/file"),
      ("http://us:er:p@ss@host/file", "http://…@host/file"),
      ("http://bob:URL?SECRET@host/x", "http://…@host/x"),
      ("http://bob:URL#SECRET@host/x?page=2", "http://…@host/x?page=…"),
      ("http://user:pa%2Fss@[::1]:80/", "http://…@[::1]:80/"),
      ("http://h/f?url=https://a:b@host/", "http://h/f?url=…"),
      // The path is another URL.
      ("https://proxy:80/http://user:pass@host/x@y", "https://proxy:80/http://…@host/x@y"),
      ("https://a:b@proxy/http://user:pass@host/", "https://…@proxy/http://…@host/"),
      ("http://http://user:pass@host/", "http://http://…@host/"),
      // Text that is not a URL is shown in the message that rejects it.
      ("user:pass@host/file", "…@host/file"),
      ("http:/user:pass@host/file", "http:/…@host/file"),
      (#"http:\\user:pass@host\file"#, #"http:\\…@host\file"#),
      ("http://user:pa/ss@host/file", "http://…@host/file"),
      ("http://user:pass@ho st/file", "http://…@ho st/file"),
      // No user information.
      ("http://h/@scope/package", "http://h/@scope/package"), ("http://h:80/a@b", "http://h:80/a@b"),
      ("file:///a/@b", "file:///a/@b"),
    ])
  func users(_ text: String, _ expected: String) {
    #expect(text.redactedURL == expected)
    #expect(expected.redactedURL == expected)
  }

  @Test(
    "URLs in messages of other libraries are redacted",
    arguments: [
      (
        #"Error "failed" {url = "http://u:p@host/f?sig=1", next: ftp://x:y@h/} and no more"#,
        #"Error "failed" {url = "http://…@host/f?sig=…", next: ftp://…@h/} and no more"#
      ),
      ("no URL: a@b", "no URL: a@b"), ("://u:p@h ://", "://…@h ://"),
      // Commas and brackets are parts of a query, and marks at its end are the sentence's.
      ("(see http://h/f?a=1,b;c]d#e), or http://h/f?a=1: no.", "(see http://h/f?a=…;…), or http://h/f?a=…: no."),
      ("“http://h/f?a=1” <http://h/f?a>", "“http://h/f?a=…” <http://h/f?…>"),
      ("http://a/,http://u:p@b/?c", "http://a/,http://…@b/?…"),
      ("write https://host/path, or socks5h://host:port", "write https://host/path, or socks5h://host:port"),
    ])
  func messages(_ text: String, _ expected: String) {
    #expect(text.redactingURLs == expected)
    #expect(expected.redactingURLs == expected)
    #expect(DownloadError(.network, text).message == expected)
  }

  @Test("A URL of a server with thousands of others in its path is read in one pass")
  func manyURLs() {
    let text = String(repeating: "http://u:p@h/", count: 5_000)
    #expect(text.redactedURL == String(repeating: "http://…@h/", count: 5_000))
    #expect(text.redactingURLs == text.redactedURL)
    let late = String(repeating: "a://", count: 15_000) + "u:p@h"
    #expect(late.redactedURL == String(repeating: "a://", count: 15_000) + "…@h")
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
