import Downpipe
import DownpipeDigest
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import Dataset

/// A cache of files that are fetched by name.
@Suite(.endsHangs)
struct DatasetTests {
  private let folder: TemporaryFolder
  private let first = URL(string: "https://one.example/data")!
  private let second = URL(string: "https://two.example/pub/data")!
  private let content = DownloadFixtures.pattern(size: 50_000)

  init() throws { folder = try TemporaryFolder() }

  private func digest(_ bytes: [UInt8]) -> String { FileDigest(.sha256, bytes: sha256(bytes)).hex }

  private func dataset(_ source: FakeSource, _ files: [String: [UInt8]]) async throws -> Dataset {
    try await Dataset(
      folder.path, mirrors: [first, second], files: files.mapValues(digest), source: source)
  }

  private func bytes(_ url: URL?) throws -> [UInt8] { try [UInt8](Data(contentsOf: try #require(url))) }

  @Test("a file comes from the first mirror that has it, once, and a wrong one is not used")
  func mirrors() async throws {
    var wrong = content
    wrong[7] ^= 1
    let source = FakeSource([
      first.appending(path: "a"): [.status(404)], second.appending(path: "a"): [.init(content)],
      first.appending(path: "b"): [.init(wrong)], second.appending(path: "b"): [.init(content)],
    ])
    let dataset = try await dataset(source, ["a": content, "b": content])
    for name in ["a", "b", "a", "b"] { #expect(try bytes(await dataset.fetch(name)) == content) }
    #expect(source.requests.count == 4)
    await #expect(throws: DownloadError.self) { try await dataset.fetch("c") }
    await dataset.downloader.shutdown()
    // The next process finds them.
    let next = try await self.dataset(source, ["a": content, "b": content])
    #expect(try bytes(await next.fetch("a")) == content)
    // A deleted file is fetched again.
    try FileManager.default.removeItem(atPath: folder.path("a"))
    #expect(try bytes(await next.fetch("a")) == content)
    #expect(source.requests.count == 6)
    await next.downloader.shutdown()
    folder.close()
  }

  @Test("a new digest brings the new file, and a compressed one is kept decompressed")
  func versions() async throws {
    // “hello\n”, by `gzip -n`.
    let hello: [UInt8] = [
      0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xE7, 2, 0, 0x20, 0x30, 0x3A, 0x36, 6, 0, 0, 0,
    ]
    let source = FakeSource([
      first.appending(path: "a.txt.gz"): [.init(hello)], first.appending(path: "b"): [.init(content), .init(hello)],
      second.appending(path: "a.txt.gz"): [.status(404)], second.appending(path: "b"): [.status(404)],
    ])
    let dataset = try await dataset(source, ["a.txt.gz": hello, "b": content])
    let text = try #require(try await dataset.fetch("a.txt.gz"))
    #expect(text.lastPathComponent == "a.txt")
    #expect(try bytes(text) == Array("hello\n".utf8))
    #expect(try bytes(await dataset.fetch("b")) == content)
    await dataset.downloader.shutdown()
    let next = try await self.dataset(source, ["a.txt.gz": hello, "b": hello])
    #expect(try await next.fetch("a.txt.gz") == text)
    _ = try await next.fetch("b")
    #expect(source.requests.count == 3)
    await next.downloader.shutdown()
    folder.close()
  }

  @Test("two users of a cache that ask for the same file at once share one transfer")
  func sharing() async throws {
    let source = FakeSource([
      first.appending(path: "a"): [.init(content).holding(after: 1_000)], second.appending(path: "a"): [.status(404)],
    ])
    let one = try await dataset(source, ["a": content])
    let two = try await dataset(source, ["a": content])
    async let left = one.fetch("a")
    async let right = two.fetch("a")
    await source.held(atLeast: 1)
    source.release()
    let urls = try await [left, right]
    #expect(urls[0] == urls[1])
    #expect(try bytes(urls[0]) == content)
    #expect(source.requests.count == 1)
    for dataset in [one, two] { await dataset.downloader.shutdown() }
    folder.close()
  }

  @Test("a file that changes is asked about when it is stale, and is there when no server is")
  func latest() async throws {
    let url = first.appending(path: "index.json")
    let (old, new) = (Array("old".utf8), Array("new".utf8))
    let source = FakeSource([
      url: [
        .init(old), .init(old), .status(404), .init(new).with { $0.freshFor = .seconds(3_600) }, .init(old),
      ]
    ])
    let dataset = try await dataset(source, [:])
    var seen: [[UInt8]] = []
    for _ in 0..<5 { seen.append(try bytes(await dataset.latest("index.json"))) }
    #expect(seen == [old, old, old, new, new])
    #expect(source.requests.map { $0.condition != nil } == [false, true, true, true])
    await #expect(throws: DownloadError.self) { try await dataset.latest("other") }
    await dataset.downloader.shutdown()
    folder.close()
  }
}
