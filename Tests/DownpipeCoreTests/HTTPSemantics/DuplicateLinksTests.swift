import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct DuplicateLinksTests {
  private static func urls(_ fields: [String], of url: String = "https://a.test/d/f?q=1") -> [String] {
    guard let url = URL(string: url) else { return [] }
    return DuplicateLinks.urls(in: HeaderFields(fields.map { HeaderField("link", $0) }), of: url)
      .map(\.absoluteString)
  }

  static let fields: [([String], [String])] = [
    ([], []), ([""], []), ([","], []), (["<https://b.test/f>"], []), (["<https://b.test/f>; rel=next"], []),
    (["<https://b.test/f>; rel=duplicate"], ["https://b.test/f"]),
    (["<https://b.test/f>;rel=\"duplicate\""], ["https://b.test/f"]),
    (["  <https://b.test/f>\t ;\tREL = Duplicate  "], ["https://b.test/f"]),
    (["<https://b.test/f>; rel=\"alternate DUPLICATE\""], ["https://b.test/f"]),
    (["<https://b.test/f>; rel=\"du\\plicate\""], ["https://b.test/f"]),
    (["<https://b.test/f>; rel=\"duplicates\""], []), (["<https://b.test/f>; rel=\"duplicate,\""], []),
    (["<https://b.test/f>; title=\"rel=duplicate\""], []), (["<https://b.test/f>; rev=duplicate"], []),
    (["<https://b.test/f>; xrel=duplicate; rel"], []),
    // The first parameter of a name counts (RFC 8288 §3.3).
    (["<https://b.test/f>; rel=next; rel=duplicate"], []),
    (["<https://b.test/f>; rel=duplicate; rel=next"], ["https://b.test/f"]),
    // Several links, several fields.
    (
      ["<https://b.test/f>; rel=duplicate, <https://c.test/f>; rel=duplicate", "<https://d.test/f>; rel=duplicate"],
      ["https://b.test/f", "https://c.test/f", "https://d.test/f"]
    ),
    (
      [
        "<https://b.test/x,y;z>; title=\"a, <https://no.test/>; rel=duplicate\"; rel=duplicate,,<https://c.test/>;rel=duplicate"
      ],
      ["https://b.test/x,y;z", "https://c.test/"]
    ),
    // The lowest number first; those without one, or with a wrong one, last; the preferred one first among equals.
    (
      [
        "<https://b.test/>; rel=duplicate", "<https://c.test/>; rel=duplicate; pri=20; geo=de",
        "<https://d.test/>; rel=duplicate; pri=\"3\"", "<https://e.test/>; rel=duplicate; pri=0",
        "<https://f.test/>; rel=duplicate; pri=20; pref", "<https://g.test/>; rel=duplicate; pri=-1; pref",
        "<https://h.test/>; rel=duplicate; pri=99999999999999999999",
      ],
      ["d", "f", "c", "g", "b", "e", "h"].map { "https://\($0).test/" }
    ),
    // References are relative to the URL that served the response; fragments are not sent.
    (["<g>; rel=duplicate"], ["https://a.test/d/g"]), (["</g#part>; rel=duplicate"], ["https://a.test/g"]),
    (["<//b.test/é>; rel=duplicate"], ["https://b.test/%E9"]),
    (["<?q=2>; rel=duplicate"], ["https://a.test/d/f?q=2"]),
    // The URL itself, and the same one twice.
    (["<>; rel=duplicate", "<f?q=1#x>; rel=duplicate"], []),
    (["<https://b.test>; rel=duplicate", "<HTTPS://B.TEST:443/>; rel=duplicate"], ["https://b.test/"]),
    // A link about another resource.
    (["<https://b.test/f>; rel=duplicate; anchor=\"#foo\""], []),
    (["<https://b.test/f>; anchor=\"https://a.test/d/f?q=1\"; rel=duplicate"], []),
    // URLs that must not be used.
    (["<http://b.test/f>; rel=duplicate"], []), (["<ftp://b.test/f>; rel=duplicate"], []),
    (["<file:///etc/passwd>; rel=duplicate"], []), (["<https://u:p@b.test/f>; rel=duplicate"], []),
    (["<https://u@b.test/f>; rel=duplicate"], []), (["<https:///f>; rel=duplicate"], ["https://f/"]),
    (["<https://b.test:0/f>; rel=duplicate"], []), (["<https://b.test:70000/f>; rel=duplicate"], []),
    (["<https://b c.test/f>; rel=duplicate"], []), (["<javascript:alert(1)>; rel=duplicate"], []),
    (["<https://\(String(repeating: "b", count: 300))/f>; rel=duplicate"], []),
    (["<https://b.test/\(String(repeating: "b", count: 5000))>; rel=duplicate"], []),
    // Malformed links are skipped, and the next one is used.
    (["https://b.test/f; rel=duplicate, <https://c.test/>; rel=duplicate"], ["https://c.test/"]),
    (["<https://b.test/f> rel=duplicate, <https://c.test/>; rel=duplicate"], ["https://c.test/"]),
    (["<https://b.test/f>; rel=duplicate x, <https://c.test/>; rel=duplicate"], ["https://c.test/"]),
    (["<https://b.test/f>; rel=\"duplicate\"x, <https://c.test/>; rel=duplicate"], ["https://c.test/"]),
    (["<https://b.test/f>; ;; rel=duplicate;"], ["https://b.test/f"]),
    (["<https://b.test/f; rel=duplicate"], []), (["<https://b.test/f>; rel=\"duplicate"], []), (["<"], []),
    (["\"", "<https://c.test/>; rel=duplicate"], ["https://c.test/"]),
  ]

  @Test(arguments: fields)
  func field(_ fields: [String], _ expected: [String]) {
    #expect(Self.urls(fields) == expected)
  }

  @Test("http URLs are used beside an http URL")
  func insecure() {
    let fields = ["<http://b.test/f>; rel=duplicate, <https://c.test/f>; rel=duplicate, </g>; rel=duplicate"]
    #expect(
      Self.urls(fields, of: "http://a.test/f") == ["http://b.test/f", "https://c.test/f", "http://a.test/g"])
    #expect(Self.urls(fields, of: "file:///f").isEmpty)
  }

  @Test("the number of URLs is limited to the best")
  func many() {
    let field = (0..<40).map { "<https://\($0).test/>; rel=duplicate; pri=\(100 - $0)" }.joined(separator: ", ")
    #expect(Self.urls([field]) == (0..<16).map { "https://\(39 - $0).test/" })
    let fields = (0..<1000).map { "<https://\($0).test/>; rel=duplicate" }
    #expect(Self.urls(fields).count == 16)
  }

  @Test("of a field that is too long, the link that was cut is not used")
  func long() {
    let first = "<https://b.test/f>; rel=duplicate, "
    for filler in 8100..<8200 {
      let second = "<https://c.test/f>; rel=duplicate; title=\(String(repeating: "x", count: filler)); anchor=x"
      #expect(Self.urls([first + second]) == ["https://b.test/f"])
    }
  }

  @Test(
    "for every field that a server may send, the URLs can be requested, and are not those of the response",
    arguments: 0..<4)
  func random(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let pieces = [
      "<", ">", ";", ",", "=", "\"", "\\", " ", "\t", "rel", "=duplicate", "; rel=duplicate", "pri=", "7", "pref",
      "anchor", "https://b.test/", "http://", "//", "u:p@", "c.test", "..", "%2F", "\u{E9}", "\u{0}", "\r\n", "文", "#",
      "?",
    ]
    for _ in 0..<5000 {
      let count = Int.random(in: 0..<30, using: &generator)
      let field = (0..<count).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
      for text in Self.urls([field]) {
        let url = try #require(URL(string: text))
        #expect(url.scheme == "https" && url.user == nil && url.host()?.isEmpty == false, "\(field)")
        #expect(!text.contains("#") && text != "https://a.test/d/f?q=1", "\(field)")
      }
    }
  }

  // MARK: Replies

  private static let link: HeaderFields = ["Link": "<https://b.test/f>; rel=duplicate"]

  @Test("a reply with bytes has the duplicates; one without does not")
  func replies() throws {
    let url = try #require(URL(string: "https://a.test/f"))
    for (status, count) in [(200, 1), (206, 1), (304, 0), (404, 0), (416, 0), (503, 0)] {
      var headers = Self.link
      headers["Content-Range"] = "bytes 0-4/5"
      let reply = try SourceReply(httpStatus: status, headers: headers, url: url, body: .empty)
      #expect(reply.duplicates.count == count, "\(status)")
    }
  }

  @Test("redirects name duplicates as well, after those of the reply")
  func redirects() throws {
    let first = try #require(URL(string: "http://a.test/f"))
    var redirects = try Redirects(SourceRequest(url: first), fields: [], rules: .init())
    let fields = """
      <http://c.test/f>; rel=duplicate; pri=2, <https://c.test/f>; rel=duplicate; pri=3, <https://b.test/f>; \
      rel=duplicate; pri=1, <https://d.test/x>; rel=duplicate
      """
    #expect(try redirects.follow(status: 302, headers: ["Location": "https://d.test/x", "Link": fields]))
    var reply = try SourceReply(httpStatus: 200, headers: Self.link, url: redirects.url, body: .empty)
    redirects.record(in: &reply)
    #expect(reply.redirects.map(\.absoluteString) == ["https://d.test/x"])
    // Neither the URL in use, nor one of http beside it.
    #expect(reply.duplicates.map(\.absoluteString) == ["https://b.test/f", "https://c.test/f"])
    var refusal = try SourceReply(httpStatus: 404, headers: [], url: redirects.url, body: .empty)
    redirects.record(in: &refusal)
    #expect(refusal.duplicates.isEmpty)
  }

  @Test("descriptions have their types, and the rules of duplicates")
  func descriptions() throws {
    let url = try #require(URL(string: "https://a.test/d/f"))
    let fields = [
      "<f.meta4>; rel=describedby; type=\"application/Metalink4+xml; charset=utf-8\"",
      "<f.asc>; rel=\"describedby\"; type=application/pgp-signature, <https://b.test/x>; rel=describedBy",
      "<f.meta4>; rel=duplicate", "<http://b.test/f>; rel=describedby", "<f>; rel=describedby; anchor=\"#a\"",
      "<https://u@b.test/f>; rel=describedby", "<f.meta4>; rel=describedby; type=\"application/metalink4+xml\"",
    ]
    let headers = HeaderFields(fields.map { HeaderField("Link", $0) })
    let found = DescriptionLinks.descriptions(in: headers, of: url)
    #expect(
      found.map(\.url.absoluteString) == ["https://a.test/d/f.meta4", "https://a.test/d/f.asc", "https://b.test/x"])
    #expect(found.map(\.mediaType) == ["application/metalink4+xml", "application/pgp-signature", nil])
    // Those of a redirect count, too.
    var redirects = try Redirects(SourceRequest(url: url), fields: [], rules: .init())
    _ = try redirects.follow(status: 302, headers: HeaderFields(headers.fields + [HeaderField("Location", "/other")]))
    var reply = SourceReply(coverage: .whole, body: .empty)
    redirects.record(in: &reply)
    #expect(reply.descriptions == found)
    let many = HeaderFields((0..<100).map { HeaderField("Link", "<\($0)>; rel=describedby") })
    #expect(DescriptionLinks.descriptions(in: many, of: url).count == DuplicateLinks.most)
  }
}
