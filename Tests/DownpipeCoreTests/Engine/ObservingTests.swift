import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

/// What an observer can measure: the times of events, the beginning of runs, all bytes, and the counts of the ledger.
@Suite(.endsHangs)
struct ObservingTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test func eventsHaveTheTimeOfTheChange() async throws {
    let observer = RecordingObserver()
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let downloader = try await downloader(source, observers: [observer])
    time.advance(by: .seconds(3))
    time.jumpDate(by: .seconds(3600))
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let (instant, date) = (time.now, time.date)
    time.advance(by: .seconds(2))
    source.release()
    _ = await observer.wait(for: "a", toBe: .finished)
    #expect(observer.events.first?.instant == instant)
    #expect(observer.events.first?.date == date)
    #expect(observer.events.last?.instant == instant + .seconds(2))
    await downloader.shutdown()
  }

  @Test func aRunBeginsWithItsStateAndEndsWithAllBytes() async throws {
    let observer = RecordingObserver()
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), observers: [observer])
    try await downloader.add(DownloadRequest(url, id: "a"))
    _ = await observer.wait(for: "a", toBe: .finished)
    // A download that starts at once does not wait.
    let phases = observer.states(of: "a").map(\.phase).drop { $0 == .waiting }
    #expect(Array(phases) == [.transferring, .processing, .finished])
    let progress = observer.events(of: "a").compactMap {
      if case .progress(let progress) = $0 { progress } else { nil }
    }
    #expect(progress.last?.received == 100_000)
    #expect(progress.last?.fetched == 100_000)
    #expect(progress.last?.total == .known(100_000))
    await downloader.shutdown()
  }

  @Test func aFailedTransferReportsItsBytesBeforeItsFailure() async throws {
    let observer = RecordingObserver()
    let broken = DownloadError(.network, "broken")
    let source = FakeSource([url: [.init(bytes).failing(after: 30_000, with: broken), .init(bytes)]])
    let downloader = try await downloader(
      source, observers: [observer], retry: FakeRetryPolicy(.resume(after: .zero)))
    try await downloader.add(DownloadRequest(url, id: "a"))
    _ = await observer.wait(for: "a", toBe: .finished)
    let events = observer.events(of: "a")
    let failure = try #require(
      events.firstIndex { if case .attemptFailed = $0 { true } else { false } })
    #expect(
      events[failure - 1] == .progress(TransferProgress(received: 30_000, total: .known(100_000), fetched: 30_000)))
    // The second run fetches the rest and, to compare them, the last 1,000 bytes again.
    let fetched = events.compactMap { if case .progress(let progress) = $0 { progress.fetched } else { nil } }
    #expect(fetched.last == 71_000)
    await downloader.shutdown()
  }

  @Test func countsIncludeDownloadsOfEarlierProcesses() async throws {
    let gate = FakeGate(.closed("not yet"))
    let earlier = try await downloader(FakeSource(everyURL: .init(bytes)), gates: [gate])
    try await earlier.add(contentsOf: requests(3))
    await earlier.shutdown()
    let counter = CountingObserver()
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      FakeGate(.closed("not yet"))
      counter
      storage
      ledger
    }
    #expect(await counter.first() == [.waiting: 3])
    await downloader.shutdown()
  }
}

/// Reads the counts once, when it starts.
private final class CountingObserver: Observer {
  private let counts = Watched<[DownloadState.Phase: Int]?>(nil)

  func observe(_ events: AsyncStream<DownloadEvent>) async { for await _ in events {} }

  func observe(_ events: AsyncStream<DownloadEvent>, in context: ObserverContext) async {
    let read = try? await context.counts()
    counts.update { $0 = read }
    await observe(events)
  }

  func first() async -> [DownloadState.Phase: Int]? {
    await counts.wait { $0 != nil }
    return counts.value
  }
}
