import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct ContentDispositionTests {
  @Test(arguments: names)
  func name(_ field: String, _ expected: String) {
    #expect(ContentDisposition(parsing: field).fileName == expected)
  }

  @Test(arguments: [
    "", ";", ";;;", "=", "attachment", "attachment; filename", "attachment; filename=", "attachment; filename=\"\"",
    "attachment; filename=\"", "attachment; xfilename=a", "attachment; name=a", "attachment; filename*1=a",
    "attachment; filename*=UTF-8''", "attachment; filename==?utf-8?Q?=FF?=", "attachment; filename*0=foo bar",
    "attachment; filename==?nonsense?Q?a?=", "attachment; filename=\" / \"", "\"attachment\"",
    "attachment; foo=foo filename=bar", "attachment; example=\"filename=example.txt\"", "attachment filename=foo",
    "attachment; filename==?iso88591?Q?caf=E3?==", "attachment; filename==?iso88591?Q?caf=E3?",
    "attachment; filename==?windows-1252?Q?caf=E3?==?iso-8859-7?b?4eIucG5nCg==?=",
    "attachment; filename==?windows-1252?Q?=63=61=E?=",
    // Chromium: no name for an extended value with a wrong apostrophe, raw octets or bad escapes.
    "attachment; filename*=foo'.html", "attachment; filename*=''foo'.html", "attachment; filename*='en'foo.html'",
    "attachment; filename*=bogus_charset''foo.html'", "attachment; filename*=utf-8'es'f\u{CE}\u{BA}.html",
    "attachment; filename*=UTF-8''A%e4B", "attachment; filename*=UTF-8''foo%", "attachment; filename *=UTF-8''a",
    "attachment; filename*=ISO-8859-2''%A4%20rates.pdf", "attachment; filename*=EUC-JP''%B7",
    "attachment; filename**=a",
  ])
  func noName(_ field: String) {
    let name = ContentDisposition(parsing: field).fileName
    #expect(name == nil, "\(name ?? "")")
  }

  /// Names that would do harm as they are: each is one component of a path, visible, and of no device.
  @Test(arguments: [
    ("filename=\"..%2F..%2Fetc%2Fpasswd\"", "passwd"), ("filename=%2e%2e", "u"), ("filename=a%00b.txt", "ab.txt"),
    ("filename*=UTF-8''..%5C..%5Ca.exe", "a.exe"), ("filename*0=\"../\"; filename*1=\".profile\"", "profile"),
    ("filename==?utf-8?B?Li4vLi4vYQ==?=", "a"), ("filename=\"C:\\dev\\NUL.txt\"", "_NUL.txt"),
    ("filename=a%E2%80%AEgpj.exe", "agpj.exe"), ("filename=\"a%0D%0ASet-Cookie: x\"", "aSet-Cookie- x"),
    ("filename*=EUC-JP''%A1%C0..%5Cx", "x"),
  ])
  func namesAreMadeSafe(_ field: String, _ expected: String) {
    let name = SafeFileName.make(
      from: ContentDisposition(parsing: "attachment; " + field).fileName, url: URL(string: "https://example.org/u"))
    #expect(name == expected)
  }

  @Test("for every field a server may send, the name is one visible component of a path", arguments: 0..<4)
  func randomFields(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let pieces = [
      "attachment", "; ", "filename", "*", "0", "1", "=", "\"", "\\", "'", "UTF-8''", "EUC-JP''", "%2F", "%5C", "%00",
      "%", "..",
      "/", "=?utf-8?Q?", "=?euc-jp?b?", "?=", "a", " ", "\t", "\u{E9}", "\u{8E}", "\u{A1}\u{C0}", "文", "\u{7F}", "CON",
      "C:",
    ]
    for _ in 0..<5000 {
      let count = Int.random(in: 0..<24, using: &generator)
      let field = (0..<count).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
      let suggested = ContentDisposition(parsing: "attachment; filename=" + field).fileName
      #expect(suggested?.isEmpty != true)
      let name = SafeFileName.make(from: suggested, url: nil)
      let isSafe =
        !name.isEmpty && name.first != "." && name.utf8.count <= SafeFileName.maximumLength
        && !name.unicodeScalars.contains { "/\\:\"".unicodeScalars.contains($0) || $0.value < 0x20 || $0.value == 0x7F }
        && SafeFileName.make(from: name, url: nil) == name
      if !isSafe { Issue.record("“\(field)” gives “\(name)”") }
    }
  }

  /// Fields of which Chromium and Firefox make different names, by the tables of their own tests. Where both agree, the
  /// name here is theirs.
  private static let disputed: [(field: String, chromium: String, firefox: String, ours: String)] = [
    // An escape that is cut short or is not UTF-8 says nothing of its charset: the name as it was sent is better than
    // none. Chromium takes the name of the URL.
    ("attachment; filename=%EC%98%88%EC%88%A", "", "%EC%98%88%EC%88%A", "%EC%98%88%EC%88%A"),
    ("attachment; filename=%B7%DD%BD%D1.png", "", "%B7%DD%BD%D1.png", "%B7%DD%BD%D1.png"),
    // Escapes of UTF-8 are from servers that do not know `filename*`. Firefox shows them to people.
    ("attachment; filename=\"foo-%c3%a4.html\"", "foo-ä.html", "foo-%c3%a4.html", "foo-ä.html"),
    // Servers of several makers leave out the charset, or put quotation marks around all of it.
    ("attachment; filename*=foo.html", "", "foo.html", "foo.html"),
    ("attachment; filename*=''foo-%c3%a4-%e2%82%ac.html", "", "foo-ä-€.html", "foo-ä-€.html"),
    ("attachment; filename*=\"UTF-8''foo-%c3%a4.html\"", "", "foo-ä.html", "foo-ä.html"),
    // Beside a `filename` that can be read, a malformed `filename*` is not repaired.
    ("attachment; filename*=UTF-8'foo-%41.html; filename=bar.html", "bar.html", "foo-A.html", "bar.html"),
    // A quoted string ends at its mark (RFC 9110 §5.6.4). What follows is no part of the name.
    ("attachment; filename=\"foo.html\".txt", "foo.html\".txt", "foo.html", "foo.html"),
    // A second type, or a string in place of the type, does not hide the name.
    ("inline; attachment; filename=foo.html", "", "foo.html", "foo.html"),
    ("\"foo; filename=bar;baz\"; filename=qux", "", "qux", "qux"),
    // Continuations are for mail (RFC 2231 §3), but programs for mail have web servers. Chromium does not know them.
    ("attachment; filename=basic; filename*0=foo; filename*1=bar", "basic", "foobar", "foobar"),
    // A path is not a name; both browsers replace or remove its separators later.
    ("attachment; filename=\"/foo.html\"", "/foo.html", "/foo.html", "foo.html"),
  ]

  @Test(arguments: disputed.indices)
  func whereBrowsersDiffer(_ index: Int) {
    let dispute = Self.disputed[index]
    #expect((ContentDisposition(parsing: dispute.field).fileName ?? "") == dispute.ours)
    #expect(dispute.chromium != dispute.firefox || dispute.firefox == "/" + dispute.ours)
  }

  @Test func type() {
    #expect(ContentDisposition(parsing: "ATTACHMENT; filename=a").type == "attachment")
    #expect(ContentDisposition(parsing: "filename=a").type == "")
  }

  @Test func endlessFieldIsCut() {
    let field = "attachment; filename=\"" + String(repeating: "a", count: 1_000_000)
    #expect((ContentDisposition(parsing: field).fileName?.utf8.count ?? .max) <= 8192)
  }

  struct Corpus: Decodable {
    struct Case: Decodable {
      var header: String
      var allowed: [String]
    }
    var headers: [Case]
  }

  /// Cases of the corpus with another result here, each with our name.
  private static let dissent = [
    // A field without a type but with a name. The corpus expects the result of its unquoted variant.
    "filename=\"plans.pdf\"": "plans.pdf",
    // The corpus has the results of a library. Browsers read Windows-1252 here.
    "attachment; filename*=iso-8859-1''foo-%c3%a4-%e2%82%ac.html": "foo-Ã¤-â‚¬.html",
  ]

  @Test(.enabled(if: Corpora.isPresent, "DOWNPIPE_CORPORA names no folder"))
  func corpus() throws {
    let corpus = try Corpora.read("content-disposition/by-header.json", as: Corpus.self)
    #expect(!corpus.headers.isEmpty)
    for item in corpus.headers {
      let name = ContentDisposition(parsing: item.header).fileName ?? ""
      let allowed = Self.dissent[item.header].map { [$0] } ?? item.allowed
      #expect(allowed.contains(name), "\(item.header): “\(name)”")
    }
  }
}
