import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Failures, and how downloads continue after them.
@Suite(.endsHangs)
struct DownloaderFailureTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test func aBrokenBodyGoesOnWhereItBroke() async throws {
    let broken = DownloadError(.network, "cut")
    let source = FakeSource([url: [.init(bytes).failing(after: 40_000, with: broken), .init(bytes)]])
    let retry = FakeRetryPolicy(.resume(after: .seconds(3)))
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await time.sleeper(dueIn: .seconds(3))
    let waiting = try await download.status
    guard case .waiting(.retry(_, let error)) = waiting.state else {
      Issue.record("\(waiting.state)")
      return
    }
    #expect(error.code == .network)
    #expect(error.stage == "FakeSource")
    #expect(error.attempt == 1)
    time.advance(by: .seconds(3))
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.count == 2)
    #expect(source.requests.last?.range == RequestedRange(from: 39_000))
    #expect(source.requests.last?.validator?.ifRange != nil)
    let status = try await download.status
    #expect(status.resumedFrom == 40_000)
    #expect(status.attempts == 2)
    #expect(status.bytesFetched == 101_000)
    await downloader.shutdown()
  }

  @Test func withoutAValidatorTheOverlapIsCompared() async throws {
    let plain = FakeSource.Script(bytes).with { $0.validator = nil }
    let source = FakeSource([url: [plain.failing(after: 40_000, with: DownloadError(.network, "cut")), plain]])
    let downloader = try await downloader(source, retry: FakeRetryPolicy(.resume(after: .zero)))
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.last?.range == RequestedRange(from: 39_000))
    await downloader.shutdown()
  }

  @Test("the bytes of a changed file are never joined with the old bytes", arguments: [true, false])
  func changedContent(hasValidator: Bool) async throws {
    let other = DownloadFixtures.pattern(size: 100_000, seed: 99)
    func script(_ bytes: [UInt8]) -> FakeSource.Script {
      FakeSource.Script(bytes).with { if !hasValidator { $0.validator = nil } }
    }
    let source = FakeSource([
      url: [script(bytes).failing(after: 40_000, with: DownloadError(.network, "cut")), script(other)]
    ])
    let retry = FakeRetryPolicy { failure in
      failure.error.code == .contentChanged ? .restart(after: .zero) : .resume(after: .zero)
    }
    let downloader = try await downloader(source, retry: retry)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == other)
    await downloader.shutdown()
  }

  @Test func aWrongContentLengthIsAFailure() async throws {
    let short = FakeSource.Script(bytes).with { $0.claimedLength = .known(100_001) }
    let source = FakeSource([url: [short]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .lengthMismatch }
    let long = FakeSource.Script(bytes).with { $0.claimedLength = .known(99_999) }
    source.script(url, long)
    let second = try await downloader.add(DownloadRequest(url, id: "b"))
    await #expect { try await second.value } throws: { ($0 as? DownloadError)?.code == .lengthMismatch }
    #expect(storage.published.isEmpty)
    await downloader.shutdown()
  }

  @Test func tooLargeStopsBeforeTheDiskIsFull() async throws {
    let source = FakeSource([url: [FakeSource.Script(bytes).with { $0.announcesLength = false }]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a").with(\.maximumSize, 50_000))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .tooLarge }
    #expect(storage.partials.values.allSatisfy { $0.count <= 50_000 })
    await downloader.shutdown()
  }

  @Test func mirrorsAreAskedWhenTheFirstPlaceFailsForGood() async throws {
    let mirror = URL(string: "https://mirror.example.net/file.bin")!
    let source = FakeSource([url: [.status(404)], mirror: [.init(bytes)]])
    let downloader = try await downloader(source)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror])).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.map(\.url) == [url, mirror])
    await downloader.shutdown()
  }

  @Test func aFullDiskKeepsWhatIsThere() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    storage.fail(.write, at: 4, times: 1, with: DownloadError(.noSpace, "full"))
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .noSpace }
    try await download.resume()
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.last?.range == RequestedRange(from: 3 * 16_384 - 1000))
    await downloader.shutdown()
  }
}
