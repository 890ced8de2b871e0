import DownpipeCore
import DownpipeMetalink
import Foundation
import HangLimit
import Testing

/// Cases from other projects' test suites, which are not part of this repository.
private enum Corpora {
  static let folder = ProcessInfo.processInfo.environment["DOWNPIPE_CORPORA"]
}

/// Documents of libmetalink's test suite, compared with what Python's parser reads.
@Suite(.endsHangs, .enabled(if: Corpora.folder != nil, "DOWNPIPE_CORPORA names no folder"))
struct MetalinkCorpusTests {
  struct Manifest: Decodable {
    struct Document: Decodable {
      var file: String
      var parsed_by_python: Parsed
    }
    struct Parsed: Decodable {
      var version: Int
      var files: [File]
    }
    struct File: Decodable {
      var name: String?
      var size: String?
      var hashes: [String: String]
      var pieces: [Pieces]
      var urls: [Link]
      var metaurls: [Link]
    }
    struct Pieces: Decodable {
      var type: String
      var length: String
      var hashes: [String]
    }
    struct Link: Decodable {
      var url: String
      var priority: String?
      var preference: String?
      var location: String?
      var type: String?
    }
    var documents: [Document]
  }

  /// Files that are refused, and why, in the documents of version 3 and 4.
  static let skipped: [String?: Set<String>] = [
    nil: ["it has no name"], "../unsafe": ["its name is not a safe relative path"],
    "libmetalink-0.0.1.tar.bz2": ["it has a hash without a type"],
    "NoVerificationHash": ["its size is not a number of bytes"],
    "libmetalink-0.0.2a.tar.bz2": [
      "the hash of one of its pieces does not say of which piece it is",
      "it has the hashes of 2 pieces, but 4294967296 bytes have 16384 of 262144 bytes",
    ],
  ]

  @Test func corpus() throws {
    let root = URL(filePath: Corpora.folder ?? "").appending(path: "metalink")
    let manifest = try JSONDecoder().decode(
      Manifest.self, from: Data(contentsOf: root.appending(path: "manifest.json")))
    #expect(manifest.documents.count >= 4)
    for item in manifest.documents {
      let document = try MetalinkDocument(parsing: Array(Data(contentsOf: root.appending(path: item.file))))
      let parsed = item.parsed_by_python
      #expect(document.version.rawValue == parsed.version)
      #expect(
        document.skipped.allSatisfy { Self.skipped[$0.name]?.contains($0.reason) == true },
        "\(item.file): \(document.skipped)")
      let names = document.skipped.map(\.name)
      let usable = parsed.files.filter { !names.contains($0.name) }
      #expect(document.files.map { Optional($0.name) } == usable.map(\.name), "\(item.file)")
      #expect(document.files.count + document.skipped.count == parsed.files.count)
      for (file, expected) in zip(document.files, usable) { try compare(file, expected) }
    }
  }

  private func compare(_ file: MetalinkDocument.File, _ expected: Manifest.File) throws {
    #expect(file.size == expected.size.flatMap { Int64($0) })
    let digests = Dictionary(uniqueKeysWithValues: expected.hashes.map { (DigestAlgorithm($0.key), $0.value) })
    #expect(Dictionary(uniqueKeysWithValues: file.digests.map { ($0.algorithm, $0.hex) }) == digests)
    #expect(file.pieces.count == expected.pieces.count)
    for (pieces, other) in zip(file.pieces, expected.pieces) {
      #expect(pieces.algorithm == DigestAlgorithm(other.type) && pieces.length == Int64(other.length))
      #expect(pieces.digests.map(\.hex) == other.hashes)
    }
    // Version 3 lists torrents with the mirrors.
    let links = expected.urls.filter { $0.type != "bittorrent" }
    let torrents = expected.metaurls + expected.urls.filter { $0.type == "bittorrent" }
    #expect(Set(file.mirrors.map(\.url.absoluteString)) == Set(links.map(\.url)))
    #expect(file.mirrors.count == links.count)
    #expect(Set(file.metaURLs.map(\.url.absoluteString)) == Set(torrents.map(\.url)))
    for mirror in file.mirrors {
      let link = try #require(links.first { $0.url == mirror.url.absoluteString })
      // A priority of −100 is none.
      #expect(mirror.priority == link.priority.flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil })
      #expect(mirror.preference == link.preference.flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil })
      #expect(mirror.location == link.location?.lowercased())
    }
    let order = file.mirrors.map { $0.priority ?? $0.preference.map { -$0 } ?? .max }
    #expect(order == order.sorted())
  }
}
