import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeGzip

/// Files from other programs.
@Suite(.endsHangs)
struct GunzipOracleTests {
  static let gzip = ["/usr/bin/gzip", "/bin/gzip"].first(where: FileManager.default.isExecutableFile(atPath:))
  static let corpora = ProcessInfo.processInfo.environment["DOWNPIPE_CORPORA"]

  #if os(Linux) || os(macOS)
    @Test(
      "files of gzip(1) are decompressed", .enabled(if: gzip != nil, "there is no gzip program"), arguments: [1, 6, 9])
    func roundTrip(_ level: Int) async throws {
      var generator = SystemRandomNumberGenerator()
      for size in [0, 1, 1000, 65_536, 300_000] {
        // Noise and repetition in random lengths.
        var content: [UInt8] = []
        while content.count < size {
          let run = Int.random(in: 1...5000, using: &generator)
          let byte = UInt8.random(in: 0...255, using: &generator)
          content += (0..<run).map { _ in run % 2 == 0 ? byte : UInt8.random(in: 0...255, using: &generator) }
        }
        content = Array(content.prefix(size))
        let packed = try await withFolder { folder in
          let path = folder + "/content"
          try Data(content).write(to: URL(filePath: path))
          let process = Process()
          process.executableURL = URL(filePath: try #require(Self.gzip))
          process.arguments = ["-\(level)", path]
          try process.run()
          process.waitUntilExit()
          #expect(process.terminationStatus == 0)
          return Array(try #require(FileManager.default.contents(atPath: path + ".gz")))
        }
        #expect(try await Gunzip().unpackedFile(packed) == content)
        #expect(try await Gunzip().unpackedFile(packed + packed) == content + content)
      }
    }
  #endif

  struct Manifest: Decodable {
    struct Case: Decodable {
      var file: String
      var format: String
      var expect: String?
      var expected_file: String?
      var oracles: Oracles
    }
    struct Oracles: Decodable {
      var gnu_gzip: GNU?
    }
    struct GNU: Decodable {
      var exit: Int
      var bytes: Int
    }
    var cases: [Case]
  }

  @Test("the corpus", .enabled(if: corpora != nil, "set DOWNPIPE_CORPORA to the folder of the corpora"))
  func corpus() async throws {
    let root = try #require(Self.corpora) + "/gzip/"
    let manifest = try JSONDecoder().decode(
      Manifest.self, from: try Data(contentsOf: URL(filePath: root + "manifest.json")))
    #expect(manifest.cases.count > 20)
    for test in manifest.cases {
      let file = Array(try Data(contentsOf: URL(filePath: root + test.file)))
      guard test.format == "gzip" else {
        // zlib and deflate streams without a gzip header are not gzip files.
        #expect(await Gunzip().failure(file) == .damaged, "\(test.file)")
        continue
      }
      if test.expect == "policy" {
        #expect(await Gunzip().failure(file) == .damaged, "\(test.file)")
        let ignoring = try await Gunzip(trailingBytes: .ignore).unpackedFile(file)
        #expect(ignoring.count == test.oracles.gnu_gzip?.bytes, "\(test.file)")
      } else if test.oracles.gnu_gzip?.exit == 0 {
        let content = try await Gunzip().unpackedFile(file)
        #expect(content.count == test.oracles.gnu_gzip?.bytes, "\(test.file)")
        if let expected = test.expected_file {
          #expect(content == Array(try Data(contentsOf: URL(filePath: root + expected))), "\(test.file)")
        }
      } else {
        #expect(await Gunzip().failure(file) == .damaged, "\(test.file)")
      }
    }
  }
}
