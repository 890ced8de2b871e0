import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Starting a download by hand overrides limits; preempted downloads keep their bytes and wait.
@Suite(.endsHangs)
struct StartingByHandTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private func downloader(_ source: FakeSource, _ gate: FakeGate = FakeGate()) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      gate
      limit(2)
      FakeSchedulingPolicy { Rank().descending($0.priority).ascending($0.arrival) }
      FakeRetryPolicy(.giveUp)
      storage
      ledger
    }
  }

  private func phases(_ downloader: Downloader, _ count: Int) async throws -> [DownloadState.Phase?] {
    var phases: [DownloadState.Phase?] = []
    for index in 0..<count { phases.append(try await downloader.status(of: .init("d\(index)"))?.state.phase) }
    return phases
  }

  @Test func withoutPreemptionOneMoreRuns() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    try await downloader.add(contentsOf: requests(4))
    await source.held(atLeast: 2)
    #expect(try await downloader.start("d3"))
    await source.held(atLeast: 3)
    #expect(try await phases(downloader, 4) == [.transferring, .transferring, .waiting, .transferring])
    #expect(try await downloader.start("d3"), "it runs already")
    #expect(source.readers == 3)
    source.release()
    await downloader.shutdown()
  }

  @Test func theOldestGivesWayAndGoesOnWhereItWas() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    let downloads = try await downloader.add(contentsOf: requests(4))
    await source.held(atLeast: 2)
    var events = downloads[0].events.makeAsyncIterator()
    _ = await events.next()
    #expect(try await downloader.start("d3", preempting: .oldest))
    await source.requests(atLeast: 3)
    while let event = await events.next(), event.kind != .state(.waiting(.preempted(by: "d3"))) {}
    _ = try await waitFor(.waiting, downloads[0])
    #expect(try await downloads[0].status.state == .waiting(.limit(id: "FakeAdmissionPolicy", text: "2 of 2")))
    #expect(try await downloads[0].status.progress.received == 10_000)
    #expect(try await phases(downloader, 4) == [.waiting, .transferring, .waiting, .transferring])
    source.release()
    try await advancing { try await downloader.waitUntilIdle() }
    #expect(try await downloads[0].status.resumedFrom > 0)
    #expect(try await phases(downloader, 4) == Array(repeating: .finished, count: 4))
    await downloader.shutdown()
  }

  @Test func theLowestPriorityGivesWay() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    var some = requests(3)
    some[0].priority = .high
    let downloads = try await downloader.add(contentsOf: some)
    await source.held(atLeast: 2)
    #expect(try await downloader.start("d2", preempting: .lowestPriority))
    _ = try await waitFor(.waiting, downloads[1])
    #expect(try await phases(downloader, 3) == [.transferring, .waiting, .transferring])
    source.release()
    await downloader.shutdown()
  }

  @Test func aFreeSlotPreemptsNoRunAndAPausedDownloadIsResumed() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    let downloads = try await downloader.add(contentsOf: requests(2))
    await source.held(atLeast: 2)
    try await downloads[0].pause()
    #expect(try await downloader.start("d0", preempting: .oldest))
    await source.requests(atLeast: 3)
    #expect(try await phases(downloader, 2) == [.transferring, .transferring])
    source.release()
    await downloader.shutdown()
  }

  @Test func whatIsPausedIsNotStartedInThePlaceOfWhatGaveWay() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    let downloads = try await downloader.add(contentsOf: requests(4))
    await source.held(atLeast: 2)
    try await downloads[2].pause()
    #expect(try await downloader.start("d3", preempting: .oldest))
    _ = try await waitFor(.waiting, downloads[0])
    source.release()
    try await advancing { try await downloader.waitUntilIdle() }
    #expect(try await phases(downloader, 4) == [.finished, .finished, .paused, .finished])
    await downloader.shutdown()
  }

  @Test func aClosedGateIsNotForced() async throws {
    let gate = FakeGate()
    let source = FakeSource(everyURL: .init(bytes))
    gate.close("no network")
    let downloader = try await downloader(source, gate)
    let download = try await downloader.add(contentsOf: requests(1))[0]
    await gate.watchers(atLeast: 1)
    #expect(try await !downloader.start("d0", preempting: .oldest))
    #expect(try await download.status.state == .waiting(.gate(id: "FakeGate", text: "FakeGate: no network")))
    gate.open()
    _ = try await download.value
    #expect(try await !downloader.start("d0"), "a finished download is not started")
    await #expect(throws: DownloadError.self) { try await downloader.start("none") }
    await downloader.shutdown()
  }

  private func waitFor(_ phase: DownloadState.Phase, _ download: Download) async throws -> DownloadState {
    for await event in download.events {
      if case .state(let state) = event.kind, state.phase == phase { return state }
    }
    return try await download.status.state
  }
}
