@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Finished downloads that are added again, or verified, where their files may not be: the ledger has workers with storages of
/// their own.
@Suite(.endsHangs)
struct AddingElsewhereTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 10_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  /// The storage of the worker that has finished the downloads.
  let storage = FakeStorage(location: "there")
  let ledger = MemoryLedger()

  /// A storage whose downloads belong to no location.
  private struct ForAny: StorageWrapper {
    let base: any Storage
    var mayBlock: Bool { false }
    var location: String? { nil }
  }

  private func downloader(_ storage: any Storage, startsSuspended: Bool = true) async throws -> Downloader {
    var options = options
    options.startsSuspended = startsSuspended
    let (source, ledger) = (FakeSource(everyURL: .init(bytes)), ledger)
    return try await Downloader(options: options) {
      source
      AnyStorage(storage)
      ledger
    }
  }

  private func record(_ id: DownloadID) async throws -> DownloadRecord {
    let store = try await ledger.open()
    let record = try await store.record(id)
    try await store.close()
    return try #require(record)
  }

  /// Adds a download for a location, and lets the worker finish it.
  private func finish(for location: String?) async throws -> DownloadRecord {
    let store = try await ledger.open()
    let addition = LedgerAddition(request: DownloadRequest(url, id: "a"), arrival: 1, location: location)
    _ = try await store.add([addition], at: time.date)
    try await store.close()
    let worker = try await downloader(storage, startsSuspended: false)
    try await worker.waitUntilIdle()
    await worker.shutdown()
    let record = try await record("a")
    #expect(record.phase == .finished && storage.published == ["file.bin": bytes])
    return record
  }

  private func removeFile() async throws {
    try await storage.remove(
      Artifact(location: .path("\(storage.root)/file.bin"), name: "file.bin", size: .known(Int64(bytes.count))))
    #expect(storage.published.isEmpty)
  }

  @Test("The record says where the file is of a download that belongs to no location", arguments: [nil, "there"])
  func location(of place: String?) async throws {
    let record = try await finish(for: place)
    #expect(record.location == place)
    #expect(record.steps.artifact?.location == (place == nil ? "there" : nil))
  }

  @Test(
    "What is added again for any location stays finished: another storage cannot tell whether the file is gone",
    arguments: [nil, "there"] as [String?], [true, false])
  func forAnyLocation(_ place: String?, isGone: Bool) async throws {
    let finished = try await finish(for: place)
    if isGone { try await removeFile() }
    let adder = try await downloader(FakeStorage())
    let again = try await adder.add(DownloadRequest(url, id: "a"))
    #expect(!again.isNew)
    #expect(try await record("a") == finished)
    await adder.shutdown()
  }

  @Test("A download that is added with a finished one, and comes after it, need not wait")
  func dependency() async throws {
    _ = try await finish(for: nil)
    let adder = try await downloader(FakeStorage())
    var second = DownloadRequest(url, id: "b")
    second.after = ["a"]
    let added = try await adder.add(contentsOf: [DownloadRequest(url, id: "a"), second])
    #expect(added.map(\.isNew) == [false, true])
    #expect(try await record("b").waitsFor.isEmpty)
    await adder.shutdown()
  }

  @Test(
    "An addition where the file was published finds out that it is gone", arguments: [true, false], [true, false])
  func whereItWas(isForAny: Bool, isGone: Bool) async throws {
    let finished = try await finish(for: nil)
    if isGone { try await removeFile() }
    let adder = try await downloader(isForAny ? ForAny(base: storage) : storage)
    let again = try await adder.add(DownloadRequest(url, id: "a"))
    #expect(again.isNew == isGone)
    let record = try await record("a")
    #expect(record.phase == (isGone ? .waiting : .finished))
    #expect((record.generation == finished.generation) == !isGone)
    await adder.shutdown()
  }

  @Test("What is added for another location is fetched there")
  func forAnotherLocation() async throws {
    _ = try await finish(for: nil)
    let here = FakeStorage(location: "here")
    let other = try await downloader(here, startsSuspended: false)
    let again = try await other.add(DownloadRequest(url, id: "a"))
    #expect(again.isNew)
    #expect(here.bytes(of: try await again.value) == bytes)
    let record = try await record("a")
    #expect(record.location == "here" && record.steps.artifact?.location == nil)
    await other.shutdown()
  }

  @Test("A file is perhaps a copy if another storage has it by the ledger, and no download has it here")
  func copies() async throws {
    let finished = try await finish(for: nil)
    let here = FakeStorage(location: "here")
    let viewer = try await downloader(here)
    func publish(_ bytes: [UInt8]) async throws {
      let context = ProcessingContext(request: finished.request, workspace: nil)
      _ = try await here.publish(
        Artifact(location: .memory(bytes), name: "file.bin"), of: nil, at: DownloadRequest.Destination(), in: context)
    }
    #expect(try await viewer.copies().isEmpty)
    try await publish([1])
    #expect(try await viewer.copies().isEmpty, "it has another size")
    try await publish(bytes)
    let copies = try await viewer.copies()
    #expect(copies.map(\.id) == ["a"] && copies.map(\.artifact.path) == ["\(here.root)/file.bin"])
    let worker = try await downloader(storage)
    #expect(try await worker.copies().isEmpty)
    await worker.shutdown()

    var own = finished
    own.request.id = "b"
    own.steps.artifact?.location = "here"
    let store = try await ledger.open()
    #expect(try await store.restore([own], at: time.date) == [true])
    try await store.close()
    #expect(try await viewer.copies().isEmpty, "another download has it here")
    await viewer.shutdown()
  }

  @Test("A file is not missing for a storage that it was never in, and is not fetched again")
  func verifying() async throws {
    let finished = try await finish(for: nil)
    let here = try await downloader(FakeStorage(location: "here"))
    let isUnverifiable = if case .unverifiable = try await here.verify("a", repairing: true) { true } else { false }
    #expect(isUnverifiable)
    #expect(try await record("a") == finished)
    await here.shutdown()
    try await removeFile()
    let there = try await downloader(storage)
    #expect(try await there.verify("a") == .missing)
    await there.shutdown()
  }
}
