@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Watchers of all downloads get each change, including new reasons to wait and removals.
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

  @Test func aListShowsWhatStatusSays() async throws {
    let (gate, observer) = (FakeGate(), RecordingObserver())
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, gate, observer)
    try await downloader.add(contentsOf: requests(3))
    await source.held(atLeast: 1)
    // A limit is reached.
    let limited = await sees(observer, "d2", .limit(id: "FakeAdmissionPolicy", text: "1 of 1"))
    #expect(limited)
    #expect(try await downloader.status(of: "d2")?.state == .waiting(.limit(id: "FakeAdmissionPolicy", text: "1 of 1")))
    // A gate closes.
    gate.close("no network")
    let closed = await sees(observer, "d2", .gate(id: "FakeGate", text: "FakeGate: no network"))
    #expect(closed)
    // The gate opens again: the first download takes the slot, the others wait for the limit as before.
    let before = observer.events.count
    gate.open()
    await source.requests(atLeast: 2)
    let again = await sees(observer, "d2", .limit(id: "FakeAdmissionPolicy", text: "1 of 1"), after: before)
    #expect(again)
    // Everything is suspended.
    await downloader.setSuspended(true)
    let suspended = await sees(observer, "d2", .suspended)
    #expect(suspended)
    source.release()
    await downloader.shutdown()
  }

  @Test func changesTellWhyWhatWaitedBeforeWaits() async throws {
    let (gate, observer) = (FakeGate(), RecordingObserver())
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let earlier = try await Downloader(options: options) {
      source
      FakeGate(.closed("not yet"))
      storage
      ledger
    }
    try await earlier.add(contentsOf: requests(2))
    await earlier.shutdown()
    let downloader = try await downloader(source, gate, observer)
    let changes = downloader.changes(every: .zero)
    await source.held(atLeast: 1)
    let reason = try await advancing { () -> DownloadState? in
      for await batch in changes {
        if let status = batch.statuses.first(where: { $0.id == "d1" }) { return status.state }
      }
      return nil
    }
    #expect(reason == .waiting(.limit(id: "FakeAdmissionPolicy", text: "1 of 1")))
    source.release()
    await downloader.shutdown()
  }

  /// A ledger with millions of downloads may take a while to read those that wait. Only watchers are told of them.
  @Test(arguments: [true, false])
  func nothingElseWaitsForTheReadingOfWhatWaits(_ fails: Bool) async throws {
    let slow = FaultyLedger(ledger)
    if fails { slow.fail(.records, times: 1_000, with: DownloadError(.ledger, "away")) } else { slow.hold(.records) }
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      storage
      slow
    }
    let changes = downloader.changes(every: .zero)
    if fails { await slow.calls(of: .records, atLeast: 1) } else { await slow.held(atLeast: 1) }
    let download = try await downloader.add(DownloadRequest(url))
    _ = try await download.value
    slow.release()
    await downloader.shutdown()
    for await _ in changes {}
  }

  /// What the ledger had when it was read may be over when that is known.
  @Test func whatHasEndedWhileTheQueueWasReadIsNotToldAgain() async throws {
    let (slow, observer, source) = (FaultyLedger(ledger), RecordingObserver(), FakeSource())
    let requests = requests(4)
    for request in requests { source.script(request.url, .init(bytes)) }
    source.script(requests[2].url, .init(bytes).holding(after: 10_000))
    // The first one ends no sooner than the others are being read.
    let first = FakeSource([requests[0].url: [.init(bytes).holding(after: 10_000)]], name: "first")
    let earlier = try await Downloader(options: options) {
      source
      FakeGate(.closed("not yet"))
      storage
      ledger
    }
    try await earlier.add(contentsOf: Array(requests.prefix(2)))
    await earlier.shutdown()
    slow.hold(.records, .after)
    let downloader = try await Downloader(options: options) {
      first
      source
      limit(1)
      observer
      storage
      slow
    }
    await slow.held(atLeast: 1)
    first.release()
    for id in ["d0", "d1"] as [DownloadID] { _ = await observer.wait(for: id, toBe: .finished) }
    // The others wait for its slot, as those that have ended would, too.
    try await downloader.add(contentsOf: Array(requests.suffix(2)))
    await source.held(atLeast: 1)
    slow.release()
    try await advancing { for _ in 0..<5 { try await settle(downloader) } }
    source.release()
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
    let ends = observer.events.compactMap { event in
      if case .state(.finished) = event.kind { event.id.rawValue } else { nil }
    }
    #expect(ends.sorted() == ["d0", "d1", "d2", "d3"])
  }

  /// The next attempt to read it is made after a while, which grows.
  @Test func aQueueThatCannotBeReadIsReadLater() async throws {
    let (away, observer) = (FaultyLedger(ledger), RecordingObserver())
    let source = FakeSource(everyURL: .init(bytes))
    away.fail(.records, times: 3, with: DownloadError(.ledger, "away"))
    let downloader = try await Downloader(options: options) {
      source
      FakeGate(.closed("not yet"))
      observer
      storage
      away
    }
    for (call, pause) in [Duration.seconds(1), .seconds(2), .seconds(4)].enumerated() {
      await away.calls(of: .records, atLeast: call + 1)
      await time.sleeper(dueIn: pause, purpose: .reasons)
      #expect(await time.advanceToNextSleeper() == pause)
    }
    await away.calls(of: .records, atLeast: 4)
    await downloader.shutdown()
  }

  /// A reader can leave out the queue: it gets neither new downloads that wait for a free slot nor their limits, but gates.
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
    let changes = downloader.changes(every: .zero, followingQueue: follows)
    try await downloader.add(contentsOf: requests(2))
    await source.held(atLeast: 1)
    try await settle(downloader)
    // The limit has become the reason by now.
    await time.advanceToNextSleeper()
    try await settle(downloader)
    var hasQueue = false
    for await batch in changes {
      if batch.statuses.contains(where: { $0.id == "d1" }) { hasQueue = true }
      if batch.statuses.contains(where: { $0.id == "d0" && $0.state == .transferring }) { break }
    }
    #expect(hasQueue == follows)
    gate.close("no network")
    let reason = try await advancing { () -> DownloadState? in
      for await batch in changes {
        for status in batch.statuses where status.id == "d1" {
          if case .waiting(.gate) = status.state { return status.state }
          #expect(follows)
        }
      }
      return nil
    }
    #expect(reason == .waiting(.gate(id: "FakeGate", text: "FakeGate: no network")))
    source.release()
    await downloader.shutdown()
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

  /// A new watcher gets the reasons of downloads that were added while there was no watcher.
  @Test func aSecondListIsFilledAsWell() async throws {
    let (gate, source) = (FakeGate(.closed("FakeGate: off")), FakeSource(everyURL: .init(bytes)))
    let downloader = try await downloader(source, gates: [gate])
    await gate.watchers(atLeast: 1)
    for round in 0..<2 {
      let id = DownloadID("d\(round)")
      try await downloader.add(DownloadRequest(url, id: id))
      let changes = downloader.changes(every: .zero)
      let closed = DownloadState.waiting(.gate(id: "FakeGate", text: "FakeGate: \(round)"))
      try await settle(downloader)
      gate.close("\(round)")
      for await batch in changes {
        if batch.statuses.contains(where: { $0.id == id && $0.state == closed }) { break }
      }
    }
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

  private func sees(
    _ observer: RecordingObserver, _ id: DownloadID, _ reason: WaitingReason, after count: Int = 0
  ) async -> Bool {
    let clock = Task {
      while !Task.isCancelled {
        time.advance(by: .milliseconds(50))
        await Task.yield()
      }
    }
    defer { clock.cancel() }
    return await observer.wait { events in
      events.dropFirst(count).contains { $0.id == id && $0.kind == .state(.waiting(reason)) }
    }
  }
}
