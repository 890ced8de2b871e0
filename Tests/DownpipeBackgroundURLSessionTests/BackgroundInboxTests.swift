import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeBackgroundURLSession

@Suite(.endsHangs)
struct BackgroundInboxTests {
  private let answer = FinishedAnswer(status: 200, headers: ["ETag": "\"v\""], url: "https://a/")

  @Test func keepsFilesOverRestarts() throws {
    let folder = try TemporaryFolder()
    let inbox = try BackgroundInbox(folder.path("a/inbox"))
    let tag = try makeTag("../fi/lm ä")
    let temporary = try folder.write(Array("hello".utf8), to: "temporary")
    let name = try inbox.keep(temporary, tag, answer)
    #expect(name.hasPrefix("downpipe-film-"))
    #expect(!FileManager.default.fileExists(atPath: temporary))
    #expect(inbox.size(name) == 5)
    // A second file of the same download does not replace the first.
    let second = try inbox.keep(folder.write([1], to: "temporary"), tag, answer)
    #expect(second != name)
    let again = try BackgroundInbox(folder.path("a/inbox"))
    #expect(
      Set(again.load()) == [
        InboxEntry(name: name, tag: tag, answer: answer), InboxEntry(name: second, tag: tag, answer: answer),
      ])
    #expect(try folder.read("a/inbox/\(name).body") == Array("hello".utf8))
    again.remove(name)
    #expect(again.load().map(\.name) == [second])
  }

  @Test(.enabled(if: FileManager.default.isWritableFile(atPath: "/dev/shm")))
  func copiesAFileFromAnotherFileSystem() throws {
    let folder = try TemporaryFolder()
    let inbox = try BackgroundInbox(folder.path("inbox"))
    let temporary = URL(filePath: "/dev/shm/downpipe-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: temporary) }
    try Data("hello".utf8).write(to: temporary)
    let name = try inbox.keep(temporary.path(percentEncoded: false), makeTag(), answer)
    #expect(try folder.read("inbox/\(name).body") == Array("hello".utf8))
    #expect(!FileManager.default.fileExists(atPath: temporary.path(percentEncoded: false)))
  }

  @Test func leavesNothingWhenMovingFails() throws {
    let folder = try TemporaryFolder()
    let inbox = try BackgroundInbox(folder.path("inbox"))
    let error = #expect(throws: DownloadError.self) {
      _ = try inbox.keep(folder.path("missing"), makeTag(), answer)
    }
    #expect(error?.code == .storage)
    #expect(try folder.contents() == ["inbox"])
    try folder.write([], to: "file")
    let refused = #expect(throws: DownloadError.self) { _ = try BackgroundInbox(folder.path("file/inbox")) }
    #expect(refused != nil)
  }

  @Test func sweepsWhatCannotBeUsed() throws {
    let folder = try TemporaryFolder()
    let inbox = try BackgroundInbox(folder.path)
    let tag = try makeTag()
    func keep(_ name: String, now: Date = Date(), _ answer: FinishedAnswer? = nil) throws -> String {
      try inbox.keep(folder.write([1, 2], to: name), tag, answer ?? self.answer, now: now)
    }
    let good = try keep("a")
    _ = try keep("b", now: Date(timeIntervalSinceNow: -BackgroundInbox.timeLimit - 100))
    _ = try keep("c", now: Date(timeIntervalSinceNow: BackgroundInbox.timeLimit + 100))
    _ = try keep("d", FinishedAnswer(status: 404, headers: [], url: "https://a/"))
    let bodyless = try keep("e")
    try FileManager.default.removeItem(atPath: inbox.body(bodyless))
    let noteless = try keep("f")
    try FileManager.default.removeItem(atPath: folder.path("\(noteless).note"))
    let linked = try keep("g")
    try FileManager.default.removeItem(atPath: inbox.body(linked))
    try FileManager.default.createSymbolicLink(atPath: inbox.body(linked), withDestinationPath: inbox.body(good))
    try folder.write(Array("{\"version\":1".utf8), to: "downpipe-h.note")
    try folder.write([1], to: "downpipe-h.body")
    try folder.write([UInt8](repeating: 0x20, count: 2 << 20), to: "downpipe-i.note")
    try folder.write([1], to: "downpipe-i.body")
    let text = try String(decoding: folder.read("\(good).note"), as: UTF8.self)
    for (name, from, to) in [
      ("j", "\"version\":1", "\"version\":2"), ("k", "\"id\":\"film\"", "\"id\":\"\""),
      ("l", "https:", "file:"), ("m", "https:\\/\\/example", "file:\\/\\/example"),
    ] where text.contains(from) {
      try folder.write(Array(text.replacingOccurrences(of: from, with: to).utf8), to: "downpipe-\(name).note")
      try folder.write([1], to: "downpipe-\(name).body")
    }
    // Files with other names.
    try folder.write([1], to: "other.body")
    try folder.write([1], to: "downpipe-x.txt")
    #expect(inbox.load().map(\.name) == [good])
    #expect(try folder.contents() == ["\(good).body", "\(good).note", "downpipe-x.txt", "other.body"].sorted())
  }

  @Test(arguments: [
    ("org.example.films", "/r/org.example.films"), ("..", "/r/%2E."), ("a/../b", "/r/a%2F..%2Fb"), ("ä", "/r/%C3%A4"),
    ("\u{1}", "/r/%01"),
  ])
  func eachIdentifierHasItsOwn(_ identifier: String, _ path: String) throws {
    #expect(try BackgroundInbox.path(of: identifier, below: "/r") == path)
    #expect(try BackgroundInbox.path(of: identifier, below: nil).hasSuffix("/downpipe" + path.dropFirst(2)))
  }

  @Test(arguments: ["", String(repeating: "a", count: 241), String(repeating: "/", count: 100)])
  func identifiersThatCannotNameAFolder(_ identifier: String) {
    let error = #expect(throws: DownloadError.self) { _ = try BackgroundInbox.path(of: identifier, below: "/r") }
    #expect(error?.code == .invalidPipeline)
  }
}

