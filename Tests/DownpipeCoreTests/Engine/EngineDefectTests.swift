import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Defects that a review of the engine has found.
@Suite(.endsHangs)
struct EngineDefectTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test("a command for all reaches runs that are stopping for another reason", arguments: [true, false])
  func commandsForAllReachStoppingRuns(isCancelled: Bool) async throws {
    let gate = FakeGate()
    let source = FakeSource(everyURL: .init(bytes))
    // A step that ignores cancellation keeps the run from ending at once.
    let (isHeld, calls) = (Watched(true), CallCounter())
    let step = FakePostProcessor<File, File>(name: "Slow") { file, _ in
      if calls.next() == 1 { await Task { await isHeld.wait { !$0 } }.value } else { try await FakeSource.never() }
      return file
    }
    let downloader = try await Downloader(options: options) {
      source
      gate
      storage
      ledger
      step
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await step.calls(atLeast: 1)
    gate.close("for a moment")
    try await settle(downloader)
    gate.open()
    let command = Task { isCancelled ? try await downloader.cancelAll() : try await downloader.pauseAll() }
    try await settle(downloader)
    isHeld.update { $0 = false }
    #expect(try await command.value == 1)
    #expect(try await download.status.state == (isCancelled ? .cancelled : .paused))
    await downloader.shutdown()
  }

  @Test("the note of a step is not passed to another step")
  func notesBelongToTheirSteps() async throws {
    let folder = try TemporaryFolder()
    let storage = FakeStorage(workspaces: folder.path)
    let source = FakeSource([url: [.init(bytes)]])
    func downloader(_ steps: [FakePostProcessor<File, File>]) async throws -> Downloader {
      try await Downloader(options: options) {
        source
        storage
        ledger
        FakeRetryPolicy(.giveUp)
        for step in steps { step }
      }
    }
    // The step moves its input away, and the process ends before that is recorded.
    let moving = FakePostProcessor<File, File>(name: "MoveInto") { file, context in
      try await context.note("moved to the films")
      if let path = file.path { try FileManager.default.removeItem(atPath: path) }
      throw DownloadError(.processing, "the process died")
    }
    let unpacked = FakePostProcessor<File, File>.bytes(name: "Gunzip") { $0.reversed() }
    let first = try await downloader([unpacked, moving])
    let download = try await first.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { code($0) == .processing }
    await first.shutdown()

    let verify = FakePostProcessor<File, File>.bytes(name: "Verify") { $0 }
    let move = FakePostProcessor<File, File>.bytes(name: "MoveInto") { $0 }
    let second = try await downloader([unpacked, verify, move])
    let again = try #require(try await second.download("a"))
    try await again.resume()
    let artifact = try await again.value
    #expect(storage.bytes(of: artifact) == bytes.reversed())
    #expect(verify.priorNotes == [nil])
    await second.shutdown()
  }

  @Test("a file that another machine has moved, and not recorded, is fetched again")
  func movedOnAnotherMachine() async throws {
    let source = FakeSource([url: [.init(bytes), .init(bytes)]])
    let folders = (try TemporaryFolder(), try TemporaryFolder())
    func downloader(_ storage: FakeStorage, _ step: FakePostProcessor<File, File>) async throws -> Downloader {
      try await Downloader(options: options) {
        source
        storage
        ledger
        FakeRetryPolicy(.giveUp)
        FakePostProcessor<File, File>.bytes(name: "Gunzip") { $0.reversed() }
        step
      }
    }
    // The process ends between what the step does and its record.
    let first = try await downloader(
      FakeStorage(workspaces: folders.0.path),
      FakePostProcessor(name: "MoveInto") { file, context in
        try await context.note("moved to the films")
        if let path = file.path { try FileManager.default.removeItem(atPath: path) }
        throw DownloadError(.processing, "the process died")
      })
    let download = try await first.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { code($0) == .processing }
    await first.shutdown()

    let storage = FakeStorage(workspaces: folders.1.path)
    let move = FakePostProcessor<File, File>(name: "MoveInto") { file, context in
      guard let path = file.path, FileManager.default.fileExists(atPath: path) else {
        throw DownloadError(.storage, "the file was removed")
      }
      return file
    }
    let second = try await downloader(storage, move)
    let again = try #require(try await second.download("a"))
    try await again.resume()
    #expect(storage.bytes(of: try await again.value) == bytes.reversed())
    #expect(move.priorNotes == ["moved to the films", nil])
    await second.shutdown()
  }

  @Test("a partial that was damaged during a step is not used to start the chain again")
  func damagedPartialBehindAStep() async throws {
    let folder = try TemporaryFolder()
    let storage = FakeStorage(workspaces: folder.path)
    let source = FakeSource([url: [.init(bytes)]])
    let failing = FakePostProcessor<File, File>(name: "MoveInto") { _, _ in throw DownloadError(.processing, "no") }
    let first = try await Downloader(options: options) {
      source
      storage
      ledger
      FakeRetryPolicy(.giveUp)
      FakePostProcessor<File, File>.bytes(name: "Gunzip") { $0.reversed() }
      failing
    }
    let download = try await first.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { code($0) == .processing }
    await first.shutdown()
    storage.damage(PartialKey(id: "a", generation: 1)) { $0[$0.count - 1] ^= 1 }
    let second = try await Downloader(options: options) {
      source
      storage
      ledger
    }
    let again = try #require(try await second.download("a"))
    try await again.resume()
    let artifact = try await again.value
    #expect(storage.bytes(of: artifact) == bytes)
    await second.shutdown()
  }

  @Test("a cancelled download leaves no partial even if the ledger fails temporarily")
  func cancellingWhileTheLedgerFails() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, ledger: faulty)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    faulty.fail(.save, with: DownloadError(.ledger, "busy"))
    try await download.cancel()
    #expect(try await download.status.state == .cancelled)
    #expect(storage.partials.isEmpty)
    await downloader.shutdown()
  }

  @Test("the next mirror is used if a URL stays too slow, as if it does not answer")
  func mirrorsOfSlowPlaces() async throws {
    let mirror = url.appending(path: "mirror")
    let source = FakeSource([url: [.init(bytes).holding(after: 0)], mirror: [.init(bytes)]])
    let downloader = try await Downloader(options: options) {
      source
      storage
      ledger
      Retry(.constant(.zero, attempts: 2))
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror]))
    let artifact = try await advancing { try await download.value }
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.map(\.url) == [url, url, mirror])
    await downloader.shutdown()
  }

  @Test("an expired link stays expired while the download waits for the network")
  func deadLinksAndMissingNetworks() async throws {
    let fresh = url.appending(path: "fresh")
    let source = FakeSource([url: [.status(403)], fresh: [.init(bytes)]])
    let calls = CallCounter()
    let refresher = FakeLinkRefresher { _ in
      if calls.next() == 1 { throw DownloadError(.offline, "the server of links is unreachable") }
      return FreshLink(fresh)
    }
    let downloader = try await Downloader(options: options) {
      source
      refresher
      storage
      ledger
      Retry(.constant(.zero, attempts: 5))
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    let artifact = try await advancing { try await download.value }
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.map(\.url) == [url, fresh], "the expired link is not requested again")
    await downloader.shutdown()
  }
}

extension FakeSource {
  /// Returns when the task is cancelled.
  static func never() async throws {
    await Watched(false).wait { $0 }
    try Task.checkCancellation()
  }
}
