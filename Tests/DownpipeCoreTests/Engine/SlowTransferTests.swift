import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Transfers below the minimum speed, and downloads without enough descriptors.
@Suite(.endsHangs)
struct SlowTransferTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private func downloader(
    _ source: FakeSource, retry: FakeRetryPolicy, interceptor: FakeInterceptor = FakeInterceptor()
  ) async throws -> Downloader {
    var options = options
    options.minimumSpeed = MinimumSpeed(bytesPerSecond: 1000, over: .seconds(10))
    return try await Downloader(options: options) {
      source
      interceptor
      retry
      limit(4)
      storage
      ledger
    }
  }

  /// Advances the clock when the ticker sleeps.
  private func advance(_ seconds: Int) async {
    await time.sleeper(dueIn: .milliseconds(100), purpose: .progress)
    time.advance(by: .seconds(seconds))
  }

  @Test func aBodyThatStallsIsGivenUpAndTriedAgain() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 5000), .init(bytes)]])
    let retry = FakeRetryPolicy(.resume(after: .zero))
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    await advance(9)
    await advance(1)
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(retry.failures.map(\.error.code) == [.timedOut])
    #expect(retry.failures.first?.consecutive == 1)
    #expect(source.requests.map(\.range) == [nil, RequestedRange(from: 4000)], "received bytes are kept")
    #expect(try await download.status.attempts == 2)
    await downloader.shutdown()
  }

  @Test func aTransferThatIsFastEnoughGoesOn() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 50_000)]])
    let retry = FakeRetryPolicy(.giveUp)
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    await advance(11)
    await advance(9)
    await time.sleeper(dueIn: .milliseconds(100), purpose: .progress)
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(retry.failures.isEmpty && source.requests.count == 1)
    await downloader.shutdown()
  }

  @Test("the time before the body begins does not count")
  func waitingForTheAnswerIsNotSlow() async throws {
    let answer = Watched(false)
    let interceptor = FakeInterceptor { request, next in
      await answer.wait { $0 }
      return try await next(request)
    }
    let source = FakeSource([url: [.init(bytes).holding(after: 5000)]])
    let retry = FakeRetryPolicy(.giveUp)
    let downloader = try await downloader(source, retry: retry, interceptor: interceptor)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await advance(100)
    await time.sleeper(dueIn: .milliseconds(100), purpose: .progress)
    answer.update { $0 = true }
    await source.held(atLeast: 1)
    await advance(9)
    await time.sleeper(dueIn: .milliseconds(100), purpose: .progress)
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(retry.failures.isEmpty)
    await downloader.shutdown()
  }

  @Test("a pause before the speed check is a pause, not a failure")
  func aPausedTransferIsNotSlow() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 5000), .init(bytes)]])
    let retry = FakeRetryPolicy(.giveUp)
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await download.pause()
    time.advance(by: .seconds(100))
    #expect(try await download.status.state == .paused)
    try await download.resume()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(retry.failures.isEmpty)
    await downloader.shutdown()
  }

  // MARK: Descriptors

  @Test func aDownloadShortOfDescriptorsGoesOnWhenAnotherHasFinished() async throws {
    let all = requests(8)
    let short = FakeSource.Script.failingToOpen(DownloadError(.tooManyOpenFiles, "EMFILE"))
    var scripts = Dictionary(uniqueKeysWithValues: all.map { ($0.url, [FakeSource.Script(bytes).holding(after: 10)]) })
    scripts[all[3].url]?.insert(short, at: 0)
    let source = FakeSource(scripts)
    let retry = FakeRetryPolicy { _ in .wait(for: .descriptors, atMost: .seconds(600)) }
    let downloader = try await downloader(source, retry: retry)
    try await downloader.add(contentsOf: all)
    await source.held(atLeast: 3)
    await time.sleeper(dueIn: .seconds(600))
    try await settle(downloader)
    #expect(source.requests.count == 4, "half as many may run as before, so no other begins")
    guard case .waiting(.missing(.descriptors, _, let error)) = try await downloader.status(of: "d3")?.state else {
      Issue.record("\(String(describing: try await downloader.status(of: "d3")?.state))")
      return
    }
    #expect(error.code == .tooManyOpenFiles)
    source.release()
    try await downloader.waitUntilIdle()
    #expect(time.now == .zero, "the download did not wait for its due time")
    #expect(try await downloader.counts() == [.finished: 8])
    #expect(try await downloader.status(of: "d3")?.attempts == 2)
    await downloader.shutdown()
  }
}