@Suite(.endsHangs)
struct InboxFileTests {
  private let content = (0..<(InboxFile.chunkSize * 2 + 7)).map { UInt8(truncatingIfNeeded: $0 &* 31) }

  /// Whether the file was consumed when its last reference was released.
  private func use(_ path: String, _ work: (Body) async throws -> Void) async throws -> Bool? {
    let released = Watched<[Bool]>([])
    func run() async throws {
      let file = InboxFile(path) { isConsumed in released.update { $0.append(isConsumed) } }
      #expect(try file.size() == Int64(content.count))
      try await work(file.body)
    }
    try await run()
    // The reading thread may hold the file a moment longer than the waiting task.
    await released.wait { !$0.isEmpty }
    let all = released.value
    #expect(all.count == 1)
    return all.first
  }

  @Test func isReadInChunksAndThenConsumed() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(content, to: "body")
    let sizes = Mutex<[Int]>([])
    let bytes = Mutex<[UInt8]>([])
    let isConsumed = try await use(path) { body in
      #expect(body.file == path)
      try await body.forEachChunk { chunk in
        sizes.withLock { $0.append(chunk.byteCount) }
        chunk.withUnsafeBytes { buffer in bytes.withLock { $0 += buffer } }
      }
      await #expect(throws: DownloadError.self) { try await body.forEachChunk { _ in } }
    }
    #expect(isConsumed == true)
    #expect(bytes.withLock { $0 } == content)
    #expect(sizes.withLock { $0 } == [InboxFile.chunkSize, InboxFile.chunkSize, 7])
  }

  @Test func staysUntilItIsConsumed() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(content, to: "body")
    #expect(try await use(path) { _ in } == false)
    struct Full: Error {}
    #expect(
      try await use(path) { body in
        await #expect(throws: Full.self) { try await body.forEachChunk { _ in throw Full() } }
      } == false)
    #expect(
      try await use(path) { body in
        await withTaskGroup(of: Void.self) { group in
          group.cancelAll()
          group.addTask {
            await #expect(throws: CancellationError.self) { try await body.forEachChunk { _ in } }
          }
        }
      } == false)
    #expect(try folder.read("body") == content)
  }

  @Test func discardingEndsReading() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(content, to: "body")
    let chunks = Atomic(0)
    let isConsumed = try await use(path) { body in
      await #expect(throws: CancellationError.self) {
        try await body.forEachChunk { _ in
          chunks.add(1, ordering: .relaxed)
          body.discard()
        }
      }
      await #expect(throws: DownloadError.self) { try await body.forEachChunk { _ in } }
    }
    #expect(isConsumed == true)
    #expect(chunks.load(ordering: .relaxed) == 1)
  }

  @Test func aFileThatIsGoneIsAnError() async throws {
    let folder = try TemporaryFolder()
    let file = InboxFile(folder.path("missing")) { _ in }
    #expect(throws: DownloadError.self) { try file.size() }
    await #expect(throws: DownloadError.self) { try await file.body.forEachChunk { _ in } }
  }
}
