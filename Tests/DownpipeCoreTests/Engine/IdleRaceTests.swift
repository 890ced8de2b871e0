@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// Callers that begin to wait until the downloader is idle while the ledger is asked for others.
@Suite(.endsHangs)
struct IdleRaceTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test("An answer of the ledger releases only the callers that had begun to wait before the question")
  func anOlderAnswer() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, ledger: faulty)
    faulty.hold(.isBusy, .after)
    let first = Task { try await downloader.waitUntilIdle() }
    await faulty.held(atLeast: 1)
    let adding = Task { [url] in try await downloader.add(DownloadRequest(url, id: "a")) }
    try await settle(downloader)
    let phases = Task {
      try await downloader.waitUntilIdle()
      return try await downloader.counts()
    }
    while await downloader.engine.state.idleWaiters.count < 2 { await Task.yield() }
    faulty.release()
    try await first.value
    _ = try await adding.value
    await source.held(atLeast: 1)
    try await settle(downloader)
    source.release()
    #expect(try await phases.value == [.finished: 1])
    await downloader.shutdown()
  }
}
