@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Files with wrong pieces, which alone are fetched again.
@Suite(.endsHangs)
struct PieceTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://wrong.example.org/file.bin")!
  let time = VirtualTime()
  let storage: FakeStorage
  let ledger = MemoryLedger()
  private let mirror = URL(string: "https://mirror.example.net/file.bin")!
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    storage = FakeStorage(workspaces: folder.path)
  }

  /// Compares pieces of 10,000 bytes with the right ones.
  private struct Verify: UniversalPostProcessor, DigestVerifying {
    let bytes: [UInt8]
    var name: String { "Verify" }
    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      let actual = try artifact.readBytes()
      var wrong = ByteRangeSet()
      for start in stride(from: 0, to: bytes.count, by: 10_000)
      where actual[start..<start + 10_000] != bytes[start..<start + 10_000] {
        wrong.insert(contentsOf: Int64(start)..<Int64(start + 10_000))
      }
      guard !wrong.isEmpty else { return artifact }
      var error = DownloadError(.pieceMismatch, "wrong pieces")
      error.wrongBytes = wrong
      throw error
    }
  }

  private func verifying(_ source: FakeSource, retry: FakeRetryPolicy? = nil) async throws -> Downloader {
    let table = Retry(.constant(.zero, attempts: 5))
    return try await Downloader(options: options) {
      source
      retry ?? FakeRetryPolicy { table.decide($0) }
      storage
      AnyLedger(ledger)
      Verify(bytes: bytes)
    }
  }

  private var flipped: [UInt8] {
    var flipped = bytes
    flipped[12_345] ^= 1
    flipped[65_432] ^= 1
    flipped[71_000] ^= 1
    return flipped
  }

  private func ranges(_ source: FakeSource, _ url: URL) -> [RequestedRange?] {
    source.requests.filter { $0.url == url }.map(\.range)
  }

  @Test("each wrong range is asked for exactly, without a validator")
  func exactRanges() async throws {
    let source = FakeSource([url: [.init(flipped)], mirror: [.init(bytes)]])
    let retry = FakeRetryPolicy(.giveUp)
    let downloader = try await verifying(source, retry: retry)
    let download = try await downloader.add(DownloadRequest(url, mirrors: [mirror]))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(
      ranges(source, mirror) == [RequestedRange(from: 10_000, to: 20_000), RequestedRange(from: 60_000, to: 80_000)])
    #expect(source.requests.allSatisfy { $0.validator == nil })
    #expect(retry.failures.isEmpty, "a repair is no retry")
    #expect(try await download.status.bytesFetched == 130_000)
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
    await downloader.shutdown()
  }

  @Test("bytes that were damaged on their way are asked for once more")
  func theSamePlace() async throws {
    let source = FakeSource([url: [.init(flipped), .init(bytes)]])
    let downloader = try await verifying(source)
    let download = try await downloader.add(DownloadRequest(url))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(ranges(source, url).count == 3)
    await downloader.shutdown()
  }

  @Test("a repair that breaks off goes on with what is missing")
  func interrupted() async throws {
    let cut = FakeSource.Script(bytes).failing(after: 15_000, with: DownloadError(.network, "cut"))
    let source = FakeSource([url: [.init(flipped)], mirror: [.init(bytes), cut, .init(bytes)]])
    let downloader = try await verifying(source)
    let download = try await downloader.add(DownloadRequest(url, mirrors: [mirror]))
    #expect(storage.bytes(of: try await download.value) == bytes)
    let fetched = try await download.status.bytesFetched
    #expect(fetched < 230_000, "\(fetched)")
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
    await downloader.shutdown()
  }

  @Test("checkpoints of a repair keep the right pieces behind the wrong ones, and its progress is within the file")
  func checkpoints() async throws {
    var wrong = bytes
    for index in 30_000..<60_000 { wrong[index] ^= 1 }
    let held = FakeSource.Script(bytes).with { $0.chunkSize = 1000 }.holding(after: 15_000)
    let source = FakeSource([url: [.init(wrong), held, .init(bytes)]])
    var options = options
    options.checkpoints = CheckpointPolicy(bytes: 5000, interval: .seconds(3600))
    let observer = RecordingObserver()
    let downloader = try await Downloader(options: options) {
      source
      FakeRetryPolicy(.resume(after: .zero))
      observer
      storage
      AnyLedger(ledger)
      Verify(bytes: bytes)
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    var ranges = ByteRangeSet()
    while ranges.prefixLength < 40_000 { ranges = try await savedRanges() }
    #expect(ranges.prefixLength <= 45_000 && ranges.byteCount == ranges.prefixLength + 40_000, "\(ranges)")
    let progress = try await download.status.progress.received
    #expect(progress == 85_000)
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    let furthest = observer.events(of: "a").compactMap { event -> Int64? in
      if case .progress(let progress) = event { progress.received } else { nil }
    }.max()
    #expect(furthest ?? 0 <= 100_000)
    await downloader.shutdown()
  }

  private func savedRanges() async throws -> ByteRangeSet {
    let store = try await ledger.open()
    let record = try #require(try await store.record("a"))
    try await store.close()
    return record.checkpoint.ranges
  }

  enum Obstacle: CaseIterable { case gone, noRanges, otherSize, longer, shorter, coded }

  @Test("a place that cannot send the range is not needed", arguments: Obstacle.allCases)
  func obstacles(_ obstacle: Obstacle) async throws {
    let script: FakeSource.Script =
      switch obstacle {
      case .gone: .status(404)
      case .noRanges: FakeSource.Script(bytes).with { $0.honoursRanges = false }
      case .otherSize:
        FakeSource.Script(bytes).with { $0.claimedCoverage = .range(10_000..<20_000, total: .known(200_000)) }
      case .longer:
        FakeSource.Script(bytes).with { $0.claimedCoverage = .range(10_000..<15_000, total: .known(100_000)) }
      case .shorter: FakeSource.Script(bytes).failing(after: 100, with: DownloadError(.network, "cut"))
      case .coded: FakeSource.Script(bytes).with { $0.contentCoding = "gzip" }
      }
    let source = FakeSource([url: [.init(flipped), .init(bytes)], mirror: [script]])
    let downloader = try await verifying(source)
    let download = try await downloader.add(DownloadRequest(url, mirrors: [mirror]))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
    await downloader.shutdown()
  }

  @Test(
    "a repair that goes on in a later run uses a place without ranges, also if the last place fails",
    arguments: [404, 503, 0])
  func wholePlaceAfterAnotherRun(_ status: Int) async throws {
    let weak = Validator(entityTag: EntityTag("w", isWeak: true))
    func script(_ bytes: [UInt8]) -> FakeSource.Script { FakeSource.Script(bytes).with { $0.validator = weak } }
    let gone: FakeSource.Script =
      status == 0 ? .failingToOpen(DownloadError(.network, "refused")) : .status(status)
    // The first run ends in its repair; then the URL sends the whole file only.
    let cut = script(bytes).failing(after: 0, with: DownloadError(.network, "cut"))
    let source = FakeSource([
      url: [script(flipped), cut, script(bytes).with { $0.honoursRanges = false }], mirror: [gone],
    ])
    let downloader = try await verifying(source, retry: FakeRetryPolicy(.resume(after: .zero)))
    var request = DownloadRequest(url, id: "a", mirrors: [mirror])
    request.pieces = PieceDigests(.crc32, length: 10_000, bytes: [UInt8](repeating: 0, count: 40))
    let download = try await downloader.add(request)
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
    await downloader.shutdown()
  }

  @Test("a place without ranges is asked when all others send wrong pieces, also without validators")
  func aWholePlace() async throws {
    let wrong = FakeSource.Script(flipped).with { $0.validator = nil }
    let source = FakeSource([url: [wrong], mirror: [FakeSource.Script(bytes).with { $0.honoursRanges = false }]])
    let downloader = try await verifying(source, retry: FakeRetryPolicy(.giveUp))
    var request = DownloadRequest(url, mirrors: [mirror])
    request.pieces = PieceDigests(.sha256, length: 10_000, bytes: [UInt8](repeating: 1, count: 320))
    let download = try await downloader.add(request)
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
    await downloader.shutdown()
  }

  @Test("digests of pieces need a step that checks them, and fit the size")
  func refused() async throws {
    let plain = try await Downloader(options: options) {
      FakeSource()
      storage
    }
    var request = DownloadRequest(url).with(\.expectedSize, 1_000)
    request.pieces = PieceDigests(.crc32, length: 100, bytes: [UInt8](repeating: 0, count: 40))
    await #expect(throws: DownloadError.self) { try await plain.add(request) }
    await plain.shutdown()
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await verifying(source)
    _ = try await downloader.validate(request)
    request.expectedSize = 1_001
    await #expect(throws: DownloadError.self) { try await downloader.add(request) }
    await downloader.shutdown()
  }
}
