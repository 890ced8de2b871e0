import DownpipeTesting
import Foundation

@_spi(Ledger) @testable import DownpipeCore

/// Runs that do no work, for tests of the values that hold runs.
struct RunFixture: Sendable {
  let time = VirtualTime()
  let storage = FakeStorage()
  let store: any LedgerStore
  let pipeline: Pipeline
  let context: EngineContext
  let stages: StartedPipeline

  init(ledger: any Ledger = MemoryLedger()) async throws {
    store = try await ledger.open()
    let (source, storage) = (FakeSource(everyURL: .init([1, 2, 3])), storage)
    pipeline = Pipeline {
      source
      storage
    }
    context = EngineContext(options: DownloaderOptions(time: time), store: store, pipeline: pipeline)
    stages = StartedPipeline(pipeline, sessions: [source], sourcesVersion: 0)
  }

  /// An engine whose loop does not run.
  var engine: Engine {
    Engine(pipeline: pipeline, sessions: stages.sessions, store: store, options: DownloaderOptions(time: time))
  }

  /// A record of a download that waits for its first attempt.
  func record(_ id: DownloadID, host: String = "example.org", tags: Set<String> = [], rank: Int64 = 1) throws
    -> DownloadRecord
  {
    DownloadRecord(
      request: try DownloadRequest("https://\(host)/\(id.rawValue)", id: id, tags: tags), generation: 1, arrival: rank,
      rank: Rank().ascending(rank), createdAt: time.date)
  }

  /// A run that was never started.
  func run(_ id: DownloadID, host: String = "example.org", tags: Set<String> = [], rank: Int64 = 1) throws -> Run {
    Run(try record(id, host: host, tags: tags, rank: rank), leasedAt: time.now, stages, context)
  }

  /// A run of a record that the ledger has leased.
  func leased(_ id: DownloadID) async throws -> Run {
    let request = try DownloadRequest("https://example.org/\(id.rawValue)", id: id)
    _ = try await store.add([LedgerAddition(request: request, arrival: 1)], at: time.date)
    let leased = try await store.lease(
      LeaseRequest(now: time.date, until: time.date.addingTimeInterval(30), select: { _ in .take }))
    guard let record = leased.first else { throw DownloadError(.ledger, "nothing was leased") }
    return Run(record, leasedAt: time.now, stages, context)
  }
}
