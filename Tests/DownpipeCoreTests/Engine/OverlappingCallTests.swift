import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Calls that overlap with others: what each finds follows from their order.
@Suite(.endsHangs)
struct OverlappingCallTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage(onConflict: .keepBoth)
  let ledger = MemoryLedger()

  @Test("What is added after a removal finds the place of the removed file free", arguments: [true, false])
  func fileOfARemovedRun(isForAll: Bool) async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource([url: [.init(bytes), .init(bytes).holding(after: 10_000), .init(bytes)]])
    let downloader = try await downloader(source, ledger: faulty)
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(Set(storage.published.keys) == ["file.bin"])
    #expect(try await downloader.restart("a"))
    await source.held(atLeast: 1)
    try await settle(downloader)
    // The end of the run is on its way to the ledger while the download is added again.
    faulty.hold(.exchange, at: faulty.calls.count { $0 == .exchange } + 1)
    let removal = Task {
      if isForAll { return try await downloader.removeAll(deletingFiles: true) == 1 }
      return try await downloader.remove("a", deletingFile: true)
    }
    await faulty.held(atLeast: 1)
    let addition = Task { [url] in try await downloader.add(DownloadRequest(url, id: "a")) }
    try await settle(downloader)
    faulty.release()
    #expect(try await removal.value)
    _ = try await addition.value.value
    #expect(Set(storage.published.keys) == ["file.bin"])
    await downloader.shutdown()
  }

  @Test("The file of a removed download is deleted before a later addition, also by a command for many")
  func fileOfAnIdleDownload() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)))
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    let removal = Task { try await downloader.removeAll(deletingFiles: true) }
    while try await downloader.status(of: "a") != nil { await Task.yield() }
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(try await removal.value == 1)
    #expect(Set(storage.published.keys) == ["file.bin"])
    await downloader.shutdown()
  }

  /// A downloader that starts suspended, with a download that waits, and a ledger that holds the first ranking.
  private func downloaderBeforeItsRanking(_ source: FakeSource) async throws -> (Downloader, FaultyLedger) {
    let first = try await downloader(source, startsSuspended: true)
    try await first.add(DownloadRequest(url, id: "a"))
    await first.shutdown()
    let faulty = FaultyLedger(ledger)
    faulty.hold(.rank)
    return (try await downloader(source, ledger: faulty, startsSuspended: true), faulty)
  }

  @Test("A long first ranking holds up nothing but what needs ranks")
  func ranking() async throws {
    let (downloader, faulty) = try await downloaderBeforeItsRanking(FakeSource(everyURL: .init(bytes)))
    let start = Task { await downloader.setSuspended(false) }
    let addition = Task { [url] in try await downloader.add(DownloadRequest(url, id: "b")) }
    await faulty.held(atLeast: 1)
    #expect(try await downloader.pause("a"))
    #expect(try await downloader.remove("a"))
    faulty.release()
    await start.value
    _ = try await addition.value.value
    #expect(faulty.calls.count { $0 == .rank } == 1, "both wait for one ranking")
    await downloader.shutdown()
  }

  @Test("Cancelling the end of a suspension does not start downloads before they are ranked")
  func cancelledWhileRanking() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let (downloader, faulty) = try await downloaderBeforeItsRanking(source)
    let start = Task { await downloader.setSuspended(false) }
    await faulty.held(atLeast: 1)
    start.cancel()
    try await settle(downloader)
    #expect(try await downloader.status(of: "a")?.state == .waiting(.suspended))
    #expect(source.requests.isEmpty)
    faulty.release()
    await start.value
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.finished: 1])
    await downloader.shutdown()
  }

  @Test("A ranking that fails is told to those who wait for it, and tried again by the next")
  func failedRanking() async throws {
    let faulty = FaultyLedger(ledger)
    faulty.fail(.rank, with: DownloadError(.ledger, "the disk is full"))
    let downloader = try await downloader(
      FakeSource(everyURL: .init(bytes)), ledger: faulty, startsSuspended: true)
    do {
      try await downloader.add(DownloadRequest(url, id: "a"))
      Issue.record("it was added without a rank")
    } catch let error as DownloadError {
      #expect(error.code == .ledger)
    }
    try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(faulty.calls.count { $0 == .rank } == 2)
    await downloader.shutdown()
  }

  @Test("A removal whose caller gives up after it has stopped the run leaves nothing, and a later addition is new")
  func removalWithoutItsCaller() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource([url: [.init(bytes).holding(after: 10_000), .init(bytes)]])
    let downloader = try await downloader(source, ledger: faulty)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await settle(downloader)
    faulty.hold(.exchange, at: faulty.calls.count { $0 == .exchange } + 1)
    let removal = Task { try await downloader.remove("a") }
    await faulty.held(atLeast: 1)
    let addition = Task { [url] in try await downloader.add(DownloadRequest(url, id: "a")) }
    try await settle(downloader)
    removal.cancel()
    await #expect(throws: CancellationError.self) { try await removal.value }
    faulty.release()
    _ = try await addition.value.value
    #expect(storage.partials.isEmpty)
    #expect(Set(storage.published.keys) == ["file.bin"])
    await downloader.shutdown()
  }

  @Test("The files of many downloads are deleted, a few in each turn")
  func filesOfMany() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init([1, 2, 3])))
    try await downloader.add(contentsOf: requests(250))
    try await downloader.waitUntilIdle()
    #expect(storage.published.count == 250)
    #expect(try await downloader.removeAll(deletingFiles: true) == 250)
    #expect(storage.published.isEmpty)
    await downloader.shutdown()
  }

  /// A downloader whose file of “a” is gone, and a disk that does not answer whether it is.
  private func downloaderWithALostFile(_ source: FakeSource, _ slow: SlowLook) async throws -> Downloader {
    let downloader = try await Downloader(options: options) {
      source
      slow
      ledger
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    try await storage.remove(artifact)
    slow.isHeld.update { $0 = true }
    return downloader
  }

  private func tagged(_ tag: String) -> DownloadRequest {
    var request = DownloadRequest(url, id: "a")
    request.tags = [tag]
    return request
  }

  @Test("Two additions of a download whose file is lost: the later one decides how it is fetched again")
  func lostTwice() async throws {
    let (slow, source) = (SlowLook(base: storage), FakeSource(everyURL: .init(bytes)))
    let downloader = try await downloaderWithALostFile(source, slow)
    let first = Task { try await downloader.add(tagged("first")) }
    await slow.waiting.wait { $0 > 0 }
    let second = Task { try await downloader.add(tagged("second")) }
    await slow.waiting.wait { $0 > 1 }
    slow.isHeld.update { $0 = false }
    _ = try await (first.value.value, second.value.value)
    #expect(try await downloader.status(of: "a")?.request.tags == ["second"])
    #expect(source.requests.count == 2)
    await downloader.shutdown()
  }

  @Test("An addition whose artifact is lost does not win over a later one that asks for another file")
  func lostArtifact() async throws {
    let other = URL(string: "https://example.org/other.bin")!
    let (slow, source) = (SlowLook(base: storage), FakeSource(everyURL: .init(bytes)))
    let downloader = try await downloaderWithALostFile(source, slow)
    let first = Task { [url] in try await downloader.add(DownloadRequest(url, id: "a")) }
    await slow.waiting.wait { $0 > 0 }
    let second = try await downloader.add(DownloadRequest(other, id: "a"))
    _ = try await second.value
    slow.isHeld.update { $0 = false }
    _ = try await first.value.value
    #expect(try await second.status.request.url == other)
    #expect(source.requests.map(\.url) == [url, other])
    await downloader.shutdown()
  }

  @Test("A run that a command has stopped is waited for although the ledger fails: a later command knows why it ends")
  func ledgerFailsAfterStop() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, ledger: faulty)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await settle(downloader)
    let calls = faulty.calls.count { $0 == .reclaim }
    let failure = DownloadError(.ledger, "the connection to the database was lost")
    faulty.fail(.reclaim, at: calls + 1, times: 20, with: failure)
    // Downloads of dead owners are looked for, which fails; it fails again for the command.
    let look = Task {
      while faulty.calls.count(where: { $0 == .reclaim }) == calls { await time.advanceToNextSleeper() }
    }
    await look.value
    try await settle(downloader)
    let pause = Task { try await downloader.pause("a") }
    try await settle(downloader)
    let resumption = Task { try await downloader.resume("a") }
    let isPaused = try await advancing { try await pause.value }
    let isResumed = try await advancing { try await resumption.value }
    #expect(isPaused)
    #expect(isResumed)
    source.release()
    let download = try await downloader.download("a")
    _ = try await advancing { try await download?.value }
    await downloader.shutdown()
  }
}

/// A storage on a disk that may not answer the question whether a file exists.
private struct SlowLook: StorageWrapper {
  let base: any Storage
  let isHeld = Watched(false)
  let waiting = Watched(0)

  func contains(_ artifact: Artifact) async -> Bool {
    if isHeld.value {
      waiting.update { $0 += 1 }
      await isHeld.wait { !$0 }
    }
    return await base.contains(artifact)
  }
}
