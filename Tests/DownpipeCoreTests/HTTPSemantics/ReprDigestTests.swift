import DownpipeCore
import HangLimit
import Testing

@Suite(.endsHangs)
struct ReprDigestTests {
  static let hello = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="
  static let empty = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
  static let helloHex = "44aff4ab2d7c3250525675a08f0cfa9591168cffe51791c5f5bbc417c15a6c38"

  @Test(arguments: [
    "sha-256=:\(hello):", "  sha-256=:\(hello): ", "sha-256=:\(hello):;a=1", "unixsum=:AA==:, sha-256=:\(hello):",
    "md5=5, sha-256=:\(hello):", "x=\"a,b\\\"c,\", sha-256=:\(hello):", "sha-256=:\(hello.dropLast()):",
    "sha-256=:\(empty):, sha-256=:\(hello):", "sha-512=:AAAA:, sha-256=:\(hello):",
  ])
  func legal(_ field: String) {
    let digests = ReprDigest.digests(in: ["Repr-Digest": field], isWholeContent: false)
    #expect(digests.map(\.description) == ["sha-256=\(Self.helloHex)"])
  }

  @Test(arguments: [
    "", ",", "sha-256", "sha-256=", "sha-256=:", "sha-256=::", "sha-256=:****:", "sha-256=\(hello)",
    "SHA-256=:\(hello):", "sha-256=:\(hello):x", "sha-256 =:\(hello):", "sha-256=:\(hello)", "crc99=:AAAA:",
    "x=\"unfinished, sha-256=:\(hello):",
  ])
  func illegal(_ field: String) {
    #expect(ReprDigest.digests(in: ["Repr-Digest": field], isWholeContent: false) == [])
  }

  @Test func legacyField() {
    let digests = ReprDigest.digests(
      in: ["Digest": "SHA-256=\(Self.hello),unixsum=30637, md5=1B2M2Y8AsgTpgAmY7PhCfg=="], isWholeContent: false)
    #expect(
      digests.map(\.description) == ["sha-256=\(Self.helloHex)", "md5=d41d8cd98f00b204e9800998ecf8427e"])
  }

  @Test func representationBeforeContent() {
    let headers: HeaderFields = [
      "Content-Digest": "sha-256=:\(Self.empty):", "Digest": "sha-256=\(Self.empty)",
      "Repr-Digest": "sha-256=:\(Self.hello):",
    ]
    #expect(ReprDigest.digests(in: headers, isWholeContent: true).map(\.hex) == [Self.helloHex])
  }

  @Test func contentDigestOnlyOfTheWhole() {
    let headers: HeaderFields = ["Content-Digest": "sha-256=:\(Self.hello):"]
    #expect(ReprDigest.digests(in: headers, isWholeContent: true).map(\.hex) == [Self.helloHex])
    #expect(ReprDigest.digests(in: headers, isWholeContent: false).isEmpty)
  }

  struct Corpus: Decodable {
    struct Case: Decodable {
      struct Expected: Decodable {
        var field: String
        var algorithm: String
        var hex: String?
      }
      var fields: [[String]]
      var digests: [Expected]
    }
    var cases: [Case]
  }

  @Test(.enabled(if: Corpora.isPresent, "DOWNPIPE_CORPORA names no folder"))
  func corpus() throws {
    let corpus = try Corpora.read("digest/rfc9530.json", as: Corpus.self)
    #expect(!corpus.cases.isEmpty)
    for item in corpus.cases {
      for name in ["Repr-Digest", "Content-Digest"] {
        // Each kind alone, because a digest of the representation hides one of the content.
        let headers = HeaderFields(item.fields.filter { $0[0] == name }.map { HeaderField($0[0], $0[1]) })
        let expected = item.digests.filter { $0.field == name }.compactMap { digest in
          digest.hex.map { "\(digest.algorithm)=\($0)" }
        }
        let found = ReprDigest.digests(in: headers, isWholeContent: true).map(\.description)
        #expect(found == expected)
      }
    }
  }
}
