@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Commands for the downloads that match a filter.
@Suite(.endsHangs)
struct BulkTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private func downloader(_ source: FakeSource, limit count: Int, _ other: (any Ledger)? = nil) async throws
    -> Downloader
  {
    try await Downloader(options: options) {
      source
      limit(count)
      FakeSchedulingPolicy { Rank().descending($0.priority).ascending($0.arrival) }
      FakeRetryPolicy(.giveUp)
      storage
      AnyLedger(other ?? ledger)
    }
  }

  private func ids(_ downloader: Downloader, _ filter: DownloadFilter) async throws -> [DownloadID] {
    try await downloader.statuses(DownloadQuery(filter)).map(\.id)
  }

  // MARK: The reference systems

  @Test("LYF: start all (the earliest first, the rest wait), pause all, delete all")
  func startPauseAndDeleteAll() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, limit: 3)
    try await downloader.add(contentsOf: requests(8))
    await source.held(atLeast: 3)

    #expect(try await downloader.pauseAll() == 8)
    #expect(try await downloader.counts() == [.paused: 8])
    #expect(source.readers == 0)

    #expect(try await downloader.resumeAll() == 8)
    await source.held(atLeast: 3)
    #expect(try await ids(downloader, .phases([.transferring])) == ["d0", "d1", "d2"], "the earliest run")
    #expect(try await ids(downloader, .phases([.waiting])) == ["d3", "d4", "d5", "d6", "d7"], "the rest wait")

    #expect(try await downloader.removeAll() == 8)
    #expect(try await downloader.counts() == [:])
    #expect(source.readers == 0 && storage.partials.isEmpty && storage.openPartials == 0)
    await downloader.shutdown()
  }

  // MARK: What matches

  @Test(
    "A command reaches exactly what matches, whether it waits, runs or rests", arguments: ["host", "intent", "tag"])
  func commandsReachWhatMatches(attribute: String) async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, limit: 4)
    try await downloader.add(
      contentsOf: (0..<8).map { index in
        let isOdd = index % 2 == 1
        return DownloadRequest(
          URL(string: "https://\(isOdd ? "odd" : "even").example/\(index)") ?? url, id: DownloadID("d\(index)"),
          intent: isOdd ? .silent : .userInitiated, tags: isOdd ? ["odd"] : [])
      })
    await source.held(atLeast: 4)
    let filter: DownloadFilter =
      switch attribute {
      case "host": .host("ODD.example")
      case "intent": .intent(.silent)
      default: .tag("odd")
      }
    let odd: [DownloadID] = ["d1", "d3", "d5", "d7"]
    #expect(try await downloader.pauseAll(filter) == 4)
    #expect(try await ids(downloader, .phases([.paused])) == odd)
    await source.held(atLeast: 4)
    #expect(try await ids(downloader, .phases([.transferring])) == ["d0", "d2", "d4", "d6"])
    #expect(try await downloader.counts(filter) == [.paused: 4])
    #expect(try await downloader.totals(filter).received == 20_000, "two of them ran")
    #expect(try await downloader.cancelAll(filter) == 4)
    #expect(storage.partials.keys.allSatisfy { !odd.contains($0.id) })
    #expect(try await downloader.restartAll(filter) == 4)
    #expect(try await downloader.counts(filter) == [.waiting: 4])
    #expect(try await downloader.removeAll(filter) == 4)
    #expect(try await downloader.counts() == [.transferring: 4])
    await downloader.shutdown()
  }

  enum Command: String, CaseIterable {
    case pause, cancel, restart, remove

    func give(to downloader: Downloader, _ filter: DownloadFilter) async throws -> Int {
      switch self {
      case .pause: try await downloader.pauseAll(filter)
      case .cancel: try await downloader.cancelAll(filter)
      case .restart: try await downloader.restartAll(filter)
      case .remove: try await downloader.removeAll(filter)
      }
    }
  }

  @Test("The phases of a filter are judged once: what runs next is not reached", arguments: Command.allCases)
  func phasesOfRunsAreJudgedOnce(command: Command) async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, limit: 2)
    var requests = requests(6)
    // Restarted downloads come last, so that others take their slots.
    requests[0].priority = .low
    requests[1].priority = .low
    try await downloader.add(contentsOf: Array(requests[..<2]))
    await source.held(atLeast: 2)
    try await downloader.add(contentsOf: Array(requests[2...]))
    #expect(try await command.give(to: downloader, .phases([.transferring])) == 2)
    await source.requests(atLeast: 4)
    await source.held(atLeast: 2)
    try await settle(downloader)
    #expect(try await ids(downloader, .phases([.transferring])) == ["d2", "d3"])
    #expect(source.requests.count == 4)
    await downloader.shutdown()
  }

  @Test("The phases of a filter are judged once: what goes back to waiting is not reached", arguments: Command.allCases)
  func phasesOfWaitingDownloadsAreJudgedOnce(command: Command) async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, limit: 2)
    try await downloader.add(contentsOf: requests(5))
    await source.held(atLeast: 2)
    #expect(try await command.give(to: downloader, .phases([.waiting])) == 3)
    #expect(try await ids(downloader, .phases([.transferring])) == ["d0", "d1"])
    #expect(source.readers == 2 && source.requests.count == 2, "no run was touched")
    await downloader.setSuspended(true)
    let waiting = try await ids(downloader, .phases([.waiting]))
    #expect(waiting.prefix(2) == ["d0", "d1"] && waiting.count == (command == .restart ? 5 : 2))
    await downloader.shutdown()
  }

  @Test("A download that is added while a command waits for its runs is not reached")
  func laterAdditionsAreNotReached() async throws {
    let (isHeld, calls) = (Watched(true), CallCounter())
    // A step that ignores cancellation keeps the run from ending at once.
    let step = FakePostProcessor<File, File>(name: "Slow") { file, _ in
      if calls.next() == 1 { await Task { await isHeld.wait { !$0 } }.value } else { try await FakeSource.never() }
      return file
    }
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      storage
      ledger
      step
    }
    try await downloader.add(requests(1)[0])
    await step.calls(atLeast: 1)
    let command = Task { try await downloader.pauseAll() }
    try await settle(downloader)
    try await downloader.add(requests(2)[1])
    await step.calls(atLeast: 2)
    isHeld.update { $0 = false }
    #expect(try await command.value == 1)
    #expect(try await ids(downloader, .phases([.paused])) == ["d0"])
    #expect(try await downloader.status(of: "d1")?.state.phase != .paused)
    await downloader.shutdown()
  }

  // MARK: Failures of the ledger

  @Test("If the ledger fails, a command changes nothing", arguments: Command.allCases)
  func aFailureChangesNothing(command: Command) async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, limit: 2, faulty)
    try await downloader.add(contentsOf: requests(5))
    await source.held(atLeast: 2)
    let full = DownloadError(.ledger, "the disk is full")
    // Each is made again under its number.
    faulty.fail(command == .remove ? .remove : .transition, times: 2, with: full)
    await #expect { try await command.give(to: downloader, .all) } throws: { code($0) == .ledger }
    try await settle(downloader)
    #expect(try await downloader.counts() == [.transferring: 2, .waiting: 3])
    #expect(source.readers == 2, "no run was stopped")
    #expect(try await command.give(to: downloader, .all) == 5)
    await downloader.shutdown()
  }

  // MARK: Restarting

  @Test func restartAllBeginsAtTheFirstByte() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, limit: 5)
    try await downloader.add(contentsOf: requests(5))
    await source.held(atLeast: 5)
    try await downloader.pause("d1")
    try await downloader.cancel("d2")
    #expect(try await downloader.restartAll(DownloadFilter(phases: [.transferring, .paused, .cancelled])) == 5)
    source.release()
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.finished: 5])
    #expect(source.requests.count == 10 && source.requests.allSatisfy { $0.range == nil })
    await downloader.shutdown()
  }

  /// The run had failed before it was stopped, so that stopping it has restarted nothing.
  @Test("A restart reaches a run whose failure is not saved yet", arguments: [true, false])
  func restartsReachFailedRuns(isForAll: Bool) async throws {
    let faulty = FaultyLedger(ledger)
    let other = url.appending(path: "other")
    let source = FakeSource([
      url: [
        .init(bytes).failing(after: 40_000, with: DownloadError(.network, "cut")).holding(after: 20_000), .init(bytes),
      ],
      other: [.init(bytes)],
    ])
    let downloader = try await Downloader(options: options) {
      source
      FakeRetryPolicy(.resume(after: .seconds(60)))
      storage
      faulty
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await settle(downloader)
    let next = faulty.calls.count { $0 == .exchange } + 1
    faulty.hold(.exchange, at: next)
    try await downloader.add(DownloadRequest(other, id: "b"))
    await faulty.calls(of: .exchange, atLeast: next)
    source.release()
    for await event in download.events { if case .attemptFailed = event.kind { break } }
    try await settle(downloader)
    let command = Task { isForAll ? try await downloader.restartAll() == 2 : try await downloader.restart("a") }
    try await settle(downloader)
    faulty.release()
    _ = try await command.value
    try await downloader.waitUntilIdle()
    #expect(source.requests.last { $0.id == "a" }?.range == nil)
    #expect(try await download.status.resumedFrom == 0)
    await downloader.shutdown()
  }

  // MARK: Removing

  @Test func removeAllDeletesTheFilesOfWhatMatches() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), limit: 5)
    var some = requests(4)
    for index in some.indices {
      some[index].destination.name = some[index].id.rawValue
      some[index].tags = index < 2 ? ["old"] : []
    }
    try await downloader.add(contentsOf: some)
    try await downloader.waitUntilIdle()
    #expect(try await downloader.removeAll(.tag("old"), deletingFiles: true) == 2)
    #expect(Set(storage.published.keys) == ["d2", "d3"])
    #expect(try await downloader.removeAll(.phases([.finished])) == 2)
    #expect(Set(storage.published.keys) == ["d2", "d3"], "finished files stay")
    await downloader.shutdown()
  }

  @Test func aFileThatCannotBeDeletedIsReportedAndTheRestIsDeleted() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes).holding(after: 10_000)), limit: 3)
    try await downloader.add(contentsOf: requests(3))
    while storage.partials.count < 3 { await Task.yield() }
    #expect(try await downloader.pauseAll() == 3)
    storage.fail(.removePartial, with: DownloadError(.permission, "no"))
    await #expect { try await downloader.removeAll() } throws: { code($0) == .permission }
    #expect(try await downloader.counts() == [:])
    #expect(storage.partials.count == 1)
    await downloader.shutdown()
  }

  /// A watcher of all downloads hears of a bounded number, and that others are missing.
  @Test func theRemovalOfManyIsIncomplete() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), limit: 1)
    await downloader.setSuspended(true)
    let downloads = try await downloader.add(contentsOf: requests(20_000))
    // The order of the removals is not known: of twenty, some are probably not among the first 10,000.
    var watched = stride(from: 0, to: 20_000, by: 1_000).map { downloads[$0].events.makeAsyncIterator() }
    for index in watched.indices { _ = await watched[index].next(isolation: #isolation) }
    var changes = downloader.changes(every: .zero).makeAsyncIterator()
    let first = try #require(await changes.next(isolation: #isolation))
    #expect(first.isSnapshot && !first.isComplete && first.statuses.count == 10_000)
    #expect(try await downloader.removeAll() == 20_000)
    for index in watched.indices {
      #expect(await watched[index].next(isolation: #isolation)?.kind == .removed, "a download that is watched itself")
    }
    let batch = try #require(await changes.next(isolation: #isolation))
    #expect(batch.isSnapshot && batch.isComplete && batch.statuses.isEmpty)
    await downloader.shutdown()
  }

  /// What is told of the others is bounded; a download with a watcher of its own is told to it.
  @Test func theFollowersOfADownloadHearOfACommandForMany() async throws {
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      limit(1)
      storage
      RecordingObserver()
      AnyLedger(ledger)
    }
    await downloader.setSuspended(true)
    _ = try await downloader.add(contentsOf: requests(20_000))
    let paused = try await downloader.add(DownloadRequest(url, id: "last"))
    try await paused.pause()
    var events = paused.events.makeAsyncIterator()
    #expect(await events.next(isolation: #isolation)?.kind == .state(.paused))
    #expect(try await downloader.cancelAll() == 20_001)
    #expect(await events.next(isolation: #isolation)?.kind == .state(.cancelled))
    await downloader.shutdown()
  }

  /// The watcher came while the record could still be read, after the ledger had told of the removal.
  @Test func aLateWatcherHearsOfTheRemoval() async throws {
    let setup = try await StateModel.Setup(limit: 1)
    let session = try await setup.source.start(in: setup.pipeline.sourceContext)
    var state = EngineState(setup.pipeline, sessions: [session], setup.context)
    let removals = RemovedDownloads(of: state.hub)
    for record in setup.records { removals.note(record, hasFiles: false) }
    let late = state.hub.events(of: "b")
    var changes = Changes()
    changes.removed = [removals.summary]
    state.note(changes)
    let told = state.takeActions().compactMap {
      if case .publish(.removalOf(let id)) = $0 { id } else { nil }
    }
    #expect(told == ["b"])
    withExtendedLifetime(late) {}
  }
}
