@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// What watchers are told after a run has lost its lease: what the ledger says of the download by then.
@Suite(.endsHangs)
struct AbandonedRunTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// A download whose run has lost its lease, because its record was removed behind the engine. The look at the ledger
  /// that follows is held.
  private struct Abandoned {
    let downloader: Downloader
    let faulty: FaultyLedger
    let open: OpenLedger
    let gate: FakeGate
    let observer: RecordingObserver
    let source: FakeSource

    /// Adds the download again.
    func addAgain(_ url: URL) async throws -> Download {
      let again = try await downloader.add(DownloadRequest(url, id: "a"))
      #expect(again.isNew)
      return again
    }

    /// Lets the engine go on, and waits until the run is gone.
    func goOn() async {
      let run = await downloader.engine.state.slots.runs["a"]
      faulty.release()
      while await downloader.engine.state.slots.runs["a"] === run { await Task.yield() }
    }
  }

  private func abandon(holding moment: FaultyLedger.Moment = .after) async throws -> Abandoned {
    let faulty = FaultyLedger(ledger)
    let (open, gate, observer) = (OpenLedger(faulty), FakeGate(), RecordingObserver())
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, gates: [gate], observers: [observer], ledger: open)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await open.forget("a")
    faulty.hold(.record, at: faulty.calls.count { $0 == .record } + 1, moment)
    source.release()
    await faulty.held(atLeast: 1)
    return Abandoned(
      downloader: downloader, faulty: faulty, open: open, gate: gate, observer: observer, source: source)
  }

  private func isRemoval(_ kind: DownloadEvent.Kind) -> Bool { if case .removed = kind { true } else { false } }

  @Test("A download that was removed elsewhere is removed for its watchers")
  func removed() async throws {
    let abandoned = try await abandon()
    await abandoned.goOn()
    await abandoned.observer.wait { $0.contains { isRemoval($0.kind) } }
    await abandoned.downloader.shutdown()
    #expect(abandoned.observer.events(of: "a").count(where: isRemoval) == 1)
    #expect(!abandoned.observer.states(of: "a").contains(.waiting(.elsewhere)))
    #expect(storage.partials.keys.isEmpty && storage.published.isEmpty)
  }

  @Test(
    "A download that was added again waits for its watchers as the ledger says",
    arguments: [FaultyLedger.Moment.before, .after])
  func addedAgain(_ moment: FaultyLedger.Moment) async throws {
    let abandoned = try await abandon(holding: moment)
    abandoned.gate.close("night")
    let again = try await abandoned.addAgain(url)
    await abandoned.goOn()
    await abandoned.observer.wait { $0.last?.kind == .state(.waiting(.gate(id: "FakeGate", text: "FakeGate: night"))) }
    abandoned.gate.open()
    #expect(storage.bytes(of: try await again.value) == bytes)
    await abandoned.downloader.shutdown()
    #expect(!abandoned.observer.events(of: "a").contains(where: isRemoval))
    #expect(!abandoned.observer.states(of: "a").contains(.waiting(.elsewhere)))
    #expect(storage.partials.keys.isEmpty && storage.published.count == 1)
  }

  @Test(
    "Nothing is told of a run whose download has another one by then", arguments: [FaultyLedger.Moment.before, .after])
  func leasedAgain(_ moment: FaultyLedger.Moment) async throws {
    let abandoned = try await abandon(holding: moment)
    let again = try await abandoned.addAgain(url)
    while await abandoned.downloader.engine.state.slots.runs["a"]?.key.generation != 2 { await Task.yield() }
    await abandoned.goOn()
    #expect(storage.bytes(of: try await again.value) == bytes)
    await abandoned.downloader.shutdown()
    #expect(!abandoned.observer.states(of: "a").contains(.waiting(.elsewhere)))
    #expect(!abandoned.observer.events(of: "a").contains(where: isRemoval))
    #expect(storage.partials.keys.isEmpty)
  }

  @Test("A download that another owner runs is told to be elsewhere")
  func elsewhere() async throws {
    let abandoned = try await abandon()
    // Otherwise the downloader could lease it first.
    abandoned.gate.close("night")
    while await !abandoned.downloader.engine.state.gates.isClosedForAll { await Task.yield() }
    let other = try await ledger.open()
    let addition = LedgerAddition(request: DownloadRequest(url, id: "a"), arrival: 9)
    _ = try await other.add([addition], at: time.date)
    let lease = LeaseRequest(now: time.date, until: time.date.addingTimeInterval(60)) { _ in .take }
    #expect(try await other.lease(lease).map(\.generation) == [2])
    await abandoned.goOn()
    await abandoned.observer.wait { $0.last?.kind == .state(.waiting(.elsewhere)) }
    #expect(try await abandoned.downloader.status(of: "a")?.state == .waiting(.elsewhere))
    abandoned.gate.open()
    try await other.close()
    try await abandoned.downloader.waitUntilIdle()
    await abandoned.downloader.shutdown()
    #expect(!abandoned.observer.events(of: "a").contains(where: isRemoval))
    #expect(abandoned.observer.states(of: "a").last?.phase == .finished)
  }

  @Test("A ledger that cannot be read has not removed the download")
  func unreadable() async throws {
    let faulty = FaultyLedger(ledger)
    let (open, observer) = (OpenLedger(faulty), RecordingObserver())
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, observers: [observer], ledger: open)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await open.forget("a")
    let next = faulty.calls.count { $0 == .records } + 1
    faulty.fail(.records, at: next, times: 1_000, with: DownloadError(.ledger, "broken"))
    source.release()
    await faulty.calls(of: .records, atLeast: next)
    await downloader.shutdown()
    #expect(!observer.events(of: "a").contains(where: isRemoval))
  }

  @Test("A watched download does not end for its watchers when the ledger cannot be read")
  func watched() async throws {
    let faulty = FaultyLedger(ledger)
    let gate = FakeGate(.closed("not yet"))
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), gates: [gate], ledger: faulty)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    var events = download.events.makeAsyncIterator()
    #expect(await events.next() != nil)
    try await settle(downloader)
    let next = faulty.calls.count { $0 == .records } + 1
    faulty.fail(.records, at: next, times: 3, with: DownloadError(.ledger, "broken"))
    let store = try await ledger.open()
    #expect(try await store.remove(.ids(["a"])) { _ in true } == 1)
    await downloader.engine.noteChangesByOthers()
    await faulty.calls(of: .records, atLeast: next)
    #expect(downloader.engine.hub.isWatched("a"))
    // The next look finds out.
    while downloader.engine.hub.isWatched("a") { _ = await time.advanceToNextSleeper() }
    await downloader.shutdown()
  }
}
