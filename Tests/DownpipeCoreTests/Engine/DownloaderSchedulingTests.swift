import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Gates, order and limits.
@Suite(.endsHangs)
struct DownloaderSchedulingTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  // MARK: Gates

  @Test func aClosedGateSaysWhyAndOpeningLetsGo() async throws {
    let gate = FakeGate(.closed("Radio: off"))
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source, gates: [gate])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await gate.watchers(atLeast: 1)
    #expect(try await download.status.state == .waiting(.gate(id: "FakeGate", text: "Radio: off")))
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
      events.contains { $0.kind == .state(.waiting(.gate(id: "FakeGate", text: "FakeGate: cellular"))) }
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

  /// A gate whose watch is over before it has said anything.
  private struct Silent: Gate {
    func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {}
  }

  @Test("a gate that returns without a rule does not hold up downloads for ever: they fail with its name")
  func aGateThatSaysNothing() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await Downloader(options: options) {
      source
      Silent()
      storage
      ledger
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    let error = await #expect(throws: DownloadError.self) { try await download.value }
    #expect(error?.code == .invalidPipeline && error?.stage == "Silent")
    #expect(error?.message.contains("Silent has ended its watch without a rule") == true)
    #expect(source.requests.isEmpty)
    // Without the gate it goes on.
    #expect(await downloader.removeGate(id: "Silent"))
    #expect(try await downloader.resumeAll() == 1)
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }

  @Test func aGateThatReturnsKeepsItsLastRule() async throws {
    let gate = FakeGate(.closed("at night"))
    let downloader = try await downloader(FakeSource([url: [.init(bytes)]]), gates: [gate])
    await gate.watchers(atLeast: 1)
    gate.endWatching()
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(try await download.status.state == .waiting(.gate(id: "FakeGate", text: "at night")))
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
    #expect(await downloader.removeGate(id: "WiFi"))
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
        && states.filter { $0 == .waiting(.limit(id: "FakeAdmissionPolicy", text: "3 of 3")) }.count == 2
      await Task.yield()
    }
    source.release()
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.finished: 5])
    await downloader.shutdown()
  }
}
