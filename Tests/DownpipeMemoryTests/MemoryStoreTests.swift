import DownpipeCore
import DownpipeFiles
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeMemory

@Suite(.endsHangs)
struct MemoryStoreTests {
  private let isFull: (any Error) -> Bool = { ($0 as? DownloadError)?.code == .noSpace }

  @Test func publishedBytesAreFoundByName() async throws {
    let store = MemoryStore()
    let staged = try await store.staged(someBytes, name: "x.bin")
    #expect(store.isStaged(staged))
    #expect(await !store.contains(staged))
    let published = try await store.publish(staged, of: nil, at: .init(directory: "a"), in: try context())
    try await store.removePartial(key())
    #expect(!store.isStaged(published))
    #expect(store["x.bin"] == published && published.location == .memory(someBytes))
    try await store.remove(published)
    #expect(store["x.bin"] == nil)
  }

  @Test("bytes of a process that has ended are missing, and a repair fetches them again")
  func verification() async throws {
    let url = try #require(URL(string: "https://example.org/file"))
    let source = FakeSource([url: [.init(someBytes)]])
    let ledger = MemoryLedger()
    func downloader() async throws -> Downloader {
      try await Downloader {
        source
        MemoryStore()
        ledger
      }
    }
    let first = try await downloader()
    _ = try await first.add(DownloadRequest(url, id: "a")).value
    guard case .unverifiable = try await first.verify("a") else { throw DownloadError(.storage, "it is there") }
    await first.shutdown()
    let second = try await downloader()
    #expect(try await second.verify("a", repairing: true) == .missing)
    let artifact = try await #require(second.download("a")).value
    #expect(artifact.location == .memory(someBytes))
    await second.shutdown()
  }

  @Test func memoryIsLimited() async throws {
    let store = MemoryStore(maximumBytes: 100)
    let first = try await store.openPartial(key("a"), isNew: false)
    let second = try await store.openPartial(key("b"), isNew: false)
    try first.write([UInt8](repeating: 1, count: 60), at: 0)
    try second.write([UInt8](repeating: 1, count: 40), at: 0)
    #expect { try second.write([1], at: 40) } throws: { isFull($0) }
    #expect { try first.write([1], at: .max) } throws: { isFull($0) }
    #expect { try first.write([1], at: -1) } throws: { isFull($0) }
    #expect { try first.truncate(to: .max) } throws: { isFull($0) }
    #expect { try first.truncate(to: 61) } throws: { isFull($0) }
    #expect(try second.size() == 40)
    try first.truncate(to: 59)
    try second.write([2], at: 40)
    #expect(try second.read(at: 39, count: 10) == [1, 2])
    try await store.removePartial(key("a"))
    try second.write([UInt8](repeating: 3, count: 59), at: 41)
    #expect { try first.size() } throws: { ($0 as? DownloadError)?.code == .storage }
  }

