import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

/// Admission policies with sessions: what they are told, and the times that they name.
@Suite(.endsHangs)
struct AdmissionSessionTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 1_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// Admits one start in a second, and records what it is told.
  private final class OneEachSecond: AdmissionPolicy, AdmissionSession {
    struct Log {
      var next: Duration = .zero
      var starts: [Duration] = []
      var ends: [RunEnd] = []
      var sessions = 0
    }
    let log = Watched(Log())

    func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission { .admitted }

    func start() -> any AdmissionSession {
      log.update { $0.sessions += 1 }
      return self
    }

    func admit(_ candidate: Candidate, beside running: RunningDownloads, at now: Duration) -> Admission {
      let next = log.value.next
      return now >= next ? .admitted : .wait("one start in a second", until: next, scope: .all)
    }

    func started(_ candidate: Candidate, at now: Duration) {
      log.update {
        $0.starts.append(now)
        $0.next = now + .seconds(1)
      }
    }

    func ended(_ candidate: Candidate, _ end: RunEnd) { log.update { $0.ends.append(end) } }
  }

  private func downloader(_ source: FakeSource, _ policy: OneEachSecond, retry: FakeRetryPolicy) async throws
    -> Downloader
  {
    try await Downloader(options: options) {
      source
      policy
      retry
      storage
      AnyLedger(ledger)
    }
  }

  @Test("a download that must wait until an instant starts then, and says why it waits")
  func waitsForTheInstant() async throws {
    let policy = OneEachSecond()
    let source = FakeSource([url: Array(repeating: .init(bytes), count: 3)])
    let downloader = try await downloader(source, policy, retry: FakeRetryPolicy(.giveUp))
    let begin = time.now
    var downloads: [Download] = []
    for id in ["a", "b", "c"] { downloads.append(try await downloader.add(DownloadRequest(url, id: DownloadID(id)))) }
    _ = try await downloads[0].value
    #expect(try await downloads[1].status.state == .waiting(.limit(id: "OneEachSecond", text: "one start in a second")))
    for download in downloads.dropFirst() {
      await time.sleeper(dueIn: .seconds(1), purpose: .dueTime)
      time.advance(by: .seconds(1))
      _ = try await download.value
    }
    #expect(policy.log.value.starts == [begin, begin + .seconds(1), begin + .seconds(2)])
    #expect(policy.log.value.ends.map(\.result) == [.finished, .finished, .finished])
    #expect(policy.log.value.sessions == 1)
    await downloader.shutdown()
  }

  @Test("a time until which no download starts does not stop those that run")
  func runningDownloadsGoOn() async throws {
    let policy = OneEachSecond()
    let source = FakeSource([url: [.init(bytes).holding(after: 500)]])
    let downloader = try await downloader(source, policy, retry: FakeRetryPolicy(.giveUp))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let other = OneEachSecond()
    other.log.update { $0.next = .seconds(1_000_000) }
    await downloader.replace(other)
    #expect(try await download.status.state == .transferring)
    source.release()
    _ = try await download.value
    #expect(other.log.value.sessions == 1)
    #expect(other.log.value.ends.map(\.result) == [.finished])
    await downloader.shutdown()
  }

  @Test("failures and stops are told with their times, and a start by hand counts")
  func failuresAndStopsAreTold() async throws {
    let policy = OneEachSecond()
    let refused = DownloadError(.httpStatus, "the server responded with 503", httpStatus: 503)
    let source = FakeSource([url: [.failingToOpen(refused), .init(bytes).holding(after: 500)]])
    let downloader = try await downloader(source, policy, retry: FakeRetryPolicy(.giveUp))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect(throws: DownloadError.self) { try await download.value }
    #expect(try await download.start())
    await source.held(atLeast: 1)
    _ = try await download.pause()
    let ends = policy.log.value.ends.map(\.result)
    #expect(ends.count == 2)
    if case .failed(let error)? = ends.first { #expect(error.httpStatus == 503) } else { Issue.record("\(ends)") }
    #expect(ends.last == .stopped)
    #expect(policy.log.value.starts.count == 2)
    await downloader.shutdown()
  }
}
