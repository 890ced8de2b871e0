@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Events never go back to a state that was over before.
@Suite(.endsHangs)
struct EventOrderTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// The engine tells the present state again while the run goes on to the next one.
  @Test func statesOfARunAreToldInTheirOrder() async throws {
    let fixture = try await RunFixture()
    for round in 0..<1000 {
      let run = try fixture.run(DownloadID("\(round)"))
      let events = fixture.context.hub.events(of: run.id).stream
      let steps = (0..<20).map { DownloadState.processing(step: "\($0)") }
      await withTaskGroup(of: Void.self) { group in
        group.addTask { for step in steps { run.announce(state: step) } }
        group.addTask { for _ in 0..<20 { run.announcePresentState() } }
      }
      var latest = -1
      for await event in events {
        guard case .state(.processing(let step)) = event.kind, let number = Int(step) else { continue }
        try #require(number >= latest, "\(number) came after \(latest)")
        latest = number
        if number == 19 { break }
      }
    }
  }

  @Test func aStateThatWasOverBeforeTheFirstEventDoesNotFollowIt() async throws {
    let faulty = FaultyLedger(ledger)
    let gate = FakeGate(.closed("not yet"))
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), gates: [gate], ledger: faulty)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    try await settle(downloader)
    faulty.hold(.record, at: faulty.calls.count { $0 == .record } + 1)
    let states = Task {
      var states: [DownloadState.Phase] = []
      for await event in download.events {
        if case .state(let state) = event.kind { states.append(state.phase) }
      }
      return states
    }
    await faulty.held(atLeast: 1)
    try await download.cancel()
    try await download.restart()
    faulty.release()
    while await downloader.engine.hub.watchedDownloads.isEmpty { await Task.yield() }
    try await settle(downloader)
    gate.open()
    let seen = await states.value
    #expect(seen.first == .waiting && seen.last == .finished && !seen.contains(.cancelled), "\(seen)")
    await downloader.shutdown()
  }

  /// Its handle is used on: a removal that is over before the first event is not the end of the new download's events.
  @Test func aRemovalThatWasOverBeforeTheFirstEventDoesNotFollowIt() async throws {
    let faulty = FaultyLedger(ledger)
    let gate = FakeGate(.closed("not yet"))
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), gates: [gate], ledger: faulty)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    try await settle(downloader)
    faulty.hold(.record, at: faulty.calls.count { $0 == .record } + 1)
    let events = Task {
      var kinds: [DownloadEvent.Kind] = []
      for await event in download.events { kinds.append(event.kind) }
      return kinds
    }
    await faulty.held(atLeast: 1)
    try await download.remove()
    _ = try await downloader.add(DownloadRequest(url, id: "a"))
    faulty.release()
    while await downloader.engine.hub.watchedDownloads.isEmpty { await Task.yield() }
    try await settle(downloader)
    gate.open()
    let seen = await events.value
    let isFinished = seen.last.map { if case .state(.finished) = $0 { true } else { false } }
    #expect(!seen.contains(.removed) && isFinished == true, "\(seen)")
    await downloader.shutdown()
  }

  @Test func aRemovalIsToldAsTheLastEvent() async throws {
    let hub = EventHub(time: time)
    let (stream, watcher) = hub.events(of: "a")
    #expect(hub.note(nil, of: "a", by: watcher))
    hub.publish(removalOf: try DownloadRequest(url, id: "a"))
    #expect(!hub.note(nil, of: "a", by: watcher) && hub.watchedDownloads.isEmpty)
    var kinds: [DownloadEvent.Kind] = []
    for await event in stream { kinds.append(event.kind) }
    #expect(kinds == [.removed])
    // A watcher that comes later is not ended by it.
    let later = hub.events(of: "a")
    #expect(hub.note(nil, of: "a", by: later.watcher))
    hub.finish()
    #expect(hub.note(nil, of: "a", by: later.watcher), "a downloader that is shut down tells nothing more")
  }

  @Test("a reason is told after a run was stopped, also the same one: a status read in between may have had another")
  func reasonAfterAStop() async throws {
    let fixture = try await RunFixture()
    let run = try fixture.run("a")
    let hub = fixture.context.hub
    let events = hub.events(of: "a").stream
    let reason = DownloadState.waiting(.limit(id: "Limits", text: "1 of 1"))
    run.announce(state: reason)
    let status = DownloadStatus(record: run.record, state: reason, in: fixture.context.storage)
    for _ in 0..<3 { hub.publish(stateOf: status, isReason: true) }
    hub.finish()
    let told = await events.reduce(into: [DownloadState]()) { if case .state(let state) = $1.kind { $0.append(state) } }
    #expect(told == [reason, reason])
    // A retry is no reason of the present state.
    let again = try fixture.run("b")
    let retry = DownloadState.waiting(.retry(at: Date(timeIntervalSince1970: 0), after: DownloadError(.network, "no")))
    let other = EventHub(time: time)
    let retries = other.events(of: "b").stream
    other.publish(.state(retry), of: again)
    let waits = DownloadStatus(record: again.record, state: retry, in: fixture.context.storage)
    other.publish(stateOf: waits, isReason: true)
    other.finish()
    #expect(await retries.reduce(into: 0) { count, _ in count += 1 } == 1)
  }
}