  @Test func publishingSharesTheBytesOfItsPartial() async throws {
    let store = MemoryStore(maximumBytes: 100, maximumArtifacts: 2)
    let bytes = [UInt8](repeating: 1, count: 80)
    let staged = try await store.staged(bytes, name: "x")
    let published = try await store.publish(staged, of: nil, at: .init(), in: try context())
    try await store.removePartial(key())
    let more = Artifact(location: .memory([UInt8](repeating: 2, count: 21)), name: "y")
    await #expect { try await store.publish(more, of: nil, at: .init(), in: try context()) } throws: { isFull($0) }
    try await store.remove(published)
    _ = try await store.publish(more, of: nil, at: .init(), in: try context())
    _ = try await store.publish(more, of: nil, at: .init(name: "z"), in: try context())
    await #expect { try await store.publish(more, of: nil, at: .init(name: "w"), in: try context()) } throws: {
      isFull($0)
    }
  }

  @Test func conflictsFollowThePolicy() async throws {
    func publish(_ store: MemoryStore, _ byte: UInt8) async throws -> Artifact {
      try await store.publish(
        Artifact(location: .memory([byte]), name: "x.gz"), of: nil, at: .init(), in: try context())
    }
    let both = MemoryStore()
    #expect(try await publish(both, 1).name == "x.gz")
    #expect(try await publish(both, 2).name == "x (1).gz")
    let replacing = MemoryStore(onConflict: .replace)
    _ = try await publish(replacing, 1)
    #expect(try await publish(replacing, 2) == replacing["x.gz"])
    let failing = MemoryStore(onConflict: .fail)
    _ = try await publish(failing, 1)
    await #expect { try await publish(failing, 1) } throws: { ($0 as? DownloadError)?.code == .alreadyExists }
    let reusing = MemoryStore(onConflict: .reuse)
    let kept = try await publish(reusing, 1)
    let reused = try await publish(reusing, 1)
    #expect(kept.location == reused.location && kept.name == reused.name && !kept.isReused && reused.isReused)
    #expect(try await publish(reusing, 2).name == "x (1).gz")
    let request = try DownloadRequest("https://a/x.gz").with(\.expectedSize, 1)
    #expect(try await reusing.existing(for: request)?.location == .memory([1]))
    #expect(try await both.existing(for: request) == nil)
  }

  @Test func writesAfterTheEndFillTheGapWithZeros() async throws {
    let partial = try await MemoryStore().openPartial(key(), isNew: false)
    try partial.write([1, 2], at: 3)
    try partial.write([9, 9], at: 4)
    #expect(try partial.read(at: 0, count: 10) == [0, 0, 0, 1, 9, 9])
    try partial.truncate(to: 4)
    try partial.truncate(to: 5)
    #expect(try partial.read(at: 0, count: 10) == [0, 0, 0, 1, 0])
    #expect(try partial.read(at: -1, count: 1) == [])
  }

  @Test func aFileThatAStepWroteStaysInPlace() async throws {
    let folder = try TemporaryFolder()
    let store = MemoryStore()
    let staged = try await store.staged([1], name: "x")
    let moved = try await MoveInto(folder.path).process(staged, in: try context())
    #expect(try folder.read("x") == [1])
    #expect(!store.isStaged(moved))
    #expect(await store.contains(moved))
    #expect(try store.path(forStored: store.storedPath(for: folder.path("x"))) == folder.path("x"))
    try await store.remove(moved)
    #expect(await !store.contains(moved))
  }

  @Test(
    "a finished download has its bytes, also for those who ask later", arguments: ["value", "status", "list", "add"])
  func bytesOfAFinishedDownload(_ way: String) async throws {
    let store = MemoryStore()
    let downloader = try await Downloader {
      FakeSource(everyURL: .init(someBytes))
      store
    }
    let request = try DownloadRequest("https://example.org/file.bin", id: "a")
    let download = try await downloader.add(request)
    _ = try await download.value
    let artifact: Artifact
    switch way {
    case "value": artifact = try await download.value
    case "add": artifact = try await downloader.add(request).value
    default:
      let status = way == "list" ? try await downloader.statuses().first : try await download.status
      guard case .finished(let found) = status?.state else {
        Issue.record("it is not finished")
        return
      }
      artifact = found
    }
    #expect(artifact.location == .memory(someBytes) && artifact.size == .known(Int64(someBytes.count)))
    try await store.remove(artifact)
    if case .finished(let removed) = try await download.status.state { #expect(removed.location == .memory([])) }
    await downloader.shutdown()
  }

  @Test("an artifact of another download that is reused is neither removed nor replaced with this one")
  func reusedArtifacts() async throws {
    let store = MemoryStore(onConflict: .reuse)
    let source = FakeSource(everyURL: .init(someBytes))
    let downloader = try await Downloader {
      source
      store
    }
    let url = "https://example.org/file.bin"
    let first = try await downloader.add(DownloadRequest(url, id: "a")).value
    let second = try await downloader.add(DownloadRequest(url, id: "b"))
    #expect(try await second.value.isReused && !first.isReused)
    #expect(try await second.value.location == first.location)
    #expect(try await second.remove(deletingFile: true))
    #expect(store["file.bin"] == first)
    #expect(try await downloader.remove("a", deletingFile: true))
    #expect(store["file.bin"] == nil)
    await downloader.shutdown()
  }

  @Test func aPartialHasOneWriterAtATime() async throws {
    let store = MemoryStore()
    let first = try await store.openPartial(key(), isNew: false)
    try first.write([1], at: 0)
    await #expect { _ = try await store.openPartial(key(), isNew: false) } throws: {
      ($0 as? DownloadError)?.code == .inUse
    }
    try first.close()
    let second = try await store.openPartial(key(), isNew: false)
    try first.close()
    await #expect { _ = try await store.openPartial(key(), isNew: false) } throws: {
      ($0 as? DownloadError)?.code == .inUse
    }
    try await store.removePartial(key())
    // The partial was created again, so the old opening is invalid.
    let third = try await store.openPartial(key(), isNew: false)
    #expect(throws: DownloadError.self) { try second.write([2], at: 0) }
    try second.close()
    await #expect { _ = try await store.openPartial(key(), isNew: false) } throws: {
      ($0 as? DownloadError)?.code == .inUse
    }
    #expect(try third.size() == 0)
  }

  @Test func renamingFindsTheArtifactByWhatALedgerStores() async throws {
    let store = MemoryStore()
    let bytes = Array("bytes".utf8)
    let staged = try await store.staged(bytes, name: "a")
    let first = try await store.publish(staged, of: nil, at: .init(), in: try context())
    try await store.removePartial(key())
    // A ledger stores no bytes.
    let kept = Artifact(location: .memory([]), name: "a", size: first.size, modifiedAt: first.modifiedAt)
    #expect(!store.isStaged(kept))
    let moved = try await store.publish(kept, of: nil, at: .init(name: "b"), in: try context())
    #expect(moved.location == .memory(bytes) && store["b"] == moved && store["a"] == nil)
    await #expect {
      try await store.publish(kept, of: nil, at: .init(name: "c"), in: try context())
    } throws: { ($0 as? DownloadError)?.code == .storage }
    try await store.remove(
      Artifact(location: .memory([]), name: "b", size: first.size, modifiedAt: first.modifiedAt))
    #expect(store["b"] == nil)
    // Its bytes no longer count.
    #expect(store.contents.state.withLock { $0.publishedBytes } == 0)
  }

  @Test func exportingWritesAFile() async throws {
    let folder = try TemporaryFolder()
    let partial = try await MemoryStore().openPartial(key(), isNew: true)
    try partial.write(someBytes, at: 0)
    let existing = try folder.write([1], to: "existing")
    await #expect { try await partial.export(to: existing, count: 10) } throws: {
      ($0 as? DownloadError)?.code == .alreadyExists
    }
    await #expect { try await partial.export(to: folder.path("long"), count: 70_001) } throws: {
      ($0 as? DownloadError)?.code == .storage
    }
    try await partial.export(to: folder.path("memory"), count: 60_000)
    let isSame = try folder.read("memory") == Array(someBytes[..<60_000])
    #expect(isSame)
    #expect(try folder.contents() == ["existing", "memory"])
  }

  @Test func theStoreEndsWithTheProcess() {
    #expect(MemoryStore().durability == .process)
    #expect(MemoryStore().location == nil)
  }

  @Test(
    arguments: [
      ("..", nil), ("/tmp", nil), ("a//b", nil), (".", nil), (nil, ".."), (nil, "a/b"), (nil, ""), (nil, "a\u{0}"),
      (nil, String(repeating: "x", count: 256)),
    ] as [(String?, String?)])
  func unsafeDestinationsAreRefused(_ directory: String?, _ name: String?) {
    let error = #expect(throws: DownloadError.self) {
      try MemoryStore().check(DownloadRequest.Destination(directory: directory, name: name))
    }
    #expect(error?.code == .unsafePath)
  }

  /// The folder belongs to the step, even if it is empty.
  @Test func removingAFileKeepsItsFolder() async throws {
    let folder = try TemporaryFolder()
    let store = MemoryStore()
    let staged = try await store.staged([1], name: "x")
    let moved = try await MoveInto(folder.path("films")).process(staged, in: try context())
    try await store.remove(moved)
    #expect(FileManager.default.fileExists(atPath: folder.path("films")))
    #expect(!FileManager.default.fileExists(atPath: folder.path("films/x")))
  }
}
