import DownpipeCore
import HangLimit
import Testing

@Suite(.endsHangs)
struct ContentLengthTests {
  @Test(arguments: [
    ([], ByteCount.unknown), (["0"], .known(0)), (["10"], .known(10)), (["010"], .known(10)), (["\t10 "], .known(10)),
    (["5", "5"], .known(5)), (["5, 5"], .known(5)), (["5", "05"], .known(5)),
    (["9223372036854775807"], .known(.max)),
    (["5 ; a=b"], .known(5)), (["5;"], .known(5)), (["5;a, 5"], .known(5)), (["5 ; a=b", "5"], .known(5)),
  ])
  func legal(_ values: [String], _ expected: ByteCount) throws {
    #expect(try ContentLength.parse(HeaderFields(values.map { HeaderField("content-length", $0) })) == expected)
  }

  @Test(arguments: [
    [""], ["-1"], ["+1"], ["1x"], ["0x10"], ["1 0"], ["1.0"], ["9223372036854775808"], ["40000000000000000000"],
    ["5", "6"], ["5, 6"], ["5,"], [";"], ["; 5"], ["5 ; a, 6"], ["5 5;"], ["\u{0B}10"], ["10\r"], ["١٠"],
  ])
  func illegal(_ values: [String]) {
    let headers = HeaderFields(values.map { HeaderField("Content-Length", $0) })
    let error = #expect(throws: DownloadError.self) { try ContentLength.parse(headers) }
    #expect(error?.code == .invalidResponse)
  }

  struct Corpus: Decodable {
    struct Case: Decodable {
      var headers: String
      var expected: Int64
    }
    var cases: [Case]
  }

  @Test(.enabled(if: Corpora.isPresent, "DOWNPIPE_CORPORA names no folder"))
  func corpus() throws {
    let corpus = try Corpora.read("vectors/content-length.json", as: Corpus.self)
    #expect(!corpus.cases.isEmpty)
    for item in corpus.cases {
      let headers = HeaderFields(Corpora.rawFields(item.headers).map { HeaderField($0.name, $0.value) })
      let length = (try? ContentLength.parse(headers)) ?? .unknown
      #expect((length.bytes ?? -1) == item.expected, "\(item.headers.debugDescription)")
    }
  }
}
