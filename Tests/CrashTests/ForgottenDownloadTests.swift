#if SQLite
  @_spi(Ledger) import DownpipeCore
  @_spi(Ledger) import DownpipeTesting
  import Foundation
  import HangLimit
  import Synchronization
  import Testing

  /// Race conditions in the engine that ``DisturbedCallTests`` found: a download that can continue is not leased until
  /// the next maintenance.
  @Suite(.endsHangs)
  struct ForgottenDownloadTests {
    /// A clock that advances by a millisecond with each reading. Leases do not expire, so that there is no maintenance.
    private final class CreepingTime: TimeSource {
      private let looks = Atomic<Int>(0)

      var now: Duration { .milliseconds(looks.load(ordering: .relaxed)) }
      var date: Date {
        Date(timeIntervalSince1970: 1_000_000_000 + Double(looks.add(1, ordering: .relaxed).newValue) / 1000)
      }

      func sleep(until instant: Duration, purpose: SleepPurpose) async throws {
        if purpose == .lease { await Watched(false).wait { $0 } }
        try Task.checkCancellation()
        let interval = max(.zero, instant - now)
        looks.add(Int(interval / .milliseconds(1)) + 1, ordering: .relaxed)
        await Task.yield()
      }
    }

    private func start(_ ledger: any Ledger, _ source: FakeSource, delay: Duration) async throws -> Downloader {
      try await Downloader(options: DownloaderOptions(time: CreepingTime(), lease: Pace.lease)) {
        source
        Retry(.constant(delay, attempts: 3))
        FakeStorage()
        ledger
      }
    }

    private func failingOnce() throws -> (FakeSource, DownloadRequest) {
      let request = try DownloadRequest("http://a/film")
      return (FakeSource([request.url: [.status(503), .init([1, 2, 3])]]), request)
    }

    /// The engine asks the ledger for the downloads that are due, and then for the time of the next one. A download
    /// that becomes due in between must not be missed.
    @Test(arguments: 1...16)
    func aDownloadThatBecomesDueBetweenTwoReads(_ milliseconds: Int) async throws {
      let (source, request) = try failingOnce()
      let downloader = try await start(MemoryLedger(), source, delay: .milliseconds(milliseconds))
      let download = try await downloader.add(request)
      await #expect(throws: Never.self) { try await withDeadline(.hangLimit) { _ = try await download.value } }
      await downloader.shutdown(waitingAtMost: nil)
    }

    /// The ledger fails once when it is asked for the time of the next download.
    @Test(arguments: 1...4)
    func theNextDueTimeCannotBeRead(_ call: Int) async throws {
      let (source, request) = try failingOnce()
      let ledger = FaultyLedger(MemoryLedger())
      ledger.fail(.nextDue, at: call, with: DownloadError(.ledger, "the disk failed"))
      let downloader = try await start(ledger, source, delay: .seconds(1))
      let download = try await downloader.add(request)
      await #expect(throws: Never.self) { try await withDeadline(.hangLimit) { _ = try await download.value } }
      await downloader.shutdown(waitingAtMost: nil)
    }

    /// Waiting for a download continues when its record cannot be read.
    @Test func waitingContinuesWhenTheRecordCannotBeRead() async throws {
      let (source, request) = try failingOnce()
      let ledger = FaultyLedger(MemoryLedger())
      let downloader = try await start(ledger, source, delay: .seconds(1))
      await downloader.setSuspended(true)
      let download = try await downloader.add(request)
      let before = ledger.calls.count { $0 == .record }
      ledger.fail(.record, at: before + 1, with: DownloadError(.ledger, "the disk failed"))
      let value = Task { try await download.value }
      while ledger.calls.count(where: { $0 == .record }) < before + 2 { await Task.yield() }
      await downloader.setSuspended(false)
      await #expect(throws: Never.self) { _ = try await value.value }
      await downloader.shutdown(waitingAtMost: nil)
    }

    /// A failed download is not reported as failed after it was resumed.
    @Test func resumingDoesNotReportTheOldFailure() async throws {
      for _ in 0..<300 {
        let request = try DownloadRequest("http://a/film")
        let source = FakeSource([request.url: [.status(404), .init([1, 2, 3])]])
        let downloader = try await start(MemoryLedger(), source, delay: .seconds(1))
        let download = try await downloader.add(request)
        await #expect(throws: DownloadError.self) { try await download.value }
        try #require(try await download.resume())
        do {
          _ = try await download.value
        } catch {
          Issue.record("the download goes on, and its value is the old failure: \(error)")
          await downloader.shutdown(waitingAtMost: nil)
          return
        }
        await downloader.shutdown(waitingAtMost: nil)
      }
    }
  }
#endif
