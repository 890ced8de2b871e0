import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeChecksum

/// The examples of RFC 9530: each digest in the corpus is computed from its body.
@Suite(.endsHangs)
struct DigestCorpusTests {
  static let corpora = ProcessInfo.processInfo.environment["DOWNPIPE_CORPORA"]

  struct Corpus: Decodable {
    struct Case: Decodable {
      var section: String
      var body: String
      var digests: [Value]
    }
    struct Value: Decodable {
      var algorithm: String
      var hex: String?
      var digests: [String]?
    }
    var cases: [Case]
  }

  @Test("the corpus", .enabled(if: corpora != nil, "set DOWNPIPE_CORPORA to the folder of the corpora"))
  func corpus() throws {
    let file = URL(filePath: try #require(Self.corpora) + "/digest/rfc9530.json")
    let corpus = try JSONDecoder().decode(Corpus.self, from: try Data(contentsOf: file))
    let known: [String: [UInt8]] = ["known {\"hello\": \"world\"}+LF": Array("{\"hello\": \"world\"}\n".utf8)]
    var checked = 0
    for test in corpus.cases {
      for value in test.digests {
        let algorithm = DigestAlgorithm(value.algorithm)
        guard let hex = value.hex, DigestComputation.supportedAlgorithms.contains(algorithm) else { continue }
        for origin in value.digests ?? [] {
          let bytes: [UInt8]? =
            switch origin {
            // The body in the corpus includes the line feed that the second example mentions.
            case "body", "body+LF": Array(test.body.utf8)
            default: known[origin]
            }
          guard let bytes else { continue }
          #expect(try DigestSamples.digest(algorithm, of: bytes).hex == hex, "\(test.section): \(origin)")
          checked += 1
        }
      }
    }
    #expect(checked >= 5)
  }
}
