import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// A policy ranks by the size of a file from the moment at which the server has stated it.
@Suite(.endsHangs)
struct LearnedSizeTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 1_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// Smaller files go first; a file of unknown size counts as 5,000 bytes.
  private struct Smallest: SchedulingPolicy {
    func rank(_ context: RankingContext) -> Rank {
      Rank().ascending(context.size.bytes ?? 5_000).ascending(context.arrival)
    }
  }

  private func downloader(_ source: FakeSource, _ count: Int) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      limit(count)
      Smallest()
      FakeRetryPolicy(.resume(after: .zero))
      storage
      ledger
    }
  }

  private func url(_ index: Int) -> URL { url.appending(path: "\(index)") }

  @Test("A failed download of a large file goes behind the others")
  func afterAFailure() async throws {
    let cut = DownloadError(.network, "cut")
    let large = DownloadFixtures.pattern(size: 9_000)
    let source = FakeSource([
      url(0): [.init(large).failing(after: 4_000, with: cut), .init(large)], url(1): [.init(bytes)],
      url(2): [.init(bytes)],
    ])
    let downloader = try await downloader(source, 1)
    let ended = try await downloader.add(contentsOf: requests(3))
    try await advancing { try await downloader.waitUntilIdle() }
    #expect(source.requests.map(\.id) == ["d0", "d1", "d2", "d0"])
    #expect(try await ended[0].status.resumedFrom > 0)
    await downloader.shutdown()
  }

  @Test("Lowered limits and preemption send the largest file back to waiting", arguments: [false, true])
  func lowestRank(isPreempted: Bool) async throws {
    let sizes = [9_000, 1_000, 2_000]
    let source = FakeSource(
      Dictionary(
        uniqueKeysWithValues: sizes.enumerated().map { index, size in
          (url(index), [.init(DownloadFixtures.pattern(size: size)).holding(after: 500)])
        }))
    let downloader = try await downloader(source, 2)
    let downloads = try await downloader.add(contentsOf: Array(requests(3).prefix(2)))
    await source.held(atLeast: 2)
    if isPreempted {
      let third = try await downloader.add(requests(3)[2])
      #expect(try await third.start(preempting: .lowestPriority))
    } else {
      await downloader.replace(limit(1))
    }
    for await event in downloads[0].events {
      if case .state(.waiting) = event.kind { break }
    }
    #expect(try await downloads[1].status.state.phase == .transferring)
    source.release()
    await downloader.shutdown()
  }
}
