import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The failures that a retry policy gets.
@Suite(.endsHangs)
struct FailureKindTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 1000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test func failuresOfOneKindAreCountedAndTheRequestIsThere() async throws {
    let retry = FakeRetryPolicy { $0.attempts < 5 ? .resume(after: .zero) : .giveUp }
    let statuses: [FakeSource.Script] = [.status(404), .status(404), .status(503), .status(404)]
    let downloader = try await downloader(FakeSource([url: statuses + [.init(bytes)]]), retry: retry)
    let request = DownloadRequest(url, id: "a", tags: ["film"]).with(\.metadata, ["k": "v"])
    _ = try await downloader.add(request).value
    #expect(retry.failures.map(\.repeated) == [1, 2, 1, 1])
    #expect(retry.failures.map(\.consecutive) == [1, 2, 3, 4])
    #expect(retry.failures.allSatisfy { $0.request == request })
    await downloader.shutdown()
  }
}
