import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The retry policy is asked once for each failure: its decision on a URL is that on the whole run.
@Suite(.endsHangs)
struct MirrorDecisionTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private let mirror = URL(string: "https://mirror.example.net/file.bin")!
  private let odd = DownloadError(.invalidResponse, "no HTTP")

  private func downloader(_ source: FakeSource, retry: FakeRetryPolicy) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      retry
      storage
      ledger
    }
  }

  private struct Question: Hashable, CustomStringConvertible {
    let code: DownloadError.Code
    let consecutive: Int
    let repeated: Int
    let attempts: Int

    init(_ failure: Failure) {
      (code, consecutive) = (failure.error.code, failure.consecutive)
      (repeated, attempts) = (failure.repeated, failure.attempts)
    }

    var description: String { "\(code) \(consecutive) \(repeated) \(attempts)" }
  }

  @Test("each failure of a URL is judged once, as if it were the last URL", arguments: [0, 10_000])
  func oneQuestion(progress: Int) async throws {
    let broken = FakeSource.Script(bytes).failing(after: progress, with: odd)
    let source = FakeSource([url: [broken], mirror: [.init(bytes)]])
    let retry = FakeRetryPolicy { $0.attempts < 4 ? .resume(after: .zero) : .giveUp }
    let downloader = try await downloader(source, retry: retry)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror])).value
    #expect(storage.bytes(of: artifact) == bytes)
    let questions = retry.failures.map(Question.init)
    // Three runs end with a failure; in the fourth run the URL is given up and the mirror is used.
    #expect(questions.map(\.attempts) == [1, 2, 3, 4])
    #expect(questions.map(\.consecutive) == (progress > 0 ? [1, 1, 1, 1] : [1, 2, 3, 4]))
    #expect(Set(questions.map(\.code)) == [.invalidResponse])
    await downloader.shutdown()
  }

  @Test("a decision is made again if a mirror has brought bytes since, which gives the attempts back")
  func progressOfAMirror() async throws {
    let offline = FakeSource.Script.failingToOpen(DownloadError(.offline, "no route"))
    let source = FakeSource([
      url: [offline, offline, .init(bytes)],
      mirror: [.failingToOpen(odd), FakeSource.Script(bytes).failing(after: 10_000, with: odd)],
    ])
    let retry = FakeRetryPolicy { _ in .wait(for: .network, atMost: .zero) }
    let downloader = try await downloader(source, retry: retry)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror])).value
    #expect(storage.bytes(of: artifact) == bytes)
    let questions = retry.failures.map(Question.init)
    #expect(Set(questions.map(\.code)) == [.offline])
    #expect(questions.map(\.attempts) == [1, 2, 2] && questions.map(\.repeated) == [1, 2, 1])
    await downloader.shutdown()
  }

  @Test("a limit on equal failures does not use a mirror one failure too early", arguments: [2, 3])
  func boundsOnEqualFailures(bound: Int) async throws {
    let table = FailureTable.standard.with(.code(.invalidResponse), .resume, because: "once more", attempts: bound)
    let policy = Retry(.constant(.zero, attempts: 10), table: table)
    let source = FakeSource([url: [.failingToOpen(odd)], mirror: [.init(bytes)]])
    let retry = FakeRetryPolicy { policy.decide($0) }
    let downloader = try await downloader(source, retry: retry)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror])).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.map(\.url) == Array(repeating: url, count: bound) + [mirror])
    await downloader.shutdown()
  }

  @Test("without a mirror the same limit ends the download after the same number of attempts")
  func theSameBoundWithoutAMirror() async throws {
    let policy = Retry(.constant(.zero, attempts: 10))
    let source = FakeSource([url: [.failingToOpen(odd)]])
    let downloader = try await downloader(source, retry: FakeRetryPolicy { policy.decide($0) })
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { code($0) == .invalidResponse }
    #expect(source.requests.count == 2)
    await downloader.shutdown()
  }

  @Test func aFailureAboutTheFileAsksNoMirror() async throws {
    let source = FakeSource([url: [.init(bytes)], mirror: [.init(bytes)]])
    let downloader = try await downloader(source, retry: FakeRetryPolicy(.giveUp))
    let download = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror]).with(\.maximumSize, 10))
    await #expect { try await download.value } throws: { code($0) == .tooLarge }
    #expect(source.requests.map(\.url) == [url])
    await downloader.shutdown()
  }

  @Test func aFailureOfTheStorageAsksNoMirror() async throws {
    storage.fail(.write, with: DownloadError(.noSpace, "full"))
    let source = FakeSource([url: [.init(bytes)], mirror: [.init(bytes)]])
    let retry = FakeRetryPolicy(.giveUp)
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror]))
    await #expect { try await download.value } throws: { code($0) == .noSpace }
    #expect(source.requests.map(\.url) == [url])
    #expect(retry.failures.count == 1, "the policy is not asked about mirrors then")
    await downloader.shutdown()
  }
}
