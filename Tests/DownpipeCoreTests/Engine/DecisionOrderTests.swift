import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// The same inputs give the same order of calls: nothing follows the order of a dictionary or set, which differs from
/// process to process and from copy to copy.
@Suite(.endsHangs)
struct DecisionOrderTests {
  private let now = Date(timeIntervalSince1970: 1_000_000)
  private let ids = (0..<40).map { DownloadID("d\($0 * 7 % 40)") }

  // MARK: Runs

  @Test("Runs are visited in the order of their starts, also those that follow an earlier run of the same download")
  func runs() async throws {
    let fixture = try await RunFixture()
    var slots = Slots()
    for id in ids { _ = slots.insert(try fixture.run(id)) }
    #expect(slots.runs.values.map(\.id) == ids)
    #expect(slots.runs(matching: .all).map(\.id) == ids)
    #expect(slots.byStart.map(\.id) == ids && slots.ranked.map(\.id) == ids, "equal ranks go by the start")
    let again = try fixture.run(ids[0])
    #expect(slots.insert(again)?.id == ids[0])
    let order = ids.dropFirst() + [ids[0]]
    #expect(slots.runs.values.map(\.id) == Array(order) && slots.ranked.map(\.id) == Array(order))
  }

  @Test("The callers that wait for the end of a run, and those that wait until the downloader is idle, go on in order")
  func waiters() async throws {
    let run = try await RunFixture().run("a")
    let (waiters, ended) = (Watched(IdleWaiters()), Watched<[Int]>([]))
    let executor = SerialJobs()
    let tasks = (0..<40).map { number in
      Task(executorPreference: executor) {
        if number < 20 {
          await run.waitForEnd()
        } else {
          let waiter = Completion()
          waiters.update { $0.insert(waiter) }
          try? await waiter.wait()
        }
        ended.update { $0.append(number) }
      }
    }
    await executor.runReadyJobs()
    run.markEnded()
    waiters.update { $0.finish(.success(())) }
    for task in tasks { await task.value }
    #expect(ended.value == Array(0..<40))
  }

  // MARK: Waiting downloads

  @Test("Downloads that wait for a resource get it in the order in which they came")
  func resources() throws {
    var waits = Waits()
    func record(_ id: DownloadID, _ what: Awaited) throws -> DownloadRecord {
      var record = DownloadRecord(
        request: try DownloadRequest("https://example.org/a", id: id), generation: 1, arrival: 1, rank: Rank(),
        createdAt: now)
      (record.awaited, record.notBefore) = (what, now.addingTimeInterval(30))
      return record
    }
    for id in ids { waits.note(try record(id, .network), available: nil) }
    waits.end(.network)
    #expect(waits.takeDue() == ids)
    for id in ids { waits.note(try record(id, .disk), available: 0) }
    waits.end(withRoom: 7 << 20, at: now)
    #expect(waits.takeDue() == Array(ids[..<7]))
    waits.end(withRoom: 7 << 20, at: now)
    #expect(waits.takeDue() == Array(ids[7..<14]))
  }

  // MARK: Watchers

  @Test("Watchers are told in the order in which they came")
  func watchers() async throws {
    let hub = EventHub(time: VirtualTime())
    let streams = ids.map { hub.events(of: $0).stream }
    #expect(hub.watchedDownloads == ids)
    let buffer = hub.changeBuffer(followsQueue: true, knowsAll: true)
    buffer.record(.removed, of: ids)
    buffer.record(.removed, of: [ids[0]])
    let news = try #require(await buffer.next(every: .zero))
    #expect(news.known.removed == ids)
    withExtendedLifetime(streams) {}
  }

  @Test("Other stores of a ledger hear of a change in the order in which they were opened")
  func stores() async throws {
    let watchers = LedgerWatchers()
    let told = Watched<[String]>([])
    let executor = SerialJobs()
    let tasks = ids.map(\.rawValue).map { owner in
      let stream = watchers.stream(for: owner)
      return Task(executorPreference: executor) {
        for await _ in stream { told.update { $0.append(owner) } }
      }
    }
    await executor.runReadyJobs()
    watchers.tell(changedBy: ids[3].rawValue)
    await told.wait { $0.count == 39 }
    #expect(told.value == ids.map(\.rawValue).filter { $0 != ids[3].rawValue })
    for id in ids { watchers.end(id.rawValue) }
    for task in tasks { await task.value }
  }

