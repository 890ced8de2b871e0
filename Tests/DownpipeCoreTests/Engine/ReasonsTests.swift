@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Why downloads wait: a status says so, a watcher of one download is told, and one of all is told to ask.
@Suite(.endsHangs)
struct ReasonsTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private func downloader(_ source: FakeSource, _ gate: FakeGate, _ observer: RecordingObserver) async throws
    -> Downloader
  {
    try await Downloader(options: options) {
      source
      gate
      limit(1)
      observer
      storage
      ledger
    }
  }

  @Test func whoWatchesOneDownloadHearsWhatStatusSays() async throws {
    let (gate, observer) = (FakeGate(), RecordingObserver())
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, gate, observer)
    let download = try await downloader.add(contentsOf: requests(3))[2]
    let told = Watched<[DownloadState]>([])
    let watching = Task {
      for await event in download.events {
        if case .state(let state) = event.kind { told.update { $0.append(state) } }
      }
    }
    await source.held(atLeast: 1)
    // A limit is reached.
    let full = DownloadState.waiting(.limit(id: "FakeAdmissionPolicy", text: "1 of 1"))
    try await advancing { await told.wait { $0.last == full } }
    #expect(try await download.status.state == full)
    // A gate closes.
    gate.close("no network")
    await told.wait { $0.last == .waiting(.gate(id: "FakeGate", text: "FakeGate: no network")) }
    // The gate opens again: the first download takes the slot, the others wait for the limit as before.
    gate.open()
    await source.requests(atLeast: 2)
    try await advancing { await told.wait { $0.last == full } }
    // Everything is suspended.
    await downloader.setSuspended(true)
    await told.wait { $0.last == .waiting(.suspended) }
    source.release()
    await downloader.shutdown()
    await watching.value
  }

  @Test func whoWatchesOneDownloadHearsOfWhatItWaitsFor() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    let download = try await downloader.add(
      DownloadRequest(url, id: "b").with(\.after, ["a"]))
    let told = Watched<[DownloadState]>([])
    let watching = Task {
      for await event in download.events {
        if case .state(let state) = event.kind { told.update { $0.append(state) } }
      }
    }
    await told.wait { $0.last == .waiting(.dependency("a", .unknown)) }
    try await downloader.add(DownloadRequest(url.appending(path: "a"), id: "a"))
    try await advancing { await told.wait { $0.last == .waiting(.dependency("a", .unfinished)) } }
    await source.held(atLeast: 1)
    _ = try await downloader.pause("a")
    try await advancing { await told.wait { $0.last == .waiting(.dependency("a", .paused)) } }
    source.release()
    await downloader.shutdown()
    await watching.value
  }

  /// A ledger with millions of downloads may take a while to read them, or fail. Only who shows them waits.
  @Test(arguments: [true, false])
  func nothingElseWaitsForASnapshot(_ fails: Bool) async throws {
    let slow = FaultyLedger(ledger)
    if fails { slow.fail(.records, times: 3, with: DownloadError(.ledger, "away")) } else { slow.hold(.records) }
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      storage
      slow
    }
    let changes = downloader.changes(every: .zero)
    let reading = Task { await changes.first { $0.isSnapshot } }
    if fails { await slow.calls(of: .records, atLeast: 1) } else { await slow.held(atLeast: 1) }
    let download = try await downloader.add(DownloadRequest(url))
    _ = try await download.value
    slow.release()
    let snapshot = try await advancing { await reading.value }
    #expect(snapshot?.isComplete == true)
    if fails { #expect(snapshot?.statuses.map(\.id) == [download.id]) }
    await downloader.shutdown()
  }

  /// A reader can leave out the queue: it gets neither new downloads that wait for a free slot, nor that they wait for it for
  /// another reason, but hears of gates.
  @Test(arguments: [true, false])
  func aReaderFollowsTheQueueOrNot(_ follows: Bool) async throws {
    let (gate, source) = (FakeGate(), FakeSource(everyURL: .init(bytes).holding(after: 10_000)))
    let downloader = try await Downloader(options: options) {
      source
      gate
      limit(1)
      storage
      ledger
    }
    // Until the gate has reported, new downloads wait for it.
    await gate.watchers(atLeast: 1)
    try await settle(downloader)
    let changes = downloader.changes(every: .zero, followingQueue: follows, beginningWithSnapshot: false)
    let batches = Watched<[DownloadChanges]>([])
    let reading = Task { for await batch in changes { batches.update { $0.append(batch) } } }
    try await downloader.add(contentsOf: requests(2))
    await source.held(atLeast: 1)
    await batches.wait { $0.contains { $0.statuses.contains { $0.id == "d0" && $0.state == .transferring } } }
    // The limit has become the reason by now.
    await time.advanceToNextSleeper()
    try await settle(downloader)
    if follows { await batches.wait { $0.contains(where: \.reasonsMayHaveChanged) } }
    let before = batches.value
    #expect(before.contains { $0.statuses.contains { $0.id == "d1" } } == follows)
    #expect(before.contains(where: \.reasonsMayHaveChanged) == follows)
    gate.close("no network")
    await batches.wait { $0.dropFirst(before.count).contains(where: \.reasonsMayHaveChanged) }
    let state = try await downloader.statuses(of: ["d1"])["d1"]?.state
    #expect(state == .waiting(.gate(id: "FakeGate", text: "FakeGate: no network")))
    source.release()
    await downloader.shutdown()
    await reading.value
  }

  /// A watcher of a single download gets changes of gates and limits, too.
  @Test func whoWatchesOneDownloadHearsOfGates() async throws {
    let gate = FakeGate(.closed("Radio: off"))
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), gates: [gate])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await gate.watchers(atLeast: 1)
    var events = download.events.makeAsyncIterator()
    let first = await events.next()?.kind
    #expect(first == .state(.waiting(.gate(id: "FakeGate", text: "Radio: off"))))
    gate.close("no licence")
    var second = await events.next()?.kind
    // The loop may have heard of the gate's first rule after the watcher.
    if second == first { second = await events.next()?.kind }
    #expect(second == .state(.waiting(.gate(id: "FakeGate", text: "FakeGate: no licence"))))
    await downloader.shutdown()
  }

  @Test func aRemovalIsAnEventAndLeavesTheList() async throws {
    let (gate, observer) = (FakeGate(), RecordingObserver())
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, gate, observer)
    let downloads = try await downloader.add(contentsOf: requests(2))
    await source.held(atLeast: 1)
    var events = downloads[1].events.makeAsyncIterator()
    _ = await events.next()
    var changes = downloader.changes(every: .zero).makeAsyncIterator()
    #expect(await changes.next()?.statuses.count == 2)
    try await downloads[0].remove()
    try await downloads[1].remove()
    var last: DownloadEvent?
    while let event = await events.next() { last = event }
    #expect(last?.kind == .removed)
    var removed: Set<DownloadID> = []
    while removed.count < 2, let batch = await changes.next() {
      removed.formUnion(batch.removed)
      #expect(removed.isDisjoint(with: batch.statuses.map(\.id)))
    }
    #expect(removed == ["d0", "d1"])
    let isSeen = await observer.wait { events in events.count { $0.kind == .removed } == 2 }
    #expect(isSeen)
    source.release()
    await downloader.shutdown()
  }

  @Test func observersSeeWhatTheRequestCarries() async throws {
    let (gate, observer) = (FakeGate(), RecordingObserver())
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), gate, observer)
    try await downloader.add(DownloadRequest(url, id: "a", tags: ["film"]).with(\.metadata, ["title": "Sunrise"]))
    _ = await observer.wait(for: "a", toBe: .finished)
    #expect(observer.events.allSatisfy { $0.request.tags == ["film"] && $0.request.metadata["title"] == "Sunrise" })
    #expect(observer.events.first?.request.host == "example.org")
    await downloader.shutdown()
  }

  /// A published due time has its timer: the test's clock cannot pass it unnoticed.
  @Test func theTimerIsArmedBeforeTheStateIsAnnounced() async throws {
    let error = DownloadError(.network, "broken")
    let source = FakeSource([url: [.failingToOpen(error), .init(bytes)]])
    let downloader = try await downloader(source, retry: FakeRetryPolicy(.resume(after: .seconds(10))))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    for await event in download.events { if case .state(.waiting(.retry)) = event.kind { break } }
    time.advance(by: .milliseconds(9900))
    time.advance(by: .milliseconds(100))
    _ = try await download.value
    await downloader.shutdown()
  }

  /// Two downloaders on one ledger: when one of them ends a download, a caller of the other one is told at once,
  /// without a timer.
  @Test func aSecondDownloaderOnTheLedgerIsToldAtOnce() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 10_000)]])
    let first = try await downloader(source)
    try await first.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    // Begun now: it could lease the download, which its source does not accept.
    let second = try await downloader(FakeSource())
    let other = try #require(try await second.download("a"))
    async let value = other.value
    try await settle(second)
    source.release()
    #expect(try await value.name == "file.bin")
    await first.shutdown()
    await second.shutdown()
  }
}
