import DownpipeCore
import HangLimit
import Testing

@Suite(.endsHangs)
struct ContentRangeTests {
  @Test(arguments: [
    ("bytes 0-50/51", ContentRange.part(0..<51, total: .known(51))),
    ("Bytes 10-18/19", .part(10..<19, total: .known(19))),
    ("    bytes    0    -   50  \t / \t51", .part(0..<51, total: .known(51))),
    ("bytes 0-0/*", .part(0..<1, total: .unknown)),
    ("bytes 5-9 / * ", .part(5..<10, total: .unknown)),
    ("bytes */50", .unsatisfied(total: 50)),
    ("bytes */0", .unsatisfied(total: 0)),
    (
      "bytes 0-9223372036854775805/9223372036854775807",
      .part(0..<9_223_372_036_854_775_806, total: .known(.max))
    ),
  ])
  func legal(_ field: String, _ expected: ContentRange) {
    #expect(ContentRange(parsing: field) == expected)
  }

  @Test(arguments: [
    "", "bytes", "bytes ", "bytes\t0-50/51", "bytes 50-0/51", "bytes 0-50/10", "bytes 0-50/50", "bytes 1-/100",
    "bytes -1/100", "bytes 0-5 0/51", "bytes 0-50", "bytes 0-50/", "bytes */*", "bytes +0-50/51", "bytes 0-50/+51",
    "items 0-50/51", "bytes 0-50/51/52", "bytes 0-1-2/5", "bytes 0-9223372036854775807/*",
    "bytes 0-40000000000000000000/40000000000000000001", "bytes ٠-٥/٩", "bytes 0-1/2, bytes 0-1/2",
    "bytes " + String(repeating: "0", count: 1000) + "-1/2",
  ])
  func illegal(_ field: String) {
    #expect(ContentRange(parsing: field) == nil)
  }

  struct Corpus: Decodable {
    struct Case: Decodable {
      var value: String?
      var headers: String?
      var ok: Bool
      var first: Int64
      var last: Int64
      var size: Int64
    }
    var cases: [Case]
  }

  @Test(
    .enabled(if: Corpora.isPresent, "DOWNPIPE_CORPORA names no folder"),
    arguments: ["content-range", "content-range-206"])
  func corpus(_ name: String) throws {
    let corpus = try Corpora.read("vectors/\(name).json", as: Corpus.self)
    #expect(!corpus.cases.isEmpty)
    for item in corpus.cases {
      let field = try #require(item.value ?? item.headers.flatMap { Corpora.rawFields($0).first?.value })
      switch ContentRange(parsing: field) {
      case .part(let range, let total):
        // That browser requires known totals; an unknown total is legal (RFC 9110 §14.4).
        if total == .unknown { continue }
        #expect(item.ok, "\(field)")
        #expect(range == item.first..<(item.last + 1), "\(field)")
        #expect(total == .known(item.size), "\(field)")
      case .unsatisfied, nil:
        #expect(!item.ok, "\(field)")
      }
    }
  }
}
