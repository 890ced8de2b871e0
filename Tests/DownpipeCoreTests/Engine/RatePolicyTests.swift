import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Rate policies in a downloader: transfers pause by the injected clock, and a policy can be replaced meanwhile.
@Suite(.endsHangs)
struct RatePolicyTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// A second for each 10,000 bytes by default; counts them.
  private final class Slow: RatePolicy, RateSession {
    let id: String
    let counted = Watched<[DownloadID: Int]>([:])
    private let until = Watched(Duration.zero)
    private let rate: Double

    init(id: String = "Slow", rate: Double = 10_000) {
      self.id = id
      self.rate = rate
    }

    func start(time: any TimeSource) -> any RateSession { self }

    func pause(after bytes: Int, of transfer: TransferContext, at now: Duration) -> Duration {
      counted.update { $0[transfer.id, default: 0] += bytes }
      return until.update { until in
        until = max(until, now) + .seconds(Double(bytes) / rate)
        return until - now
      }
    }
  }

  private func downloader(_ source: FakeSource, _ policies: [Slow]) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      for policy in policies { policy }
      storage
      AnyLedger(ledger)
    }
  }

  @Test func aTransferPausesAsItsPolicySays() async throws {
    let slow = Slow()
    let source = FakeSource([url: [.init(bytes).with { $0.chunkSize = 10_000 }]])
    let downloader = try await downloader(source, [slow])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    let begin = time.now
    for _ in 0..<10 {
      await time.sleeper(dueIn: .seconds(1), purpose: .pace)
      time.advance(by: .seconds(1))
    }
    let artifact = try await download.value
    #expect(time.now - begin == .seconds(10))
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(slow.counted.value == ["a": bytes.count])
    await downloader.shutdown()
  }

  @Test("a transfer that ends before it has paused is paid for by the next one, which then asks the server")
  func theNextTransferWaits() async throws {
    struct Hasty: Source, SourceSession {
      func accepts(_ url: URL) -> Bool { true }
      func open(_ request: SourceRequest) async throws -> SourceReply {
        _ = request.pace.pause(after: 10_000)
        return SourceReply(coverage: .whole, length: .known(3), body: .bytes([1, 2, 3]))
      }
    }
    let (storage, slow) = (storage, Slow())
    let downloader = try await Downloader(options: options) {
      Hasty()
      slow
      storage
    }
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    let next = try await downloader.add(DownloadRequest(url, id: "b"))
    await time.sleeper(dueIn: .seconds(1), purpose: .pace)
    #expect(slow.counted.value == ["a": 10_000, "b": 0])
    time.advance(by: .seconds(1))
    _ = try await next.value
    #expect(slow.counted.value == ["a": 10_000, "b": 10_000])
    await downloader.shutdown()
  }

  @Test("a policy sees the present request of a running transfer")
  func changedRequests() async throws {
    /// Lets nothing arrive until the request says so.
    struct Permitted: RatePolicy, RateSession {
      func start(time: any TimeSource) -> any RateSession { self }
      func pause(after bytes: Int, of transfer: TransferContext, at now: Duration) -> Duration {
        let isPermitted = transfer.metadata["permitted"] == "yes" && transfer.candidate.tags == ["permitted"]
        return isPermitted ? .zero : .seconds(1)
      }
    }
    let source = FakeSource([url: [.init(bytes).with { $0.chunkSize = 50_000 }]])
    let (storage, ledger) = (storage, ledger)
    let downloader = try await Downloader(options: options) {
      source
      Permitted()
      storage
      AnyLedger(ledger)
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    for _ in 0..<3 {
      await time.sleeper(dueIn: .seconds(1), purpose: .pace)
      time.advance(by: .seconds(1))
    }
    await time.sleeper(dueIn: .seconds(1), purpose: .pace)
    _ = try await downloader.update("a") {
      $0.metadata["permitted"] = "yes"
      $0.tags = ["permitted"]
    }
    time.advance(by: .seconds(1))
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.count == 1)
    await downloader.shutdown()
  }

  @Test func aRemovedPolicyLetsRunningTransfersGo() async throws {
    let slow = Slow()
    let source = FakeSource([url: [.init(bytes).with { $0.chunkSize = 50_000 }]])
    let downloader = try await downloader(source, [slow])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await time.sleeper(dueIn: .seconds(1), purpose: .pace)
    #expect(await downloader.removeRatePolicy(id: "Slow"))
    #expect(await !downloader.removeRatePolicy(id: "Slow"))
    // A pause is at most a second long, so that changes take effect soon.
    time.advance(by: .seconds(1))
    _ = try await download.value
    #expect(slow.counted.value == ["a": 50_000])
    await downloader.shutdown()
  }

  @Test func aPolicyCanBeAddedWhileATransferRuns() async throws {
    let source = FakeSource([url: [.init(bytes).with { $0.chunkSize = 50_000 }.holding(after: 50_000)]])
    let downloader = try await downloader(source, [])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let slow = Slow()
    await downloader.replace(slow)
    source.release()
    await time.sleeper(dueIn: .seconds(1), purpose: .pace)
    #expect(slow.counted.value == ["a": 50_000])
    await downloader.removeRatePolicy(id: "Slow")
    time.advance(by: .seconds(1))
    _ = try await download.value
    await downloader.shutdown()
  }

  @Test func theLongestPauseCountsAndCancellingEndsIt() async throws {
    let (slow, other) = (Slow(), Slow(id: "Other"))
    let source = FakeSource([url: [.init(bytes).with { $0.chunkSize = 50_000 }]])
    let downloader = try await downloader(source, [slow, other])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await time.sleeper(dueIn: .seconds(1), purpose: .pace)
    #expect(try await download.pause())
    #expect(storage.partials.values.map(\.count) == [50_000])
    #expect(slow.counted.value == other.counted.value)
    await downloader.shutdown()
  }

  @Test("A transfer that a policy slows down is not too slow; a server that stalls is")
  func aLimitIsNoStall() async throws {
    let rest = bytes.prefix(20_000)
    let source = FakeSource([
      url: [.init(Array(rest)).with { $0.chunkSize = 10_000 }.holding(after: 10_000), .init(Array(rest))]
    ])
    // The clock goes on while a busy machine starts the next attempt, which may be too slow, too.
    let retry = FakeRetryPolicy { _ in .resume(after: .zero) }
    var options = options
    options.minimumSpeed = MinimumSpeed(bytesPerSecond: 1000, over: .seconds(10))
    let slow = Slow(rate: 200)
    let downloader = try await Downloader(options: options) {
      source
      slow
      retry
      storage
      ledger
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    // The first chunk takes 50 seconds, in which no other bytes arrive.
    for _ in 0..<50 {
      await time.sleeper(dueIn: .seconds(1), purpose: .pace)
      await time.sleeper(dueIn: .milliseconds(100), purpose: .progress)
      time.advance(by: .seconds(1))
    }
    await source.held(atLeast: 1)
    #expect(retry.failures.isEmpty)
    let artifact = try await advancing { try await download.value }
    #expect(storage.bytes(of: artifact) == Array(rest))
    #expect(Set(retry.failures.map(\.error.code)) == [.timedOut])
    await downloader.shutdown()
  }

  @Test func equalIDsAreRefused() async throws {
    let error = await #expect(throws: DownloadError.self) { try await downloader(FakeSource(), [Slow(), Slow()]) }
    #expect(error?.code == .invalidPipeline)
  }

  @Test func thePipelineNamesItsRates() {
    let pipeline = Pipeline {
      FakeSource()
      storage
      Slow()
    }
    #expect(pipeline.description.contains("\n  rate          Slow\n"))
  }
}
