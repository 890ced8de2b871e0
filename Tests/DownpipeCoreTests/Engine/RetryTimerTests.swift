import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// A test advances its clock as soon as it has seen a state, even if the engine does not sleep yet.
@Suite(.endsHangs)
struct RetryTimerTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 10)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test("a clock that advances as soon as the wait is published", arguments: 0..<40)
  func aRetryIsNotMissed(_ run: Int) async throws {
    // Each attempt begins at a different fraction of a second.
    time.advance(by: .milliseconds(run * 37))
    let source = FakeSource([url: [.status(503), .status(503), .init(bytes)]])
    let downloader = try await downloader(source, retry: FakeRetryPolicy { _ in .resume(after: .seconds(10)) })
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    var attempts = 1
    for await event in download.events {
      guard case .state(.waiting(.retry)) = event.kind, source.requests.count == attempts else { continue }
      time.advance(by: .seconds(9.9))
      time.advance(by: .seconds(0.1))
      await source.requests(atLeast: attempts + 1)
      attempts += 1
      if attempts == 3 { break }
    }
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(time.now == .milliseconds(run * 37 + 20_000))
    await downloader.shutdown()
  }
}
