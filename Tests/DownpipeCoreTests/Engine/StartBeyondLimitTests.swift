import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// The limit of a host in pipelines with segments, whose connections count for it, too: a download that is started by
/// hand does not wait for it, and URLs without a host have none.
@Suite(.endsHangs)
struct StartBeyondLimitTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// One download and one connection for each host, as `Limits(perHost: 1)` and `Segmented()` have it.
  private func downloader(_ source: FakeSource) async throws -> Downloader {
    var options = options
    // Time goes on while a busy machine does nothing.
    options.minimumSpeed = nil
    return try await Downloader(options: options) {
      source
      FakeSegmentPolicy(maximum: 4)
      FakeAdmissionPolicy(maximumPerHost: 1) { candidate, running in
        candidate.host.isEmpty || running.perHost[candidate.host] == nil ? .admitted : .hostFull("1 of 1")
      }
      FakeRetryPolicy(.giveUp)
      storage
      ledger
    }
  }

  /// Waits until a number of downloads have sent requests, or one of them waits for a connection to the host.
  /// - Returns: Whether all have sent one.
  private func haveAsked(_ count: Int, _ source: FakeSource, _ downloader: Downloader, host: String) async -> Bool {
    let connections = downloader.engine.context.connections
    while Set(source.requests.map(\.id)).count < count {
      if connections.waiting(host) > 0 { return false }
      await Task.yield()
    }
    return true
  }

  @Test func aStartByHandOpensAConnectionBeyondTheLimitOfTheHost() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    try await downloader.add(contentsOf: requests(2))
    await source.held(atLeast: 1)
    #expect(try await downloader.start("d1"))
    #expect(await haveAsked(2, source, downloader, host: "example.org"), "it waits, although it counts as running")
    source.release()
    try await advancing { try await downloader.waitUntilIdle() }
    #expect(try await downloader.counts() == [.finished: 2])
    #expect(downloader.engine.context.connections.count == 0)
    await downloader.shutdown()
  }

  @Test func aStartByHandInThePlaceOfAnotherDownloadTakesItsConnection() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    try await downloader.add(contentsOf: requests(2))
    await source.held(atLeast: 1)
    #expect(try await downloader.start("d1", preempting: .oldest))
    await source.requests(atLeast: 2)
    #expect(try await downloader.status(of: "d0")?.state.phase == .waiting)
    source.release()
    try await advancing { try await downloader.waitUntilIdle() }
    #expect(try await downloader.counts() == [.finished: 2])
    #expect(downloader.engine.context.connections.count == 0)
    await downloader.shutdown()
  }

  @Test func urlsWithoutAHostHaveNoLimit() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    let files = ["a", "b"].map { DownloadRequest(URL(filePath: "/\($0)"), id: DownloadID($0)) }
    try await downloader.add(contentsOf: files)
    #expect(await haveAsked(2, source, downloader, host: ""), "one waits for the other, although both are admitted")
    source.release()
    try await advancing { try await downloader.waitUntilIdle() }
    #expect(try await downloader.counts() == [.finished: 2])
    await downloader.shutdown()
  }
}
