@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

/// Changing the requests of the downloads that match a filter.
@Suite(.endsHangs)
struct UpdateAllTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private struct Refusal: Error {}

  private func downloader(_ source: FakeSource, _ policy: FakeAdmissionPolicy) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      policy
      FakeSchedulingPolicy { Rank().descending($0.priority).ascending($0.arrival) }
      storage
      ledger
    }
  }

  @Test("A new priority of many changes the order, and watchers are told")
  func priorities() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, limit(1))
    var some = requests(6)
    for index in [3, 5] { some[index].tags = ["wanted"] }
    try await downloader.add(contentsOf: some)
    await source.held(atLeast: 1)
    var changes = downloader.changes(every: .zero).makeAsyncIterator()
    #expect(await changes.next(isolation: #isolation)?.statuses.count == 6)
    let count = try await downloader.updateAll(.tag("wanted")) { request in
      request.priority = .high
      request.metadata["why"] = "tapped"
    }
    #expect(count == 2)
    var statuses: [DownloadStatus] = []
    // What runs may be told, too.
    while statuses.count < 2, let batch = await changes.next(isolation: #isolation) {
      statuses += batch.statuses.filter { $0.id != "d0" }
    }
    #expect(Set(statuses.map(\.id)) == ["d3", "d5"])
    #expect(statuses.allSatisfy { $0.request.priority == .high && $0.request.metadata == ["why": "tapped"] })
    #expect(try await downloader.updateAll(.tag("wanted")) { $0.priority = .high } == 0, "nothing has changed")
    source.release()
    try await downloader.waitUntilIdle()
    #expect(source.requests.map(\.id) == ["d0", "d3", "d5", "d1", "d2", "d4"])
    await downloader.shutdown()
  }

  @Test("A digest that no step of this pipeline verifies does not prevent other changes")
  func digestsOfAnEarlierPipeline() async throws {
    let open = OpenLedger(ledger)
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes).holding(after: 10_000))
      limit(0)
      storage
      open
    }
    try await downloader.add(contentsOf: requests(2))
    let digest = FileDigest(.sha256, bytes: [UInt8](repeating: 1, count: 32))
    try await open.change("d0") { $0.request.expectedDigests = [digest] }
    #expect(try await downloader.updateAll { $0.priority = .high } == 2)
    await #expect(throws: DownloadError.self) {
      try await downloader.updateAll { $0.url = URL(string: "https://example.org/other")! }
    }
    await downloader.shutdown()
  }

  @Test("New tags take effect on what runs")
  func tagsOfRuns() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let policy = FakeAdmissionPolicy { candidate, running in
      candidate.tags.contains("video") && running.perTag["video"] != nil ? .refused("one video") : .admitted
    }
    let downloader = try await downloader(source, policy)
    let first = try await downloader.add(requests(1)[0])
    await source.held(atLeast: 1)
    var events = first.events.makeAsyncIterator()
    _ = await events.next(isolation: #isolation)
    #expect(try await downloader.updateAll(.phases([.transferring])) { $0.tags = ["video"] } == 1)
    #expect(await events.next(isolation: #isolation)?.request.tags == ["video"])
    var second = requests(2)[1]
    second.tags = ["video"]
    try await downloader.add(second)
    try await settle(downloader)
    #expect(source.readers == 1)
    #expect(
      try await downloader.status(of: "d1")?.state == .waiting(.limit(id: "FakeAdmissionPolicy", text: "one video")))
    #expect(try await downloader.pauseAll(.tag("video")) == 2, "the run is found by its new tag")
    await downloader.shutdown()
  }

  @Test("An error of the closure leaves all unchanged")
  func refusals() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, limit(1))
    try await downloader.add(contentsOf: requests(5))
    await source.held(atLeast: 1)
    let before = try await downloader.statuses()
    let calls = Mutex(0)
    await #expect(throws: Refusal.self) {
      try await downloader.updateAll { request in
        request.priority = .high
        request.tags = ["new"]
        let call = calls.withLock { calls in
          calls += 1
          return calls
        }
        if call == 4 { throw Refusal() }
      }
    }
    #expect(try await downloader.statuses() == before)
    #expect(try await downloader.counts(.tag("new")) == [:])
    #expect(try await downloader.pauseAll(.tag("new")) == 0, "no run has the tag")
    await downloader.shutdown()
  }

  @Test("Ids, destinations and invalid requests are refused", arguments: ["id", "destination", "size"])
  func invalidChanges(what: String) async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), limit(1))
    await downloader.setSuspended(true)
    try await downloader.add(contentsOf: requests(3))
    let before = try await downloader.statuses()
    await #expect {
      try await downloader.updateAll { request in
        request.priority = .high
        guard request.id == "d1" else { return }
        switch what {
        case "id": request.id = "other"
        case "destination": request.destination.name = "other"
        default: request.expectedSize = .known(-1)
        }
      }
    } throws: {
      code($0) == .invalidRequest
    }
    #expect(try await downloader.statuses() == before)
    await downloader.shutdown()
  }

  @Test func downloadsOfOtherFoldersAreNotChanged() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), limit(1))
    await downloader.setSuspended(true)
    try await downloader.add(contentsOf: requests(2))
    let store = try await ledger.open()
    _ = try await store.update("d1", at: time.date) { $0.location = "elsewhere" }
    let here = storage.location
    #expect(try await downloader.updateAll { $0.priority = .high } == (here == nil ? 2 : 1))
    #expect(try await store.record("d1")?.request.priority == (here == nil ? .high : .normal))
    try await store.close()
    await downloader.shutdown()
  }
}
