import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// FEATURES A, LYF: "snapshots handed out are copies, safe to show; refresh interval is set by the app; one callback
/// with all changed items".
@Suite(.endsHangs)
struct ChangesIntervalTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test("LYF: the refresh interval is set by the app; one callback has all changed items")
  func theAppSetsTheInterval() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source)
    let batches = Watched<[DownloadChanges]>([])
    let changes = downloader.changes(every: .seconds(5))
    let reader = Task { for await batch in changes { batches.update { $0.append(batch) } } }
    // The snapshot comes at once, also without downloads.
    await batches.wait { $0.count == 1 }
    #expect(batches.value[0].isSnapshot && batches.value[0].isComplete && batches.value[0].statuses.isEmpty)
    try await downloader.add(contentsOf: requests(3))
    await source.held(atLeast: 3)
    await time.sleeper(dueIn: .seconds(5), purpose: .changes)
    time.advance(by: .milliseconds(4999))
    try await settle(downloader)
    #expect(batches.value.count == 1)
    time.advance(by: .milliseconds(1))
    await batches.wait { $0.count == 2 }
    #expect(Set(batches.value[1].statuses.map(\.id)) == ["d0", "d1", "d2"] && !batches.value[1].isSnapshot)
    // All that changes in the next interval comes together, with the latest status of each download.
    await time.sleeper(dueIn: .seconds(5), purpose: .changes)
    source.release()
    try await downloader.waitUntilIdle()
    try await downloader.remove("d2")
    #expect(batches.value.count == 2)
    time.advance(by: .seconds(5))
    await batches.wait { $0.count == 3 }
    let last = try #require(batches.value.last)
    #expect(Dictionary(last.statuses.map { ($0.id, $0.state.phase) }) { $1 } == ["d0": .finished, "d1": .finished])
    #expect(last.removed == ["d2"])
    await downloader.shutdown()
    await reader.value
  }

  @Test("LYF: snapshots handed out are copies, safe to show")
  func snapshotsAreCopies() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source)
    var changes = downloader.changes(every: .zero).makeAsyncIterator()
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let before = try #require(await changes.next()?.statuses.first)
    let copy = before
    source.release()
    try await downloader.waitUntilIdle()
    #expect(before == copy)
    #expect(before.state.phase != .finished)
    await downloader.shutdown()
  }

  @Test func afterAQuietIntervalAChangeIsReportedAtOnce() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), gates: [FakeGate(.closed("not yet"))])
    var changes = downloader.changes(every: .seconds(60)).makeAsyncIterator()
    #expect(await changes.next()?.isSnapshot == true)
    time.advance(by: .seconds(60))
    try await downloader.add(DownloadRequest(url, id: "a"))
    // The clock does not move from here on.
    #expect(await changes.next()?.statuses.map(\.id) == ["a"])
    await downloader.shutdown()
  }

  /// The clock does not move: a reader with a long interval does not outlive the downloader.
  @Test func theEndDoesNotWaitForTheInterval() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), gates: [FakeGate(.closed("not yet"))])
    let changes = downloader.changes(every: .seconds(3600))
    let reader = Task { await changes.reduce(into: Set<DownloadID>()) { $0.formUnion($1.statuses.map(\.id)) } }
    await time.sleeper(dueIn: .seconds(3600), purpose: .changes)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await downloader.shutdown()
    #expect(await reader.value == ["a"])
  }

  /// The clock does not move.
  @Test func aReaderGetsTheChangesSoFarAtOnceWhenAsked() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)))
    let changes = downloader.changes(every: .seconds(3600))
    // Before the reader asks.
    try await downloader.add(DownloadRequest(url, id: "a"))
    try await downloader.waitUntilIdle()
    downloader.deliverChanges()
    let batches = Watched<[DownloadChanges]>([])
    let reader = Task { for await batch in changes { batches.update { $0.append(batch) } } }
    await batches.wait { $0.count == 1 }
    #expect(batches.value[0].statuses.map(\.state.phase) == [.finished])
    // While the reader sleeps.
    await time.sleeper(dueIn: .seconds(3600), purpose: .changes)
    try await downloader.add(DownloadRequest(url, id: "b"))
    try await downloader.waitUntilIdle()
    #expect(batches.value.count == 1)
    downloader.deliverChanges()
    await batches.wait { $0.count == 2 }
    #expect(batches.value[1].statuses.map(\.id) == ["b"])
    await downloader.shutdown()
    await reader.value
  }

  @Test func aCancelledReaderEndsAtOnce() async throws {
    let downloader = try await downloader(FakeSource())
    for interval in [Duration.zero, .seconds(3600)] {
      let changes = downloader.changes(every: interval)
      let reader = Task { for await _ in changes {} }
      // After the snapshot.
      if interval > .zero { await time.sleeper(dueIn: interval, purpose: .changes) }
      reader.cancel()
      await reader.value
    }
    await downloader.shutdown()
  }

  @Test func aReaderThatDoesNotReadCostsBoundedMemory() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), gates: [FakeGate(.closed("not yet"))])
    let changes = downloader.changes(every: .zero)
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next()?.statuses.isEmpty == true)
    try await downloader.add(contentsOf: requests(10_050))
    // More than are kept have changed, and more than a snapshot holds are there.
    let batch = try #require(await iterator.next())
    #expect(batch.statuses.count == 10_000 && batch.isSnapshot && !batch.isComplete)
    // What has changed is told although the snapshot does not have it.
    let last = try await downloader.statuses(DownloadQuery(order: .arrival, limit: 1, offset: 10_049))[0].id
    _ = try await downloader.remove("d0")
    _ = try await downloader.pause(last)
    // After a second snapshot it waits for half a second.
    let clock = Task { [time] in
      while !Task.isCancelled {
        await time.advanceToNextSleeper()
        await Task.yield()
      }
    }
    var told: Set<DownloadID> = []
    while told.count < 2, let batch = await iterator.next() {
      told.formUnion(batch.removed + batch.statuses.filter { $0.state == .paused }.map(\.id))
    }
    clock.cancel()
    #expect(told == ["d0", last])
    await downloader.shutdown()
  }
}
