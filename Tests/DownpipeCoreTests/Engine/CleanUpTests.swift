@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// What a download leaves on disk: everything that is useful later, and nothing else.
@Suite(.endsHangs)
struct CleanUpTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private func downloader(_ source: FakeSource, _ storage: any Storage, ledger: (any Ledger)? = nil) async throws
    -> Downloader
  {
    try await Downloader(options: options) {
      source
      AnyStorage(storage)
      FakeRetryPolicy(.giveUp)
      AnyLedger(ledger ?? self.ledger)
    }
  }

  // MARK: Small downloads

  @Test func aSmallNewDownloadCostsNothingThatItDoesNotNeed() async throws {
    let probe = ProbeStorage(storage)
    let source = FakeSource(everyURL: .init(bytes).with { $0.chunkSize = 40_000 })
    let faulty = FaultyLedger(ledger)
    let downloader = try await downloader(source, probe, ledger: faulty)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    try await downloader.waitUntilIdle()
    #expect(storage.calls.map(\.operation) == [.openPartial, .write, .write, .write, .close, .publish])
    #expect(probe.openings == [true])
    // The only save on the way is the storage's note of what it publishes.
    #expect(faulty.calls.count { $0 == .save } == 1)
    #expect(storage.openPartials == 0 && storage.partials.isEmpty)
    await downloader.shutdown()
  }

  @Test func aPartialWithANameIsRemoved() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), storage)
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.calls.last?.operation == .removePartial)
    #expect(storage.partials.isEmpty)
    await downloader.shutdown()
  }

  @Test func aSmallDownloadThatBreaksKeepsItsBytesAndIsNoLongerNew() async throws {
    let probe = ProbeStorage(storage)
    let cut = DownloadError(.network, "cut")
    let source = FakeSource([url: [.init(bytes).failing(after: 40_000, with: cut), .init(bytes)]])
    let downloader = try await downloader(source, probe)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { code($0) == .network }
    #expect(storage.partials.values.map(\.count) == [40_000])
    try await download.resume()
    _ = try await download.value
    #expect(probe.openings == [true, false])
    #expect(storage.partials.isEmpty)
    await downloader.shutdown()
  }

  // MARK: Conflicts

  @Test(
    "complete bytes that could not be published are published later without a new request", arguments: [true, false])
  func conflicts(isRestarted: Bool) async throws {
    let storage = FakeStorage(onConflict: .fail)
    let source = FakeSource(everyURL: .init(bytes))
    var downloader = try await downloader(source, storage)
    let first = try await downloader.add(DownloadRequest(url, id: "a")).value
    var second = try await downloader.add(DownloadRequest(url, id: "b"))
    await #expect { try await second.value } throws: { code($0) == .alreadyExists }
    #expect(storage.partials.values.map(\.count) == [100_000])
    #expect(try await second.status.progress.received == 100_000)
    // The same holds for each attempt.
    try await second.resume()
    await #expect { try await second.value } throws: { code($0) == .alreadyExists }
    if isRestarted {
      await downloader.shutdown()
      downloader = try await self.downloader(source, storage)
      second = try #require(try await downloader.download("b"))
    }
    try await storage.remove(first)
    try await second.resume()
    #expect(storage.bytes(of: try await second.value) == bytes)
    #expect(source.requests.count == 2)
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
    await downloader.shutdown()
  }

  // MARK: Cancelling all

  @Test("cancelling all removes all partials, also of downloads whose ids the transition does not return")
  func cancellingMoreThanATransitionNames() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), startsSuspended: true)
    let count = 10_050
    for start in stride(from: 0, to: count, by: 1000) {
      try await downloader.add(
        contentsOf: (start..<min(start + 1000, count)).map { DownloadRequest(url, id: DownloadID("d\($0)")) })
    }
    for generation in 1...count {
      let key = PartialKey(id: DownloadID("d\(generation - 1)"), generation: Int64(generation))
      try await storage.openPartial(key, isNew: false).close()
    }
    #expect(storage.partials.count == count)
    #expect(try await downloader.cancelAll() == count)
    #expect(storage.partials.isEmpty)
    await downloader.shutdown()
  }

  // MARK: Orphans

  @Test("removing an orphan and restarting its download do not interfere", arguments: [true, false])
  func orphansAndDownloadsOfTheirID(isLookingUp: Bool) async throws {
    let (probe, faulty) = (ProbeStorage(storage), FaultyLedger(ledger))
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, probe, ledger: faulty)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await download.cancel()
    // A partial left by a crash.
    let key = PartialKey(id: "a", generation: 1)
    let litter = try await storage.openPartial(key, isNew: false)
    try litter.write(Array(bytes.reversed()).span.bytes, at: 0)
    try litter.close()
    if isLookingUp {
      faulty.hold(.record, at: faulty.calls.count { $0 == .record } + 1)
    } else {
      probe.hold(.removePartial)
    }
    let known = faulty.calls.count { $0 == .record }
    let removal = Task {
      try await downloader.removeOrphans([StoredPartial(key: key, size: 100_000, isInUse: false)])
    }
    if isLookingUp { await faulty.calls(of: .record, atLeast: known + 1) } else { await probe.held(.removePartial) }
    let again = Task { try await downloader.restart("a") }
    for _ in 0..<50 { await Task.yield() }
    #expect(source.requests.count == 1, "nothing is leased before the removal has ended")
    source.release()
    faulty.release()
    probe.release()
    // The partial was an orphan when the loop removed it: the restart is applied after that.
    #expect(try await removal.value == 1)
    #expect(try await again.value)
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.last?.range == nil)
    await downloader.shutdown()
    #expect(storage.partials.isEmpty)
  }

  @Test func whatRunsIsNoOrphan() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, storage)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let running = StoredPartial(key: PartialKey(id: "a", generation: 1), size: 0, isInUse: false)
    #expect(try await downloader.removeOrphans([running]) == 0)
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }
}
