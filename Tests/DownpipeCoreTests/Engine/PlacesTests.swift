import DownpipeTesting
import Foundation
import Testing

@testable import DownpipeCore

/// Who counts among those that run.
@Suite(.timeLimit(.minutes(1)))
struct PlacesTests {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private func downloader(_ source: FakeSource, ledger: FaultyLedger) async throws -> Downloader {
    try await Downloader(options: DownloaderOptions(time: time)) {
      source
      FakeAdmissionPolicy { _, running in running.total < 1 ? .admitted : .full("1") }
      FakeRetryPolicy(.resume(after: .zero))
      storage
      AnyLedger(ledger)
    }
  }

  /// The first call of each download is the storage's note.
  private static let lastSave = 2

  @Test func theNextOneDoesNotWaitForTheLedgersWordOnTheLast() async throws {
    let slow = FaultyLedger(ledger)
    slow.hold(.save, at: Self.lastSave)
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(source, ledger: slow)
    let first = try await downloader.add(DownloadRequest(url, id: "a"))
    await slow.calls(of: .save, atLeast: Self.lastSave)
    // All of the first is there, and the ledger does not know yet: the second one goes all the way.
    _ = try await downloader.add(DownloadRequest(url, id: "b")).value
    #expect(try await first.status.state.phase == .processing)
    let idle = Task { try await downloader.waitUntilIdle() }
    slow.release()
    _ = try await first.value
    try await idle.value
    #expect(source.requests.count == 2)
    await downloader.shutdown()
  }

  @Test func aLowerLimitCountsThoseThatWork() async throws {
    let slow = FaultyLedger(ledger)
    slow.hold(.save, at: Self.lastSave)
    let source = FakeSource(everyURL: .init(bytes))
    let other = URL(string: "https://example.org/other")!
    source.script(other, .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, ledger: slow)
    let first = try await downloader.add(DownloadRequest(url, id: "a"))
    await slow.calls(of: .save, atLeast: Self.lastSave)
    let second = try await downloader.add(DownloadRequest(other, id: "b"))
    await source.held(atLeast: 1)
    // The first has the better rank, but needs no place any more.
    await downloader.replace(FakeAdmissionPolicy { _, running in running.total < 1 ? .admitted : .full("1") })
    source.release()
    _ = try await second.value
    #expect(source.requests.count == 2)
    slow.release()
    _ = try await first.value
    await downloader.shutdown()
  }

  @Test func aPlaceIsGivenAwayOnce() async throws {
    let faulty = FaultyLedger(ledger)
    faulty.fail(.save, at: Self.lastSave, with: DownloadError(.ledger, "disk full"))
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    source.script(url, .init(bytes))
    let downloader = try await downloader(source, ledger: faulty)
    let first = try await downloader.add(DownloadRequest(url, id: "a"))
    // The ledger is told again.
    _ = try await first.value
    try await downloader.add(
      contentsOf: ["b", "c"].map { name in
        DownloadRequest(try #require(URL(string: "https://example.org/\(name)")), id: DownloadID(name))
      })
    await source.held(atLeast: 1)
    #expect(try await downloader.counts()[.transferring] == 1)
    source.release()
    try await downloader.waitUntilIdle()
    #expect(source.requests.count == 3)
    await downloader.shutdown()
  }

  @Test func aLedgerThatDoesNotAnswerGathersFewRuns() async throws {
    let pipeline = Pipeline {
      FakeSource()
      storage
    }
    let engine = Engine(
      pipeline: pipeline, sources: [], store: try await ledger.open(), options: DownloaderOptions(time: time))
    try await gather(in: engine)
  }

  private func gather(in engine: isolated Engine) throws {
    let runs = try (0..<70).map { number in
      let request = try DownloadRequest("https://example.org/\(number)", id: DownloadID("\(number)"))
      let record = DownloadRecord(
        request: request, generation: Int64(number), arrival: Int64(number), rank: Rank(), createdAt: time.date)
      return Run(record, at: .zero, sourceEpoch: 0)
    }
    for run in runs {
      engine.running[run.id] = run
      engine.counts.insert(run.candidate)
    }
    for run in runs { engine.freePlace(of: run) }
    engine.takeFreedPlaces()
    // The others wait for the ledger's word.
    #expect(engine.counts.total == 6)
    let had = runs.filter { engine.takePlace(from: $0) }
    #expect(had.count == 6)
    #expect(engine.counts.total == 0)
  }
}
