import DownpipeCore
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ContentDispositionTests {
  @Test(arguments: [
    ("attachment; filename=\"foo.html\"", "foo.html"),
    ("inline;filename=foo.html ;", "foo.html"),
    ("attachment; FileName = \"foo.html\"", "foo.html"),
    ("attachment; filename=\"a; b=c.txt\"", "a; b=c.txt"),
    ("attachment; filename=two words.txt", "two words.txt"),
    ("attachment; filename=\"the \\\"plans\\\".pdf\"", "the \"plans\".pdf"),
    ("attachment; filename=\"C:\\dev\\robots.txt\"", "C:\\dev\\robots.txt"),
    ("attachment; filename=\"unfinished.txt", "unfinished.txt"),
    ("attachment; filename=\"/etc/passwd\"", "etc/passwd"),
    ("attachment; filename=\"fallback\"; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
    ("attachment; filename*=UTF-8''na%C3%AFve.txt; filename=\"fallback\"", "naïve.txt"),
    ("attachment; filename*=iso-8859-1'en'%A3.txt", "£.txt"),
    ("attachment; filename*=nonsense''a.txt; filename=b.txt", "b.txt"),
    ("attachment; filename*=UTF-8''%FF.txt; filename=b.txt", "b.txt"),
    ("attachment; filename*=UTF-8''%4; filename=b.txt", "b.txt"),
    ("attachment; filename*=\"UTF-8''quoted.txt\"; filename=b.txt", "b.txt"),
    // Octets of UTF-8, octets of Latin-1, and text that the transport has already decoded.
    ("attachment; filename=\"caf\u{C3}\u{A9}.txt\"", "café.txt"),
    ("attachment; filename=\"caf\u{E9}.txt\"", "café.txt"),
    ("attachment; filename=\"文件.txt\"", "文件.txt"),
    ("attachment; filename=%E6%96%87.txt", "文.txt"),
    ("attachment; filename=\"100%25.txt\"", "100%25.txt"),
    ("attachment; filename=\"50%.txt\"", "50%.txt"),
    ("attachment; filename=\"=?UTF-8?B?5paH?= =?utf-8?q?_=2Etxt?=\"", "文 .txt"),
    ("attachment; filename=first; filename=second", "first"),
  ])
  func name(_ field: String, _ expected: String) {
    #expect(ContentDisposition(field: field).fileName == expected)
  }

  @Test(arguments: [
    "", ";", ";;;", "=", "attachment", "attachment; filename", "attachment; filename=", "attachment; filename=\"\"",
    "attachment; filename=\"", "attachment; xfilename=a", "attachment; name=a", "attachment; filename*0=a",
    "attachment; filename*=''a", "attachment; filename*=UTF-8''", "attachment; filename==?utf-8?Q?=FF?=",
    "attachment; filename==?nonsense?Q?a?=", "attachment; filename=\" / \"",
  ])
  func noName(_ field: String) {
    let name = ContentDisposition(field: field).fileName
    #expect(name == nil, "\(name ?? "")")
  }

  @Test func type() {
    #expect(ContentDisposition(field: "ATTACHMENT; filename=a").type == "attachment")
    #expect(ContentDisposition(field: "filename=a").type == "")
  }

  @Test func endlessFieldIsCut() {
    let field = "attachment; filename=\"" + String(repeating: "a", count: 1_000_000)
    #expect((ContentDisposition(field: field).fileName?.utf8.count ?? .max) <= 8192)
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
    "filename=\"plans.pdf\"": "plans.pdf"
  ]

  @Test(.enabled(if: Corpora.isPresent, "DOWNPIPE_CORPORA names no folder"))
  func corpus() throws {
    let corpus = try Corpora.read("content-disposition/by-header.json", as: Corpus.self)
    #expect(!corpus.headers.isEmpty)
    for item in corpus.headers {
      let name = ContentDisposition(field: item.header).fileName ?? ""
      let allowed = Self.dissent[item.header].map { [$0] } ?? item.allowed
      #expect(allowed.contains(name), "\(item.header): “\(name)”")
    }
  }
}
