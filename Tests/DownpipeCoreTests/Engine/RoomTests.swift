@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Downloads that wait for space go on soon after there is room.
@Suite(.endsHangs)
struct RoomTests: EngineSuite {
  private struct Disk: StorageWrapper {
    let base: any Storage
    let free: Watched<Int64>
    func availableBytes() async throws -> Int64? { free.value }
  }

  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private let free = Watched<Int64>(0)

  private func downloader(
    _ source: FakeSource, _ ledger: any Ledger, reserve: Int64 = 64 << 20
  ) async throws -> Downloader {
    var options = options
    options.diskReserve = reserve
    return try await Downloader(options: options) {
      source
      Disk(base: storage, free: free)
      Retry(.exponential(attempts: 5))
      ledger
    }
  }

  /// A file whose write fails for lack of space, the first time.
  private func source() -> FakeSource {
    let full = FakeSource.Script(bytes).failing(after: 50_000, with: DownloadError(.noSpace, "the disk is full"))
    return FakeSource([url: [full, .init(bytes)]])
  }

  @Test("A download goes on within two seconds after the disk has room")
  func room() async throws {
    let source = self.source()
    let downloader = try await downloader(source, ledger)
    let download = try await downloader.add(DownloadRequest(url))
    await time.sleeper(dueIn: .seconds(1), purpose: .room)
    free.update { $0 = 1 << 30 }
    let start = time.now
    time.advance(by: .seconds(1))
    _ = try await download.value
    #expect(time.now - start <= .seconds(2))
    await downloader.shutdown()
  }

  @Test(
    "A file of known size that does not fit keeps nothing, waits, and lets small ones pass", arguments: [true, false])
  func tooLarge(isSizeInRequest: Bool) async throws {
    let film = DownloadFixtures.pattern(size: 3 << 20)
    let small = URL(string: "https://example.org/small")!
    let source = FakeSource([url: [.init(film), .init(film)], small: [.init(bytes)]])
    free.update { $0 = (4 << 20) - 1 }
    let downloader = try await downloader(source, ledger)
    let request = DownloadRequest(url).with(\.expectedSize, isSizeInRequest ? .known(3 << 20) : .unknown)
    let download = try await downloader.add(request)
    _ = try await downloader.add(DownloadRequest(small)).value
    await time.sleeper(dueIn: .seconds(1), purpose: .room)
    guard case .waiting(.missing(.disk, _, let error)) = try await download.status.state else {
      Issue.record("\(try await download.status.state)")
      return
    }
    #expect(
      error.message == "the download needs 3.00 MiB, and 3.00 MiB of the disk are left for it: free some space",
      "\(error)")
    #expect(storage.partials.isEmpty)
    #expect(source.requests.map(\.url) == (isSizeInRequest ? [small] : [url, small]))
    free.update { $0 = 4 << 20 }
    time.advance(by: .seconds(1))
    _ = try await download.value
    #expect(try await download.status.state.phase == .finished)
    await downloader.shutdown()
  }

  @Test("Without a reserve a file only has to fit", arguments: [(3 << 20, true), ((3 << 20) - 1, false)])
  func withoutReserve(free bytes: Int64, fits: Bool) async throws {
    free.update { $0 = bytes }
    let source = FakeSource(everyURL: .init(DownloadFixtures.pattern(size: 3 << 20)))
    let downloader = try await downloader(source, ledger, reserve: 0)
    let download = try await downloader.add(DownloadRequest(url))
    if !fits {
      await time.sleeper(dueIn: .seconds(1), purpose: .room)
      #expect(try await download.status.state.phase == .waiting)
      free.update { $0 = 3 << 20 }
      time.advance(by: .seconds(1))
    }
    _ = try await download.value
    await downloader.shutdown()
  }

  @Test("What running downloads have yet to receive is not free")
  func others() async throws {
    let film = FakeSource.Script(DownloadFixtures.pattern(size: 3 << 20))
    let other = URL(string: "https://example.org/other")!
    let source = FakeSource([url: [film.holding(after: 10_000)], other: [film, film]])
    free.update { $0 = 6 << 20 }
    let downloader = try await downloader(source, ledger)
    let first = try await downloader.add(DownloadRequest(url))
    await source.held(atLeast: 1)
    let second = try await downloader.add(DownloadRequest(other))
    await time.sleeper(dueIn: .seconds(1), purpose: .room)
    #expect(try await second.status.state.phase == .waiting)
    source.release()
    _ = try await first.value
    time.advance(by: .seconds(1))
    _ = try await second.value
    await downloader.shutdown()
  }

  @Test("A download goes on although the disk had room again before the ledger could save the failure")
  func roomBeforeTheLedgerAnswers() async throws {
    let faulty = FaultyLedger(ledger)
    let full = FakeSource.Script(bytes).holding(after: 10_000)
      .failing(after: 50_000, with: DownloadError(.noSpace, "the disk is full"))
    let source = FakeSource([url: [full, .init(bytes)]])
    let downloader = try await downloader(source, faulty)
    let download = try await downloader.add(DownloadRequest(url))
    await source.held(atLeast: 1)
    try await settle(downloader)
    // The first attempt, the same again, the one after the partial was cut, and one more after a second.
    faulty.fail(
      .exchange, at: faulty.calls.count { $0 == .exchange } + 1, times: 4,
      with: DownloadError(.ledger, "the disk is full"))
    source.release()
    await time.sleeper(dueIn: .seconds(1), purpose: .dueTime)
    free.update { $0 = 1 << 30 }
    for _ in 0..<2 {
      await time.sleeper(dueIn: .seconds(1), purpose: .dueTime)
      time.advance(by: .seconds(1))
    }
    await time.sleeper(dueIn: .seconds(1), purpose: .room)
    time.advance(by: .seconds(1))
    _ = try await download.value
    #expect(time.now == .seconds(3))
    await downloader.shutdown()
  }
}
