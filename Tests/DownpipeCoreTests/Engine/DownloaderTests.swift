import DownpipeCore
import DownpipeTesting
import Foundation
import Testing

/// The engine with fakes at every side: no network, no disk, no time but the test's own.
@Suite(.timeLimit(.minutes(1)))
struct DownloaderTests {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  var options: DownloaderOptions {
    DownloaderOptions(time: time, random: { 0.5 }, resumeValidation: .overlap(1000))
  }

  func downloader(
    _ source: FakeSource, gates: [FakeGate] = [], observers: [RecordingObserver] = [],
    retry: FakeRetryPolicy = FakeRetryPolicy(.giveUp), ledger: (any Ledger)? = nil
  ) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      for gate in gates { gate }
      for observer in observers { observer }
      retry
      storage
      AnyLedger(ledger ?? self.ledger)
    }
  }

  // MARK: The straight way

  @Test func downloadsAndPublishes() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    let status = try await download.status
    #expect(status.state == .finished(artifact))
    #expect(status.attempts == 1)
    #expect(status.bytesFetched == 100_000)
    #expect(status.progress.fraction == 1)
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
    #expect(source.stops == 1)
    #expect(storage.openPartials == 0)
    #expect(storage.partials.isEmpty)
  }

  @Test func addingAgainWhileItRunsUpdatesIt() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 10_000)]])
    let downloader = try await downloader(source)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let again = try await downloader.add(DownloadRequest(url, id: "a", priority: .high, metadata: ["who": "me"]))
    #expect(!again.isNew)
    let status = try await again.status
    #expect(status.request.priority == .high)
    #expect(status.request.metadata == ["who": "me"])
    source.release()
    _ = try await again.value
    #expect(source.requests.count == 1)
    await downloader.shutdown()
  }

  @Test func aFinishedDownloadIsNotFetchedAgainUnlessItsFileIsGone() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(source.requests.count == 1)
    try await storage.remove(artifact)
    let again = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: again) == bytes)
    #expect(source.requests.count == 2)
    await downloader.shutdown()
  }

  @Test func badRequestsAreRefusedBeforeAnythingIsStored() async throws {
    let downloader = try await downloader(FakeSource([url: [.init(bytes)]]))
    let unknown = try DownloadRequest("gopher://example.org/", id: "g")
    await #expect { try await downloader.add(unknown) } throws: { ($0 as? DownloadError)?.code == .unsupportedURL }
    let header = DownloadRequest(url, headers: ["X": "a\r\nHost: evil"])
    await #expect { try await downloader.add(header) } throws: { ($0 as? DownloadError)?.code == .invalidRequest }
    let nameless = DownloadRequest(url, id: "")
    await #expect { try await downloader.add(nameless) } throws: { ($0 as? DownloadError)?.code == .invalidRequest }
    await #expect { try await downloader.pause("nobody") } throws: {
      ($0 as? DownloadError)?.code == .invalidRequest
    }
    #expect(try await downloader.statuses().isEmpty)
    await downloader.shutdown()
  }

  // MARK: Failing and going on

  @Test func aBrokenBodyGoesOnWhereItBroke() async throws {
    let broken = DownloadError(.network, "cut")
    let source = FakeSource([url: [.init(bytes).failing(after: 40_000, with: broken), .init(bytes)]])
    let retry = FakeRetryPolicy(.resume(after: .seconds(3)))
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await time.sleeper(dueIn: .seconds(3))
    let waiting = try await download.status
    guard case .waiting(.retry(_, let error)) = waiting.state else {
      Issue.record("\(waiting.state)")
      return
    }
    #expect(error.code == .network)
    #expect(error.stage == "FakeSource")
    #expect(error.attempt == 1)
    time.advance(by: .seconds(3))
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.count == 2)
    #expect(source.requests.last?.range == RequestedRange(from: 39_000))
    #expect(source.requests.last?.validator?.ifRange != nil)
    let status = try await download.status
    #expect(status.resumedFrom == 40_000)
    #expect(status.attempts == 2)
    #expect(status.bytesFetched == 101_000)
    await downloader.shutdown()
  }

  @Test func withoutAValidatorTheOverlapIsCompared() async throws {
    let plain = FakeSource.Script(bytes).with { $0.validator = nil }
    let source = FakeSource([url: [plain.failing(after: 40_000, with: DownloadError(.network, "cut")), plain]])
    let downloader = try await downloader(source, retry: FakeRetryPolicy(.resume(after: .zero)))
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.last?.range == RequestedRange(from: 39_000))
    await downloader.shutdown()
  }

  @Test("a changed file is never glued to the old bytes", arguments: [true, false])
  func changedContent(hasValidator: Bool) async throws {
    let other = DownloadFixtures.pattern(size: 100_000, seed: 99)
    func script(_ bytes: [UInt8]) -> FakeSource.Script {
      FakeSource.Script(bytes).with { if !hasValidator { $0.validator = nil } }
    }
    let source = FakeSource([
      url: [script(bytes).failing(after: 40_000, with: DownloadError(.network, "cut")), script(other)]
    ])
    let retry = FakeRetryPolicy { failure in
      failure.error.code == .contentChanged ? .restart(after: .zero) : .resume(after: .zero)
    }
    let downloader = try await downloader(source, retry: retry)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == other)
    await downloader.shutdown()
  }

  @Test func aServerThatLiesAboutLengthIsNotBelieved() async throws {
    let short = FakeSource.Script(bytes).with { $0.claimedLength = .known(100_001) }
    let source = FakeSource([url: [short]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .lengthMismatch }
    let long = FakeSource.Script(bytes).with { $0.claimedLength = .known(99_999) }
    source.script(url, long)
    let second = try await downloader.add(DownloadRequest(url, id: "b"))
    await #expect { try await second.value } throws: { ($0 as? DownloadError)?.code == .lengthMismatch }
    #expect(storage.published.isEmpty)
    await downloader.shutdown()
  }

  @Test func tooLargeStopsBeforeTheDiskIsFull() async throws {
    let source = FakeSource([url: [FakeSource.Script(bytes).with { $0.announcesLength = false }]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a", maximumSize: 50_000))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .tooLarge }
    #expect(storage.partials.values.allSatisfy { $0.count <= 50_000 })
    await downloader.shutdown()
  }

  @Test func mirrorsAreAskedWhenTheFirstPlaceFailsForGood() async throws {
    let mirror = URL(string: "https://mirror.example.net/file.bin")!
    let source = FakeSource([url: [.status(404)], mirror: [.init(bytes)]])
    let downloader = try await downloader(source)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror])).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.map(\.url) == [url, mirror])
    await downloader.shutdown()
  }

  @Test func aFullDiskKeepsWhatIsThere() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    storage.fail(.write, at: 4, times: 1, with: DownloadError(.noSpace, "full"))
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .noSpace }
    try await download.resume()
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.last?.range == RequestedRange(from: 3 * 16_384 - 1000))
    await downloader.shutdown()
  }

  // MARK: Control

  @Test func pausingFreesThePlaceAndKeepsTheBytes() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000), .init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    #expect(try await download.pause())
    #expect(try await download.status.state == .paused)
    #expect(source.readers == 0)
    #expect(storage.openPartials == 0)
    #expect(try await download.pause() == false)
    try await downloader.waitUntilIdle()
    #expect(try await download.resume())
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(try await download.status.resumedFrom == 40_000)
    await downloader.shutdown()
  }

  @Test func cancellingRemovesTheBytes() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000), .init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let value = Task { try await download.value }
    #expect(try await download.cancel())
    await #expect { try await value.value } throws: { ($0 as? DownloadError)?.code == .cancelled }
    #expect(storage.partials.isEmpty)
    #expect(try await download.status.progress.received == 0)
    #expect(try await download.resume())
    _ = try await download.value
    #expect(source.requests.last?.range == nil)
    await downloader.shutdown()
  }

  @Test func removingAndAddingTheSameIdAgainAndAgain() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let downloader = try await downloader(source)
    for round in 1...5 {
      let download = try await downloader.add(DownloadRequest(url, id: "a"))
      #expect(download.isNew)
      await source.requests(atLeast: round)
      await source.held(atLeast: 1)
      #expect(try await download.remove())
      #expect(storage.partials.isEmpty)
      #expect(try await downloader.status(of: "a") == nil)
    }
    source.release()
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    await downloader.shutdown()
  }

  @Test func bulkOperationsReachWhatWaitsAndWhatRuns() async throws {
    let urls = (0..<20).map { URL(string: "https://host\($0).example/f")! }
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    try await downloader.add(
      contentsOf: urls.enumerated().map { index, url in
        DownloadRequest(url, id: DownloadID("d\(index)"), tags: index < 10 ? ["first"] : [])
      })
    await source.held(atLeast: 5)
    #expect(try await downloader.pauseAll(tag: "first") == 10)
    #expect(try await downloader.counts(tag: "first") == [.paused: 10])
    await source.held(atLeast: 5)
    #expect(try await downloader.pauseAll() == 10)
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.paused: 20])
    #expect(try await downloader.resumeAll(tag: "first") == 10)
    #expect(try await downloader.cancelAll(tag: "first") == 10)
    #expect(
      storage.partials.keys.allSatisfy { key in urls.indices.dropFirst(10).contains { "d\($0)" == key.id.rawValue } })
    #expect(try await downloader.removeAll() == 20)
    #expect(try await downloader.counts().values.reduce(0, +) == 0)
    #expect(storage.partials.isEmpty)
    await downloader.shutdown()
  }

  // MARK: Gates

  @Test func aClosedGateSaysWhyAndOpeningLetsGo() async throws {
    let gate = FakeGate(.closed("Radio: off"))
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source, gates: [gate])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await gate.watchers(atLeast: 1)
    #expect(try await download.status.state == .waiting(.gate("Radio: off")))
    gate.open()
    _ = try await download.value
    await downloader.shutdown()
    #expect(gate.watchers == 0)
  }

  @Test func closingAGateSuspendsWhatRuns() async throws {
    let gate = FakeGate()
    let observer = RecordingObserver()
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000), .init(bytes)]])
    let downloader = try await downloader(source, gates: [gate], observers: [observer])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    gate.close("cellular")
    let suspended = await observer.wait { events in
      events.contains { $0.kind == .state(.waiting(.gate("FakeGate: cellular"))) }
    }
    #expect(suspended)
    #expect(storage.partials.values.map(\.count) == [40_000])
    gate.open()
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(try await download.status.resumedFrom == 40_000)
    await downloader.shutdown()
  }

  @Test func aGateThatBreaksDoesNotVeto() async throws {
    let gate = FakeGate(.closed("?"))
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source, gates: [gate])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await gate.watchers(atLeast: 1)
    gate.endWatching(throwing: DownloadError(.network, "no longer knows"))
    _ = try await download.value
    await downloader.shutdown()
  }

  @Test func aGateIsReplacedAndRemovedWhileRunning() async throws {
    let gate = FakeGate(.closed("no"), name: "WiFi")
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source, gates: [gate])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await gate.watchers(atLeast: 1)
    await downloader.replace(FakeGate(.closed("still no"), name: "WiFi"))
    #expect(await downloader.pipeline.gates.count == 1)
    #expect(await downloader.removeGate(named: "WiFi"))
    _ = try await download.value
    await downloader.shutdown()
  }

  // MARK: Order and limits

  @Test func theBestRankGoesFirstWithinLimits() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let gate = FakeGate(.closed("not yet"))
    let downloader = try await Downloader(options: options) {
      source
      gate
      FakeAdmissionPolicy(maximumConcurrent: 1) { _, running in running.total < 1 ? .admitted : .full("one") }
      FakeSchedulingPolicy { Rank().descending($0.priority).ascending($0.arrival) }
      storage
      ledger
    }
    let names: [(String, Priority)] = [("low", .low), ("first", .normal), ("second", .normal), ("high", .high)]
    for (name, priority) in names {
      let url = try #require(URL(string: "https://example.org/\(name)"))
      try await downloader.add(DownloadRequest(url, id: DownloadID(name), priority: priority))
    }
    await gate.watchers(atLeast: 1)
    gate.open()
    try await downloader.waitUntilIdle()
    #expect(source.requests.map(\.id) == ["high", "first", "second", "low"])
    #expect(source.starts == [SourceContext(concurrentDownloads: 1, downloadsPerHost: 1)])
    await downloader.shutdown()
  }

  @Test func aSmallerLimitSendsRunningDownloadsBack() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    func limit(_ count: Int) -> FakeAdmissionPolicy {
      FakeAdmissionPolicy { _, running in running.total < count ? .admitted : .full("\(count) of \(count)") }
    }
    let downloader = try await Downloader(options: options) {
      source
      limit(5)
      storage
      ledger
    }
    let requests = (0..<5).map { DownloadRequest(url, id: DownloadID("d\($0)")) }
    try await downloader.add(contentsOf: requests)
    await source.held(atLeast: 5)
    await downloader.replace(limit(3))
    var settled = false
    while !settled {
      let states = try await downloader.statuses().map(\.state)
      settled =
        states.filter { $0 == .transferring }.count == 3
        && states.filter { $0 == .waiting(.limit("3 of 3")) }.count == 2
      await Task.yield()
    }
    source.release()
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.finished: 5])
    await downloader.shutdown()
  }

  // MARK: Watching

  @Test func lateSubscribersGetThePresentStateFirst() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    var iterator = download.events.makeAsyncIterator()
    #expect(await iterator.next()?.kind == .state(.transferring))
    time.advance(by: .milliseconds(100))
    source.release()
    var last: DownloadEvent?
    while let event = await iterator.next() { last = event }
    guard case .state(.finished) = last?.kind else {
      Issue.record("the last event was \(String(describing: last))")
      return
    }
    var late = download.events.makeAsyncIterator()
    guard case .state(.finished) = await late.next()?.kind else {
      Issue.record("no state for a late subscriber")
      return
    }
    #expect(await late.next() == nil)
    await downloader.shutdown()
  }

  @Test func progressIsCoalesced() async throws {
    let observer = RecordingObserver()
    let source = FakeSource([url: [.init(bytes).holding(after: 50_000).with { $0.chunkSize = 10 }]])
    let downloader = try await downloader(source, observers: [observer])
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    await time.sleeper(dueIn: .milliseconds(100))
    time.advance(by: .milliseconds(100))
    _ = await observer.wait { events in
      events.contains { if case .progress(let progress) = $0.kind { progress.received == 50_000 } else { false } }
    }
    source.release()
    _ = await observer.wait(for: "a", toBe: .finished)
    let updates = observer.events.filter { if case .progress = $0.kind { true } else { false } }
    #expect(updates.count <= 2)
    await downloader.shutdown()
    #expect(observer.hasEnded)
  }

  @Test func changesComeInBatchesWithTheLatestStatus() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(source)
    var changes = downloader.changes(every: .zero).makeAsyncIterator()
    try await downloader.add(contentsOf: (0..<50).map { DownloadRequest(url, id: DownloadID("d\($0)")) })
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
    var latest: [DownloadID: DownloadState.Phase] = [:]
    while let batch = await changes.next() {
      #expect(batch.isComplete)
      for status in batch.statuses { latest[status.id] = status.state.phase }
    }
    #expect(latest.count == 50)
    #expect(latest.values.allSatisfy { $0 == .finished })
  }

  // MARK: Restarts

  @Test func anotherDownloaderGoesOnWhereTheFirstWasShutDown() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000), .init(bytes)]])
    let first = try await downloader(source)
    let waiting = try await first.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let value = Task { try await waiting.value }
    await first.shutdown()
    await #expect { try await value.value } throws: { ($0 as? DownloadError)?.code == .shutDown }
    await #expect { try await first.add(DownloadRequest(url)) } throws: { ($0 as? DownloadError)?.code == .shutDown }

    let second = try await downloader(source)
    let download = try #require(try await second.download("a"))
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.last?.range == RequestedRange(from: 39_000))
    await second.shutdown()
  }

  @Test func checkpointsAreWrittenWhileItRuns() async throws {
    let bytes = DownloadFixtures.pattern(size: 600_000)
    let faulty = FaultyLedger(ledger)
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let downloader = try await downloader(source, ledger: faulty)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    // The ticker looks every 100 ms; a checkpoint is due after a second.
    for _ in 0..<11 {
      await time.sleeper(dueIn: .milliseconds(100))
      time.advance(by: .milliseconds(100))
    }
    await faulty.calls(of: .save, atLeast: 1)
    let saved = faulty.saves.first
    #expect(saved?.fields == .checkpoint)
    #expect(saved?.record.checkpoint.ranges.prefixLength == 40_000)
    #expect(storage.calls.contains { $0.operation == .synchronize })
    source.release()
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
  }

  @Test func aStepWithNothingToDoIsSkipped() async throws {
    let downloader = try await Downloader(options: options) {
      FakeSource([url: [.init(bytes)]])
      storage
      ledger
      NeverNeeded()
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(!storage.calls.contains { $0.operation == .workspace })
    await downloader.shutdown()
  }

  @Test func aStepThatFailsIsTriedAgainWithoutFetchingAgain() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let attempts = CallCounter()
    let step = FakePostProcessor<File, File>(name: "Flaky") { file, _ in
      if attempts.next() == 1 { throw DownloadError(.processing, "flaky") }
      return file
    }
    let downloader = try await Downloader(options: options) {
      source
      storage
      ledger
      FakeRetryPolicy(.resume(after: .zero))
      step
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.count == 1)
    #expect(step.inputs.count == 2)
    await downloader.shutdown()
  }

  @Test func stepsRunInOrderAndTheirInputsGo() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let reversed = Array(bytes.reversed())
    let downloader = try await Downloader(options: options) {
      source
      storage
      ledger
      FakePostProcessor<File, File>.bytes(name: "Reverse") { $0.reversed() }
      FakePostProcessor<File, File>.bytes(name: "Append") { $0 + [42] }
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == reversed + [42])
    #expect(storage.partials.isEmpty)
    await downloader.shutdown()
  }

  @Test func aLedgerThatCannotBeOpenedIsReported() async throws {
    await #expect {
      try await Downloader(
        Pipeline {
          FakeSource(everyURL: .init([]))
          FakeStorage()
          BrokenLedger()
        })
    } throws: { ($0 as? DownloadError)?.code == .ledger }
  }

  @Test func aRecordThatIsLostStopsTheTransferAtOnce() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let stolen = StolenLedger(ledger)
    let downloader = try await downloader(source, ledger: stolen)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    // Another owner takes the record away behind the engine's back.
    stolen.steal()
    source.release()
    await #expect(throws: DownloadError.self) { try await download.value }
    #expect(storage.published.isEmpty)
    await downloader.shutdown()
  }
}

struct AnyLedger: Ledger {
  let base: any Ledger
  init(_ base: any Ledger) { self.base = base }
  func open() async throws -> any LedgerStore { try await base.open() }
}

struct NeverNeeded: UniversalPostProcessor {
  func isNeeded(in context: ProcessingContext) -> Bool { false }
  func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    throw DownloadError(.processing, "nobody needed this")
  }
}

struct BrokenLedger: Ledger {
  func open() async throws -> any LedgerStore { throw DownloadError(.ledger, "no such folder") }
}
