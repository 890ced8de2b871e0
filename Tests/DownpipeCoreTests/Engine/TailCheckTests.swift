import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// A checkpoint counts only as far as the bytes on disk match it.
@Suite(.endsHangs)
struct TailCheckTests {
  let bytes = DownloadFixtures.pattern(size: 1_000_000)
  let url = URL(string: "https://example.org/file.bin")!
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  let key = PartialKey(id: "a", generation: 1)
  let cut = DownloadError(.network, "cut")

  private func downloader(_ source: FakeSource, retry: FakeRetryPolicy = FakeRetryPolicy(.giveUp)) async throws
    -> Downloader
  {
    try await Downloader(options: DownloaderOptions(time: VirtualTime(), lease: .seconds(600))) {
      source
      retry
      storage
      AnyLedger(ledger)
    }
  }

  /// Fails after some bytes, several times in a row, so that there are several marks.
  private func begin(_ source: FakeSource, places: [Int]) async throws {
    source.script(url, FakeSource.Script(bytes).failing(after: places[0], with: cut))
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect(throws: DownloadError.self) { try await download.value }
    for (before, place) in zip(places, places.dropFirst()) {
      source.script(url, FakeSource.Script(bytes).failing(after: place - before + 65_536, with: cut))
      try await download.resume()
      await #expect(throws: DownloadError.self) { try await download.value }
    }
    #expect(try await download.status.progress.received == Int64(places.last ?? 0))
    await downloader.shutdown()
  }

  private func finish(_ source: FakeSource) async throws -> DownloadStatus {
    source.script(url, FakeSource.Script(bytes))
    let downloader = try await downloader(source)
    let download = try #require(try await downloader.download("a"))
    try await download.resume()
    #expect(storage.bytes(of: try await download.value) == bytes)
    let status = try await download.status
    await downloader.shutdown()
    return status
  }

  @Test func anUntouchedPartialGoesOnWhereItWas() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    try await begin(source, places: [300_000, 600_000])
    #expect(try await finish(source).resumedFrom == 600_000)
  }

  @Test(
    "a damaged partial is truncated to the last block that matches its mark",
    arguments: [
      // The first and the last byte of the last block.
      600_000 - 65_536, 599_999,
    ])
  func aDamagedTail(damaged: Int) async throws {
    let source = FakeSource([url: [.init(bytes)]])
    try await begin(source, places: [300_000, 600_000])
    storage.damage(key) { $0[damaged] ^= 1 }
    #expect(try await finish(source).resumedFrom == 300_000)
  }

  @Test func aPartialFullOfNothingBeginsAnew() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    try await begin(source, places: [300_000, 600_000])
    // A power failure can leave such a file if the size was written before the bytes.
    storage.damage(key) { $0 = Array(repeating: 0, count: $0.count) }
    #expect(try await finish(source).resumedFrom == 0)
  }

  @Test(arguments: [(599_999, 300_000), (300_000, 300_000), (299_999, 0), (0, 0)] as [(Int, Int64)])
  func aShorterPartialGoesOnAtAMark(size: Int, resumedFrom: Int64) async throws {
    let source = FakeSource([url: [.init(bytes)]])
    try await begin(source, places: [300_000, 600_000])
    storage.damage(key) { $0.removeSubrange(size...) }
    #expect(try await finish(source).resumedFrom == resumedFrom)
  }

  @Test func aPartialThatIsGoneBeginsAnew() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    try await begin(source, places: [300_000])
    try await storage.removePartial(key)
    #expect(try await finish(source).resumedFrom == 0)
  }

  // MARK: Marks

  private func mark(_ end: Int64) -> BlockMark {
    BlockMark(range: max(0, end - 65_536)..<end, digest: FileDigest(.crc32, bytes: [1, 2, 3, 4]))
  }

  @Test("few of any number of marks are kept, and one of them is always near")
  func marksAreThinned() throws {
    var checkpoint = Checkpoint()
    let step: Int64 = 4 << 20
    for number in 1...5_000 as ClosedRange<Int64> {
      checkpoint.ranges = ByteRangeSet(0..<(number * step))
      checkpoint.mark(mark(number * step))
      #expect(checkpoint.marks.count <= 16)
      #expect(checkpoint.marks.last?.range.upperBound == number * step)
      #expect(checkpoint.marks.map(\.range.upperBound) == checkpoint.marks.map(\.range.upperBound).sorted())
    }
    // At most about four times the damaged bytes are downloaded again.
    let ends = checkpoint.marks.map(\.range.upperBound)
    for lost in [step, 10 * step, 100 * step, 1_000 * step] {
      let good = 5_000 * step - lost
      let kept = try #require(ends.last { $0 <= good })
      #expect(5_000 * step - kept <= 4 * lost + step, "lost \(lost), kept up to \(kept)")
    }
  }

  @Test func aMissingMarkProvesNothing() {
    var checkpoint = Checkpoint(ranges: ByteRangeSet(0..<100))
    checkpoint.mark(mark(50))
    checkpoint.mark(nil)
    #expect(checkpoint.marks.isEmpty)
  }

  @Test func cuttingTakesMarksAlong() {
    var checkpoint = Checkpoint(ranges: ByteRangeSet(0..<100))
    checkpoint.mark(mark(50))
    checkpoint.mark(mark(100))
    checkpoint.cut(to: 99)
    #expect(checkpoint.ranges == ByteRangeSet(0..<99))
    #expect(checkpoint.marks == [mark(50)])
  }

  // MARK: Head starts

  @Test("the partial of another downloader is imported once, and proved", arguments: [true, false])
  func aHeadStart(isRight: Bool) async throws {
    let folder = try TemporaryFolder()
    var begun = Array(bytes[..<400_000])
    if !isRight { begun[399_990] ^= 1 }
    let file = try folder.write(begun + [9, 9, 9], to: "CFNetworkDownload.tmp")
    let source = FakeSource([url: [.init(bytes)]])
    let retry = FakeRetryPolicy { $0.error.code == .contentChanged ? .restart(after: .zero) : .giveUp }
    let downloader = try await downloader(source, retry: retry)
    let request = DownloadRequest(url, id: "a").with(\.headStart, .init(file: file, count: 400_000))
    let download = try await downloader.add(request)
    #expect(storage.bytes(of: try await download.value) == bytes)
    let status = try await download.status
    #expect(status.resumedFrom == (isRight ? 400_000 : 0))
    #expect(status.request.headStart == nil)
    // There is no strong validator, so the last bytes are compared.
    #expect(source.requests.first?.range == RequestedRange(from: 400_000 - 65_536))
    #expect(try folder.read("CFNetworkDownload.tmp") == begun + [9, 9, 9], "the file is not changed")
    await downloader.shutdown()
  }
}
