import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite(.endsHangs)
struct FileSourceTests {
  static let content = DownloadFixtures.pattern(size: 600_001)

  private func read(_ body: Body) async throws -> [UInt8] {
    let bytes = Mutex<[UInt8]>([])
    try await body.forEachChunk { chunk in
      #expect(chunk.byteCount > 0 && chunk.byteCount <= FileSource.chunkSize)
      chunk.withUnsafeBytes { new in bytes.withLock { $0 += new } }
    }
    return bytes.withLock { $0 }
  }

  private func file(_ folder: TemporaryFolder, _ name: String = "a b ä.bin") throws -> URL {
    URL(filePath: try folder.write(Self.content, to: name))
  }

  @Test func wholeFilesHaveSizeValidatorAndName() async throws {
    let folder = try TemporaryFolder()
    let url = try file(folder)
    #expect(FileSource().accepts(url))
    #expect(!FileSource().accepts(try #require(URL(string: "https://a/b"))))
    let reply = try await FileSource().open(SourceRequest(url: url))
    #expect(reply.coverage == .whole && reply.length == .known(600_001))
    #expect(reply.suggestedName == "a b ä.bin" && reply.acceptsRanges == true)
    #expect(reply.validator?.isStrong == true && reply.validator?.lastModified != nil)
    #expect(try await read(reply.body) == Self.content)
  }

  @Test(
    arguments: [
      (0, 1, 0..<1), (0, nil, 0..<600_001), (600_000, nil, 600_000..<600_001), (5, 700_000, 5..<600_001),
      (262_143, 262_145, 262_143..<262_145), (1, 524_289, 1..<524_289),
    ] as [(Int64, Int64?, Range<Int64>)])
  func ranges(_ start: Int64, _ end: Int64?, _ expected: Range<Int64>) async throws {
    let folder = try TemporaryFolder()
    let reply = try await FileSource().open(
      SourceRequest(url: try file(folder), range: RequestedRange(from: start, to: end)))
    #expect(reply.coverage == .range(expected, total: .known(600_001)))
    #expect(reply.length == .known(expected.upperBound - expected.lowerBound))
    #expect(try await read(reply.body) == Array(Self.content[Int(expected.lowerBound)..<Int(expected.upperBound)]))
  }

  @Test func rangesAfterTheEndAreNotSatisfiable() async throws {
    let folder = try TemporaryFolder()
    let url = try file(folder)
    for start in [600_001, Int64.max] {
      let reply = try await FileSource().open(SourceRequest(url: url, range: RequestedRange(from: start)))
      #expect(reply.coverage == .none(.rangeNotSatisfiable(total: .known(600_001))))
    }
    for (start, end) in [(5, 5), (5, 4), (-1, 5)] as [(Int64, Int64)] {
      await #expect {
        try await FileSource().open(SourceRequest(url: url, range: RequestedRange(from: start, to: end)))
      } throws: { ($0 as? DownloadError)?.code == .invalidRequest }
    }
    let empty = URL(filePath: try folder.write([], to: "empty"))
    #expect(try await FileSource().open(SourceRequest(url: empty)).length == .known(0))
  }

  @Test func changedFilesAreSentWhole() async throws {
    let folder = try TemporaryFolder()
    let url = try file(folder)
    let first = try await FileSource().open(SourceRequest(url: url))
    first.body.discard()
    let again = SourceRequest(url: url, range: RequestedRange(from: 10), validator: first.validator)
    #expect(try await FileSource().open(again).coverage == .range(10..<600_001, total: .known(600_001)))
    // Another file with the same size and date.
    try FileManager.default.removeItem(at: url)
    _ = try file(folder)
    #expect(try await FileSource().open(again).coverage == .whole)
    // A weak validator is ignored.
    var weak = again
    weak.validator = Validator(entityTag: EntityTag("x", isWeak: true))
    #expect(try await FileSource().open(weak).coverage == .range(10..<600_001, total: .known(600_001)))
  }

  @Test func anythingButAFileIsReported() async throws {
    let folder = try TemporaryFolder()
    #expect(mkfifo(folder.path("pipe"), 0o600) == 0)
    _ = try folder.write([1], to: "file")
    for (name, code) in [
      ("missing", .fileNotFound), ("missing/x", .fileNotFound), ("", .unsupportedURL), ("pipe", .unsupportedURL),
      ("file/x", .permission),
    ] as [(String, DownloadError.Code)] {
      await #expect("\(name)") {
        try await FileSource().open(SourceRequest(url: URL(filePath: folder.path(name))))
      } throws: { ($0 as? DownloadError)?.code == code }
    }
    for text in ["file://elsewhere/a", "file:///a%00b"] {
      let url = try #require(URL(string: text))
      await #expect("\(text)") {
        try await FileSource().open(SourceRequest(url: url))
      } throws: { ($0 as? DownloadError)?.code == .unsupportedURL }
    }
    let url = try file(folder)
    await #expect {
      try await FileSource(system: Calls.failing([.open], with: EACCES)).open(SourceRequest(url: url))
    } throws: { ($0 as? DownloadError)?.code == .permission }
    let local = try #require(URL(string: "file://localhost" + url.path(percentEncoded: true)))
    #expect(try await FileSource().open(SourceRequest(url: local)).length == .known(600_001))
  }

  @Test func shrinkingAndChangingFilesAreDetected() async throws {
    for (size, code) in [(300_000, .lengthMismatch), (700_000, .contentChanged), (0, .lengthMismatch)]
      as [(off_t, DownloadError.Code)]
    {
      let folder = try TemporaryFolder()
      let url = try file(folder, "x")
      let reply = try await FileSource().open(SourceRequest(url: url))
      let isFirst = Atomic(true)
      await #expect {
        try await reply.body.forEachChunk { _ in
          if isFirst.exchange(false, ordering: .relaxed) { #expect(truncate(folder.path("x"), size) == 0) }
        }
      } throws: { ($0 as? DownloadError)?.code == code }
    }
  }

  @Test func cancellingStopsBetweenChunks() async throws {
    let folder = try TemporaryFolder()
    let reply = try await FileSource().open(SourceRequest(url: try file(folder)))
    let chunks = Atomic(0)
    let task = Mutex<Task<Void, any Error>?>(nil)
    let running = Task<Void, any Error> {
      try await reply.body.forEachChunk { _ in
        chunks.add(1, ordering: .relaxed)
        // The first chunk waits for the task, so that it is cancelled before the second one.
        while task.withLock({ $0 }) == nil { sched_yield() }
        task.withLock { $0?.cancel() }
      }
    }
    task.withLock { $0 = running }
    await #expect(throws: CancellationError.self) { try await running.value }
    #expect(chunks.load(ordering: .relaxed) == 1)
  }

  @Test func errorsOfTheSinkAreRethrown() async throws {
    struct Stop: Error {}
    let folder = try TemporaryFolder()
    let reply = try await FileSource().open(SourceRequest(url: try file(folder)))
    await #expect(throws: Stop.self) { try await reply.body.forEachChunk { _ in throw Stop() } }
  }

  @Test func readErrorsAreReported() async throws {
    let folder = try TemporaryFolder()
    let reply = try await FileSource(system: Calls.failing([.read], with: EIO)).open(
      SourceRequest(url: try file(folder)))
    await #expect { try await reply.body.forEachChunk { _ in } } throws: {
      ($0 as? DownloadError)?.code == .storage
    }
  }
}
