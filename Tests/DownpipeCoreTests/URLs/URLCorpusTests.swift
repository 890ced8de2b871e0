import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// The tables of WHATWG's URL standard and of curl. Cases that do not concern HTTP are left out: other schemes are not
/// normalized, because a source for them has rules of its own.
@Suite(.endsHangs, .enabled(if: Corpora.isPresent, "DOWNPIPE_CORPORA names no folder"))
struct URLCorpusTests {
  private struct Table<Case: Decodable>: Decodable {
    var cases: [Case]
  }

  private struct Reference: Decodable {
    var input: String
    var base: String?
    var href: String?
    var failure: Bool?
  }

  private struct Dots: Decodable {
    var path: String
    var expected: String?
  }

  /// Where the result differs from the standard, because Foundation's `URL` cannot hold the result of the standard.
  private static let differing = ["http://example.com/foo%2": "http://example.com/foo%252"]

  /// Inputs whose result is left to the source, which parses hosts when it connects.
  private static func isLeftToSource(_ item: Reference) -> Bool {
    let numbers = [
      "http://192.168.0.257", "http://1.2.3.4./", "http://192.168.257", "http://192.168.257.", "http://256",
      "http://999999999.", "http://10000000000", "http://4294967295", "https://0x.0x.0", "https://0x100000000/test",
      "http://0..0x300/", "http://0..0x300./", "http://256.256.256.256.256.", "http://1.2.3.08", "http://1.2.3.08.",
      "http://09.2.3.4", "http://01.2.3.4.5", "http://foo.1.2.3.4", "http://0999999999999999999/",
    ]
    let addresses = [
      "http://[::1.2.3.]", "http://[1:0::]", "https://[0:.0]", "https://[0:0:]",
      "https://[0:1:2:3:4:5:6:7.0.0.0.1]", "https://[0:1.00.0.0.0]", "https://[0:1.290.0.0.0]",
    ]
    let punycode = [
      "http://a.b.c.xn--pokxncvks", "http://10.0.0.xn--pokxncvks", "http://10.0.0.xN--pokxncvks", "https://xn--/",
    ]
    return (numbers + addresses + punycode).contains(item.input)
  }

  @Test func whatwg() throws {
    let table = try Corpora.read("vectors/urltestdata.json", as: Table<Reference>.self)
    var judged = 0
    for item in table.cases {
      let isHTTP = { (text: String?) in text.map { ["http:", "https:"].contains(where: $0.lowercased().hasPrefix) } }
      guard isHTTP(item.href) ?? isHTTP(item.input) ?? false, item.base == nil || isHTTP(item.base) == true,
        !Self.isLeftToSource(item)
      else { continue }
      judged += 1
      let result: URL?
      if let base = item.base {
        let base = try #require(HTTPURL.parse(base))
        result = HTTPURL.resolve(String(decoding: item.input.utf8.map(UInt16.init), as: UTF16.self), against: base)
      } else {
        result = HTTPURL.parse(item.input)
      }
      guard item.failure != true else {
        #expect(result == nil, "\(item.input.debugDescription)")
        continue
      }
      // A Location has no fragment when it is asked for.
      var expected = try #require(Self.differing[item.input] ?? item.href)
      if item.base != nil, let hash = expected.firstIndex(of: "#") { expected = String(expected[..<hash]) }
      #expect(result?.absoluteString == expected, "\(item.input.debugDescription) against \(item.base ?? "nothing")")
    }
    #expect(judged > 100)
  }

  @Test func dots() throws {
    let table = try Corpora.read("vectors/curl-dot-segments.json", as: Table<Dots>.self)
    #expect(!table.cases.isEmpty)
    for item in table.cases {
      // curl's function also takes paths without a slash at the start, which a request target never is.
      let path = item.path.hasPrefix("/") ? item.path : "/" + item.path
      let expected = item.expected ?? item.path
      let result = String(decoding: HTTPURL.removingDotSegments(Array(path.utf8)), as: UTF8.self)
      #expect(result == (item.path.hasPrefix("/") ? expected : "/" + expected), "\(item.path)")
    }
  }

  /// A browser keeps the fragment of the first URL, and the first of several different Location fields. Fragments are
  /// never requested or shown here, and the fields of a response that was tampered with are refused, as curl does.
  @Test func redirects() throws {
    struct Kept: Decodable { var cases: [Row] }
    struct Row: Decodable {
      var original: String
      var location: String
      init(from decoder: any Decoder) throws {
        var values = try decoder.unkeyedContainer()
        _ = try values.decode(Bool.self)
        original = try values.decode(String.self)
        location = try values.decode(String.self)
      }
    }
    for row in try Corpora.read("vectors/redirect-fragment.json", as: Kept.self).cases {
      let url = try #require(HTTPURL.parse(row.original))
      var redirects = try Redirects(SourceRequest(url: url), fields: [], rules: .init())
      #expect(try redirects.follow(status: 302, headers: ["Location": row.location]))
      #expect(redirects.url.absoluteString == "http://foo.test/redirected")
    }
    struct Head: Decodable { var headers: String }
    for item in try Corpora.read("vectors/is-redirect.json", as: Table<Head>.self).cases {
      var redirects = try Redirects(
        SourceRequest(url: try #require(HTTPURL.parse("http://h/"))), fields: [], rules: .init())
      let headers = HeaderFields(
        Corpora.rawFields(item.headers).map { HeaderField($0.name, $0.value.trimmingCharacters(in: .whitespaces)) })
      #expect(throws: DownloadError.self) { _ = try redirects.follow(status: 301, headers: headers) }
    }
  }
}
