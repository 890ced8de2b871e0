#if Archive
  import DownpipeCore
  import DownpipeDigest
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeArchive

  /// Archives from the test suites of other projects, with the trees that their programs make.
  @Suite(.endsHangs)
  struct ArchiveCorpusTests {
    static let corpora = ProcessInfo.processInfo.environment["DOWNPIPE_CORPORA"]

    struct Manifest: Decodable {
      struct Case: Decodable {
        var file: String
        var `class`: String
        var tree: [Entry]?
      }
      struct Entry: Decodable {
        var path: String
        var type: String
        var target: String?
        var sha256: String?
        var size: Int?
      }
      var cases: [Case]
    }

    /// What the step does instead of what the corpus expects, by the name of the file.
    static func exceptions(_ corpus: String) throws -> [String: String] {
      let table = URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "../Corpus/exceptions/archive-\(corpus).tsv")
      var exceptions: [String: String] = [:]
      for line in try String(contentsOf: table, encoding: .utf8).split(separator: "\n") where !line.hasPrefix("#") {
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        try #require(fields.count == 3 && !fields[2].isEmpty, "each line has cases, what is done, and why: \(line)")
        for name in fields[0].split(separator: ",") { exceptions[String(name)] = fields[1] }
      }
      return exceptions
    }

    /// What the step does with a file: `tree`, `other tree`, or the code of its error.
    static func outcome(_ test: Manifest.Case, _ bytes: [UInt8]) async throws -> String {
      do {
        let tree = try await Bench().unpack(bytes)
        guard let expected = test.tree else { return "other tree" }
        return lines(tree) == lines(expected) ? "tree" : "other tree"
      } catch let error as DownloadError {
        return error.code.rawValue
      }
    }

    private static func lines(_ tree: [String: Found]) -> Set<String> {
      Set(
        tree.map { path, found in
          switch found {
          case .folder: return "\(path) dir"
          case .link(let target): return "\(path) -> \(target)"
          case .file(let bytes):
            let digest = FileDigest(.sha256, bytes: sha256(bytes)).hex
            return "\(path) \(bytes.count) \(digest)"
          }
        })
    }

    private static func lines(_ tree: [Manifest.Entry]) -> Set<String> {
      Set(
        tree.map { entry in
          switch entry.type {
          case "dir": "\(entry.path) dir"
          case "symlink": "\(entry.path) -> \(entry.target ?? "")"
          default: "\(entry.path) \(entry.size ?? 0) \(entry.sha256 ?? "")"
          }
        })
    }

    @Test(
      "the corpora of tar and zip", .enabled(if: corpora != nil, "set DOWNPIPE_CORPORA to the folder of the corpora"),
      arguments: ["tar", "zip"])
    func corpus(_ corpus: String) async throws {
      let root = try #require(Self.corpora) + "/\(corpus)/"
      // Bytes of names that are not UTF-8 are written as half a surrogate pair, which a JSON decoder refuses.
      let text = try String(contentsOfFile: root + "manifest.json", encoding: .utf8)
        .replacing(#/(\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})|\\udc([0-9a-f]{2})/#) { match in
          match.1.map(String.init) ?? "\\uf8\(match.2 ?? "")"
        }
      let manifest = try JSONDecoder().decode(Manifest.self, from: Data(text.utf8))
      let exceptions = try Self.exceptions(corpus)
      #expect(manifest.cases.count > 80)
      for test in manifest.cases {
        let bytes = Array(try Data(contentsOf: URL(filePath: root + test.file)))
        let name = URL(filePath: test.file).lastPathComponent
        let found = try await Self.outcome(test, bytes)
        let refused = ["damaged", "unsafePath", "tooLarge", "processing", "encrypted"]
        let isExpected =
          switch test.class {
          case "bad": refused.contains(found)
          case "encrypted": found == "encrypted"
          // What a program does not read it may refuse, or read all the same.
          case "unsupported": found == "processing" || found == "tree"
          default: found == "tree"
          }
        if let exception = exceptions[name] {
          #expect(found == exception && !isExpected, "\(name) (\(test.class)): \(found), the table has \(exception)")
        } else {
          #expect(isExpected, "\(name) (\(test.class)): \(found)")
        }
      }
      #expect(Set(exceptions.keys).isSubset(of: manifest.cases.map { URL(filePath: $0.file).lastPathComponent }))
    }

    struct GzipManifest: Decodable {
      struct Case: Decodable {
        var file: String
        var format: String
        var expect: String?
        var expected_file: String?
        var oracles: Oracles
      }
      struct Oracles: Decodable {
        struct GNU: Decodable {
          var exit: Int
          var bytes: Int
        }
        var gnu_gzip: GNU?
      }
      var cases: [Case]
    }

    @Test("the corpus of gzip", .enabled(if: corpora != nil, "set DOWNPIPE_CORPORA to the folder of the corpora"))
    func gzip() async throws {
      let root = try #require(Self.corpora) + "/gzip/"
      let manifest = try JSONDecoder().decode(
        GzipManifest.self, from: try Data(contentsOf: URL(filePath: root + "manifest.json")))
      #expect(manifest.cases.count > 20)
      let context = ProcessingContext(request: try DownloadRequest("https://example.org/a.gz"), workspace: nil)
      for test in manifest.cases {
        let input = File(
          Artifact(location: .memory(Array(try Data(contentsOf: URL(filePath: root + test.file)))), name: "a.gz"))
        let isGood = test.format == "gzip" && test.expect != "policy" && test.oracles.gnu_gzip?.exit == 0
        do {
          let output = try await Decompress().process(input, in: context).artifact.readBytes()
          #expect(isGood, "\(test.file) was decompressed")
          #expect(output.count == test.oracles.gnu_gzip?.bytes, "\(test.file)")
          if let expected = test.expected_file {
            #expect(output == Array(try Data(contentsOf: URL(filePath: root + expected))), "\(test.file)")
          }
        } catch let error as DownloadError {
          #expect(!isGood && error.code == .damaged, "\(test.file): \(error)")
        }
      }
    }
  }
#endif