  // MARK: Connections

  @Test("A lowered limit ends added connections host by host, in order")
  func hosts() async throws {
    let connections = HostConnections(limit: 3)
    let ended = Watched<[String]>([])
    let hosts = (10..<40).map { "host \($0 * 7 % 30)" }
    for host in hosts {
      _ = try await connections.open(host)
      for number in 1...2 {
        #expect(connections.add(host) { ended.update { $0.append("\(host): \(number)") } } != nil)
      }
    }
    connections.setLimit(2)
    #expect(ended.value == hosts.sorted().map { "\($0): 2" })
  }

  @Test("Of feeds that are equally slow, the first goes first")
  func feeds() {
    var table = SegmentTable(total: 64 << 20, written: ByteRangeSet())
    let feeds = (0..<16).map { index in
      let start = Int64(index) << 22
      return table.add(start..<(start + 1 << 22), from: start, place: 0, at: .zero)
    }
    #expect(table.slowest == feeds)
    for id in feeds { table.begin(id, at: .zero) }
    for second in 1...3 {
      for id in feeds {
        if case .write(let range) = table.next(id, count: 1_000) { table.wrote(range, by: id) }
      }
      table.measure(at: .seconds(second))
    }
    #expect(table.feedToReplace { _ in .init(speed: 1e9, setup: .zero) } == feeds[0])
    #expect(table.segmentToDouble(.init(speed: 1e9, setup: .zero)) == feeds[0])
  }

  // MARK: Bounded memories

  @Test("A full memory forgets what came first")
  func memories() async throws {
    let mirrors = DoubtedMirrors()
    for number in 0..<10_002 { mirrors.insert(DownloadID("\(number)")) }
    #expect(!mirrors.contains("0") && !mirrors.contains("1") && mirrors.contains("2"))
    let (places, fixture) = (PlaceMemory(), try await RunFixture())
    let url = try #require(URL(string: "https://mirror.example/a"))
    for number in 0..<10_002 { places.exclude(url, of: try fixture.record(DownloadID("\(number)"))) }
    #expect(places.excluded(of: try fixture.record("1")).isEmpty)
    #expect(places.excluded(of: try fixture.record("2")) == [url])
  }

  // MARK: The ledger in memory

  @Test("Bulk operations visit the records in the order of their additions, or of the given ids")
  func bulk() async throws {
    let ledger = MemoryLedger()
    let store = try await ledger.open()
    _ = try await store.add(
      try ids.map { LedgerAddition(request: try DownloadRequest("https://example.org/a", id: $0), arrival: 1) }, at: now
    )
    let seen = Watched<[DownloadID]>([])
    #expect(try await store.transition(.all, .pause, at: now).ids == ids)
    let some: [DownloadID] = ["d9", "d3", "d9", "d5", "none", "d3"]
    #expect(try await store.transition(.ids(some), .resume, at: now).ids == ["d9", "d3", "d5"])
    #expect(try await store.transition(.matching(.ids(some)), .pause, at: now).ids == ids.filter(some.contains))
    let changed = try await store.update(.all, at: now) { record in
      seen.update { $0.append(record.id) }
      record.request.metadata["number"] = record.id.rawValue
    }
    #expect(changed.ids == ids && seen.value == ids)
    seen.update { $0 = [] }
    // The second call ranks all of them.
    try await store.rank(by: .arrival)
    try await store.rank(
      by: Ranking(name: "noted") { context in
        seen.update { $0.append(context.id) }
        return Rank()
      })
    #expect(seen.value == ids)
    seen.update { $0 = [] }
    _ = try await store.remove(.all) { record in
      seen.update { $0.append(record.id) }
      return false
    }
    #expect(seen.value == ids)
  }
}
