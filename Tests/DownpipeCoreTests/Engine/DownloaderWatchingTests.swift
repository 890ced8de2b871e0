import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The events and statuses that watchers get.
@Suite(.endsHangs)
struct DownloaderWatchingTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

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
    await time.sleeper(dueIn: .milliseconds(100), purpose: .progress)
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

  @Test func theTimeOfATransferIsThatOfItsLastBytes() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 50_000)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let start = time.date
    for tenths in 1...3 {
      await time.sleeper(dueIn: .milliseconds(100), purpose: .progress)
      time.advance(by: .milliseconds(100))
      await time.sleeper(dueIn: .milliseconds(100), purpose: .progress)
      // The bytes have arrived before the first measurement, and none since.
      #expect(try await download.status.updatedAt == start.addingTimeInterval(0.1), "\(tenths)")
    }
    source.release()
    _ = try await download.value
    await downloader.shutdown()
  }

  @Test func changesComeInBatchesWithTheLatestStatus() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(source)
    var changes = downloader.changes(every: .zero).makeAsyncIterator()
    #expect(await changes.next()?.isSnapshot == true)
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

  @Test func watchersOfNewDownloadsCostTheLedgerNothing() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes))
    let observer = RecordingObserver()
    let downloader = try await downloader(source, observers: [observer], ledger: faulty)
    await downloader.setSuspended(true)
    try await downloader.add(contentsOf: (0..<50).map { DownloadRequest(url, id: "\($0)") })
    _ = await observer.wait { events in Set(events.map(\.id)).count == 50 }
    // Once for the watcher, to find older downloads.
    #expect(faulty.calls.count { $0 == .records } <= 1)
    await downloader.shutdown()
  }
}
