@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Requests that change while their downloads run: work, file and record agree, whenever the change comes.
@Suite(.endsHangs)
struct ChangedWhileRunningTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let fresh = URL(string: "https://cdn.example.net/file.bin?key=2")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private let retry = Retry(.constant(.zero, attempts: 3))

  private func request(named name: String) -> DownloadRequest {
    DownloadRequest(url, id: "a", destination: .init(name: name))
  }

  private func record() async throws -> DownloadRecord {
    let store = try await ledger.open()
    let record = try #require(try await store.record("a"))
    try await store.close()
    return record
  }

  /// Ends a downloader like a process that is killed: nothing more of it reaches the ledger, and what it held is
  /// reclaimed.
  private func kill(_ downloader: Downloader) async throws {
    try await downloader.engine.store.close()
    await downloader.shutdown()
  }

  // MARK: The slot

  @Test("A run that is stopped for a change goes on in its slot, before others, and counts no attempt")
  func slot() async throws {
    let held = FakeSource.Script(bytes).holding(after: 10_000)
    let source = FakeSource([url: [held], fresh: [held]])
    let other = URL(string: "https://example.org/other.bin")!
    source.script(other, .init(bytes))
    let mirrors = (1...3).compactMap { URL(string: "https://mirror.example.org/\($0)") }
    for mirror in mirrors { source.script(mirror, .init(bytes)) }
    let downloader = try await Downloader(options: options) {
      source
      limit(1)
      FakeSchedulingPolicy { Rank().descending($0.priority).ascending($0.arrival) }
      storage
      ledger
    }
    let first = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let second = try await downloader.add(DownloadRequest(other, id: "b", priority: .high))
    for round in 1...3 {
      try await first.update { $0.mirrors = [mirrors[round - 1]] }
      await asked(source, atLeast: round + 1)
    }
    try await first.update { [fresh] in $0.url = fresh }
    await asked(source, atLeast: 5)
    #expect(try await first.status.attempts == 1)
    #expect(!source.requests.map(\.url).contains(other))
    source.release()
    #expect(storage.bytes(of: try await first.value) == bytes)
    _ = try await second.value
    await downloader.shutdown()
  }

  @Test("A download that was started by hand beyond a limit goes on beyond it after a change")
  func slotByHand() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await Downloader(options: options) {
      source
      limit(1)
      storage
      ledger
    }
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let second = try await downloader.add(DownloadRequest(url, id: "b"))
    try await downloader.add(DownloadRequest(url, id: "c"))
    #expect(try await downloader.start("b"))
    await source.held(atLeast: 2)
    try await second.update { [fresh] in $0.url = fresh }
    await source.requests(atLeast: 3)
    #expect(source.requests.map(\.id) == ["a", "b", "b"] && source.requests.last?.url == fresh)
    source.release()
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.finished: 3])
    await downloader.shutdown()
  }

  private func asked(_ source: FakeSource, atLeast count: Int) async {
    await source.requests(atLeast: count)
    await source.held(atLeast: 1)
  }

  @Test("A restart after a change is one: the file is fetched from its beginning")
  func restartAfterAChange() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await download.update { $0.mirrors = [URL(string: "https://mirror.example.org/1")!] }
    try await download.restart()
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(try await download.status.attempts == 1)
    #expect(source.requests.last?.range == nil)
    await downloader.shutdown()
  }

  // MARK: Fresh links

  @Test("What a run has done for its fresh link is not repeated after the end of its process")
  func workForAFreshLink() async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let storage = FakeStorage(workspaces: folder.path)
    let source = FakeSource([url: [.status(403)], fresh: [.init(bytes)]])
    let reverse = FakePostProcessor<File, File>.bytes(name: "Reverse") { $0.reversed() }
    let calls = CallCounter()
    let hold = FakePostProcessor<File, File>(name: "Hold") { file, _ in
      if calls.next() == 1 { try await FakeSource.never() }
      return file
    }
    func start() async throws -> Downloader {
      try await Downloader(options: options) {
        source
        retry
        FakeLinkRefresher { [fresh] _ in FreshLink(fresh) }
        storage
        ledger
        reverse
        hold
      }
    }
    let first = try await start()
    try await first.add(DownloadRequest(url, id: "a"))
    await hold.calls(atLeast: 1)
    try await kill(first)
    let second = try await start()
    let download = try #require(try await second.download("a"))
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes.reversed())
    #expect(source.requests.map(\.url) == [url, fresh])
    #expect(reverse.inputs.count == 1)
    await second.shutdown()
  }

  @Test("After the end of a process that has refreshed the link of a published file, its server is still asked")
  func questionWithAFreshLink() async throws {
    let faulty = FaultyLedger(ledger)
    // Of the same file: another one's validator would not count.
    let fresh = URL(string: "https://example.org/file.bin?key=2")!
    let source = FakeSource([url: [.init(bytes), .status(403)], fresh: [.init(bytes)]])
    let refresher = FakeLinkRefresher { _ in
      // The fresh link is in the ledger by then.
      faulty.hold(.save, at: faulty.calls.count { $0 == .save } + 1)
      return FreshLink(fresh)
    }
    func start(_ ledger: any Ledger) async throws -> Downloader {
      try await Downloader(options: options) {
        source
        retry
        refresher
        storage
        AnyLedger(ledger)
      }
    }
    let request = request(named: "film").with(\.refresh, .ifChanged)
    let first = try await start(faulty)
    _ = try await first.add(request).value
    try await first.add(request)
    await faulty.held(atLeast: 1)
    try await kill(first)
    #expect(try await record().request.url == fresh)
    let second = try await start(ledger)
    let download = try #require(try await second.download("a"))
    _ = try await download.value
    #expect(source.requests.map(\.url) == [url, url, fresh])
    #expect(source.requests.last?.condition != nil)
    #expect(try await download.status.bytesFetched == 100_000, "the file has not changed")
    await second.shutdown()
  }

  @Test("A fresh link does not hide that another process has changed the request meanwhile")
  func changeByOthersDuringARefresh() async throws {
    let opened = OpenLedger(ledger)
    let source = FakeSource([url: [.status(403)], fresh: [.init(bytes).holding(after: 40_000)]])
    let downloader = try await Downloader(options: options) {
      source
      retry
      FakeLinkRefresher { [fresh] _ in
        try await opened.change("a") { $0.request.expectedSize = .known(100_000) }
        return FreshLink(fresh)
      }
      storage
      opened
    }
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let record = try await record()
    #expect(record.request.url == fresh && record.isOutdated)
    await downloader.shutdown()
  }

  @Test("A run is not stopped by its own fresh link", arguments: [true, false])
  func ownFreshLink(isReadBefore: Bool) async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource([url: [.status(403)], fresh: [.init(bytes).holding(after: 40_000)]])
    let (isAsked, mayAnswer) = (Watched(false), Watched(false))
    let downloader = try await Downloader(options: options) {
      source
      retry
      FakeLinkRefresher { [fresh] _ in
        isAsked.update { $0 = true }
        await mayAnswer.wait { $0 }
        return FreshLink(fresh)
      }
      storage
      faulty
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await isAsked.wait { $0 }
    let run = try #require(await downloader.engine.state.slots.runs["a"])
    let next = faulty.calls.count { $0 == .records } + 1
    if isReadBefore {
      // A turn reads the expired link, and compares it when the run has the fresh one.
      faulty.hold(.records, at: next, .after)
      await downloader.engine.noteChangesByOthers()
      await faulty.held(atLeast: 1)
      mayAnswer.update { $0 = true }
      await source.held(atLeast: 1)
      faulty.release()
    } else {
      // A turn reads the fresh link before the run knows that the ledger has it.
      faulty.hold(.update, at: faulty.calls.count { $0 == .update } + 1, .after)
      mayAnswer.update { $0 = true }
      await faulty.held(atLeast: 1)
      await downloader.engine.noteChangesByOthers()
      await faulty.calls(of: .records, atLeast: next)
    }
    try await settle(downloader)
    #expect(run.stopReason == nil)
    faulty.release()
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.map(\.url) == [url, fresh])
    await downloader.shutdown()
  }

  // MARK: Destinations

  /// How the destination changes.
  enum Way: CaseIterable, Sendable {
    case add, otherProcess
  }

  private func give(
    _ name: String, _ way: Way, to downloader: Downloader, _ opened: OpenLedger
  ) async throws {
    switch way {
    case .add: try await downloader.add(request(named: name))
    case .otherProcess: try await opened.change("a") { $0.request.destination.name = name }
    }
  }

  /// Checks that the record names the place of the file, and that there is no other file.
  private func expectAgreement(_ downloader: Downloader) async throws {
    try await downloader.waitUntilIdle()
    let record = try await record()
    let name = try #require(record.steps.artifact?.name)
    #expect(record.phase == .finished)
    #expect(record.request.destination.name == name)
    #expect(storage.published.keys.sorted() == [name])
    #expect(try await downloader.status(of: "a")?.request.destination.name == name)
  }

  @Test("A destination that is given during the transfer is that of the file and of the record")
  func inTime() async throws {
    let opened = OpenLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, ledger: opened)
    let download = try await downloader.add(request(named: "old"))
    await source.held(atLeast: 1)
    try await give("new", .add, to: downloader, opened)
    source.release()
    #expect(try await download.value.name == "new")
    try await expectAgreement(downloader)
    await downloader.shutdown()
  }

  @Test("A destination that is given while the file is published is not in the record", arguments: Way.allCases)
  func whilePublishing(_ way: Way) async throws {
    let (probe, opened) = (ProbeStorage(storage), OpenLedger(ledger))
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      probe
      opened
    }
    probe.hold(.publish)
    let download = try await downloader.add(request(named: "old"))
    await probe.held(.publish)
    try await give("new", way, to: downloader, opened)
    probe.release()
    #expect(try await download.value.name == "old")
    try await expectAgreement(downloader)
    // As for each finished download.
    try await downloader.add(request(named: "new"))
    try await expectAgreement(downloader)
    await downloader.shutdown()
  }

  @Test("A destination that is given after a step has placed the file is not in the record", arguments: Way.allCases)
  func betweenSteps(_ way: Way) async throws {
    let opened = OpenLedger(ledger)
    let isHeld = Watched(true)
    let place = FakePostProcessor<File, File>(name: "Place", outputFolders: [storage.root]) {
      [storage] file, context in
      let placed = try await storage.publish(file.artifact, of: nil, at: context.request.destination, in: context)
      return File(placed)
    }
    let hold = FakePostProcessor<File, File>(name: "Hold") { file, _ in
      await isHeld.wait { !$0 }
      return file
    }
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      storage
      opened
      place
      hold
    }
    let download = try await downloader.add(request(named: "old"))
    await hold.calls(atLeast: 1)
    try await give("new", way, to: downloader, opened)
    isHeld.update { $0 = false }
    #expect(try await download.value.name == "old")
    try await expectAgreement(downloader)
    await downloader.shutdown()
  }

  @Test(
    "A change of the destination that the ledger has failed to confirm leaves file and record in agreement",
    arguments: [FaultyLedger.Moment.before, .after], [true, false])
  func failedChange(_ moment: FaultyLedger.Moment, isPublishedBefore: Bool) async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, ledger: faulty)
    let download = try await downloader.add(request(named: "old"))
    await source.held(atLeast: 1)
    let next = faulty.calls.count { $0 == .update } + 1
    faulty.fail(
      .update, at: next, times: 2, moment, with: DownloadError(.ledger, "the connection to the database was lost"))
    faulty.hold(.update, at: next, moment)
    let change = Task { try await download.update { $0.destination.name = "new" } }
    await faulty.held(atLeast: 1)
    if isPublishedBefore {
      source.release()
      while storage.published.isEmpty { await Task.yield() }
    }
    faulty.release()
    await #expect(throws: DownloadError.self) { try await change.value }
    source.release()
    _ = try await download.value
    try await expectAgreement(downloader)
    await downloader.shutdown()
  }
}
