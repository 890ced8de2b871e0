@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Commands whose effect, or the effect of what came before them, the ledger does not confirm.
@Suite(.endsHangs)
struct LostAnswerTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private let failure = DownloadError(.ledger, "the connection to the database was lost")

  private func next(_ operation: FaultyLedger.Operation, _ faulty: FaultyLedger) -> Int {
    faulty.calls.count { $0 == operation } + 1
  }

  private func phase(_ id: DownloadID, _ downloader: Downloader) async throws -> DownloadState.Phase? {
    try await downloader.status(of: id)?.state.phase
  }

  @Test("What was leased by an exchange whose answer was lost is paused with all others")
  func pausesWhatWasLeased() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, ledger: faulty)
    faulty.fail(.exchange, at: next(.exchange, faulty), .after, with: failure)
    try await downloader.add(contentsOf: requests(2))
    // The ledger rests after the failure, until this second is over.
    await time.sleeper(dueIn: .seconds(1))
    #expect(try await downloader.counts() == [.transferring: 2])
    #expect(try await downloader.pauseAll() == 2)
    #expect(try await downloader.counts() == [.paused: 2])
    #expect(try await downloader.resume("d1"))
    try await advancing { await source.held(atLeast: 1) }
    source.release()
    try await advancing { try await downloader.waitUntilIdle() }
    #expect(try await downloader.counts() == [.paused: 1, .finished: 1])
    await downloader.shutdown()
  }

  @Test("What a dead process held is paused with all others, although it could not be reclaimed at the start")
  func pausesWhatCouldNotBeReclaimed() async throws {
    var dead: (any LedgerStore)? = try await ledger.open()
    let additions = requests(2).enumerated().map { LedgerAddition(request: $1, arrival: Int64($0)) }
    _ = try await dead?.add(additions, at: time.date)
    let lease = LeaseRequest(now: time.date, until: time.date.addingTimeInterval(60)) { _ in .take }
    #expect(try await dead?.lease(lease).count == 2)
    dead = nil
    let faulty = FaultyLedger(ledger)
    faulty.fail(.reclaim, with: failure)
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), ledger: faulty)
    await faulty.calls(of: .reclaim, atLeast: 1)
    #expect(try await downloader.pauseAll() == 2)
    #expect(try await downloader.counts() == [.paused: 2])
    await downloader.shutdown()
  }

  @Test("A removal is true of a download whose outcome is on its way to the ledger")
  func removesWhatHasEnded() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, ledger: faulty)
    try await downloader.add(contentsOf: requests(1))
    await source.held(atLeast: 1)
    faulty.hold(.exchange, at: next(.exchange, faulty))
    source.release()
    await faulty.held(atLeast: 1)
    let removal = Task { try await downloader.remove("d0", deletingFile: true) }
    try await settle(downloader)
    faulty.release()
    #expect(try await removal.value)
    #expect(try await downloader.status(of: "d0") == nil)
    #expect(storage.published.keys.isEmpty)
    await downloader.shutdown()
  }

  @Test("A removal is true of a download whose next run has begun before the removal takes its turn")
  func removesTheNextRun() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource([
      url: [
        .init(bytes).failing(after: 10_000, with: DownloadError(.network, "cut")), .init(bytes).holding(after: 20_000),
      ]
    ])
    let retry = FakeRetryPolicy { _ in .resume(after: .zero) }
    let downloader = try await downloader(source, retry: retry, ledger: faulty)
    faulty.hold(.exchange, at: 3)
    try await downloader.add(DownloadRequest(url, id: "d0"))
    await faulty.held(atLeast: 1)
    let removal = Task { try await downloader.remove("d0") }
    try await settle(downloader)
    faulty.release()
    #expect(try await removal.value)
    #expect(try await downloader.status(of: "d0") == nil)
    await downloader.shutdown()
  }

  @Test("A removal of a running download is true although its answer was lost", arguments: [false, true])
  func removalWithoutAnswer(isForAll: Bool) async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let observer = RecordingObserver()
    let downloader = try await downloader(source, observers: [observer], ledger: faulty)
    try await downloader.add(contentsOf: requests(1))
    await source.held(atLeast: 1)
    // A command for many removes first what does not run.
    faulty.fail(.remove, at: next(.remove, faulty) + (isForAll ? 1 : 0), .after, with: failure)
    if isForAll {
      #expect(try await downloader.removeAll() == 1)
    } else {
      #expect(try await downloader.remove("d0"))
    }
    #expect(try await downloader.counts().isEmpty)
    #expect(storage.partials.keys.isEmpty)
    await downloader.shutdown()
    #expect(observer.events(of: "d0").last == .removed)
  }

  @Test("A removal that throws although it has taken effect ends the events of the download")
  func removalThatThrows() async throws {
    let faulty = FaultyLedger(ledger)
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), ledger: faulty)
    await downloader.setSuspended(true)
    let download = try await downloader.add(contentsOf: requests(1))[0]
    let watching = Task { for await _ in download.events {} }
    try await settle(downloader)
    let first = next(.remove, faulty)
    faulty.fail(.remove, at: first, .after, with: failure)
    faulty.fail(.remove, at: first + 1, with: failure)
    await #expect { try await downloader.remove("d0") } throws: { code($0) == .ledger }
    try await advancing { await watching.value }
    await downloader.shutdown()
  }

  @Test("What a removal has removed is deleted although the ledger fails before the removal is over")
  func removalThatFailsLater() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, ledger: faulty)
    try await downloader.add(contentsOf: requests(2))
    await source.held(atLeast: 2)
    #expect(try await downloader.pause("d0"))
    faulty.fail(.remove, at: next(.remove, faulty) + 1, times: 2, with: failure)
    await #expect { try await downloader.removeAll() } throws: { code($0) == .ledger }
    while await downloader.bookkeeping["errands"] != 0 { await Task.yield() }
    #expect(storage.partials.isEmpty)
    #expect(try await downloader.counts().values.reduce(0, +) == 1)
    await downloader.shutdown()
  }

  @Test("Watchers hear of a cancellation although the ledger fails after it")
  func cancellationIsTold() async throws {
    let faulty = FaultyLedger(ledger)
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), ledger: faulty)
    await downloader.setSuspended(true)
    let download = try await downloader.add(contentsOf: requests(1))[0]
    let watching = Task { () -> Bool in
      for await event in download.events where event.kind == .state(.cancelled) { return true }
      return false
    }
    try await settle(downloader)
    // The command reads the record before it changes it, and then to tell its watchers.
    faulty.fail(.record, at: next(.record, faulty) + 1, times: 2, with: failure)
    #expect(try await downloader.cancel("d0"))
    let isTold = try await advancing { await watching.value }
    #expect(isTold)
    await downloader.shutdown()
  }

  @Test("A command whose answer was lost is made again under its number, and has its first answer")
  func firstAnswers() async throws {
    let faulty = FaultyLedger(ledger)
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), ledger: faulty)
    await downloader.setSuspended(true)
    func loseNext(_ operation: FaultyLedger.Operation) {
      faulty.fail(operation, at: next(operation, faulty), .after, with: failure)
    }
    loseNext(.add)
    #expect(try await downloader.add(contentsOf: requests(2)).map(\.isNew) == [true, true])
    loseNext(.updateAll)
    #expect(try await downloader.updateAll { $0.priority = .high } == 2)
    loseNext(.update)
    #expect(try await downloader.update("d0") { $0.metadata["a"] = "b" }.request.metadata == ["a": "b"])
    loseNext(.transition)
    #expect(try await downloader.pauseAll() == 2)
    loseNext(.transition)
    #expect(try await downloader.resume("d0"))
    #expect(try await downloader.counts() == [.paused: 1, .waiting: 1])
    await downloader.shutdown()
  }

  @Test("Watchers hear of the cancellation of all downloads although its answers were lost")
  func cancellationOfAllIsTold() async throws {
    let faulty = FaultyLedger(ledger)
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), ledger: faulty)
    await downloader.setSuspended(true)
    let download = try await downloader.add(contentsOf: requests(1))[0]
    let changes = downloader.changes()
    let reading = Task { () -> Bool in
      for await batch in changes where batch.isSnapshot && batch.statuses.first?.state == .cancelled { return true }
      return false
    }
    let watching = Task { () -> Bool in
      for await event in download.events where event.kind == .state(.cancelled) { return true }
      return false
    }
    try await settle(downloader)
    faulty.fail(.transition, at: next(.transition, faulty), times: 2, .after, with: failure)
    await #expect { try await downloader.cancelAll() } throws: { code($0) == .ledger }
    #expect(try await advancing { await watching.value })
    #expect(try await advancing { await reading.value })
    await downloader.shutdown()
  }

  @Test("A download that was removed without an answer does not wait for the network any longer")
  func removedWithoutAnswer() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .failingToOpen(DownloadError(.offline, "no route")))
    let downloader = try await downloader(
      source, retry: FakeRetryPolicy { _ in .wait(for: .network, atMost: .seconds(30)) }, ledger: faulty)
    try await downloader.add(contentsOf: requests(1))
    await time.sleeper(dueIn: .seconds(30))
    try await settle(downloader)
    #expect(await downloader.bookkeeping["waits"] == 1)
    faulty.fail(.remove, at: next(.remove, faulty), .after, with: failure)
    #expect(try await downloader.remove("d0"))
    #expect(await downloader.bookkeeping["waits"] == 0)
    await downloader.shutdown()
  }

  @Test("The ledger learns of a rename as soon as it answers again")
  func renameIsFinished() async throws {
    let faulty = FaultyLedger(ledger)
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), ledger: faulty)
    _ = try await downloader.add(contentsOf: requests(1))[0].value
    // Two updates note what is about to be moved, and the third one that it has been moved.
    faulty.fail(.update, at: next(.update, faulty) + 2, with: failure)
    await #expect { try await downloader.rename("d0", to: "new") } throws: { code($0) == .ledger }
    #expect(storage.published.keys.sorted() == ["new"])
    try await advancing {
      while try await downloader.status(of: "d0")?.name != "new" { await Task.yield() }
    }
    await downloader.shutdown()
  }

  @Test("An interrupted rename is finished although the ledger fails at the next start")
  func renameIsFinishedLater() async throws {
    let faulty = FaultyLedger(ledger)
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), ledger: faulty)
    _ = try await downloader.add(contentsOf: requests(1))[0].value
    faulty.fail(.update, at: next(.update, faulty) + 2, with: failure)
    await #expect { try await downloader.rename("d0", to: "new") } throws: { code($0) == .ledger }
    await downloader.shutdown()
    let failing = FaultyLedger(ledger)
    failing.fail(.unsettledMoves, with: failure)
    let next = try await self.downloader(FakeSource(everyURL: .init(bytes)), ledger: failing)
    try await advancing { while try await next.status(of: "d0")?.name != "new" { await Task.yield() } }
    await next.shutdown()
  }
}
