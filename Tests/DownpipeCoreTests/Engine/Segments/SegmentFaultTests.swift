import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// Connections that break off at any byte and servers that refuse any request: every download ends with the right bytes.
///
/// There is no minimum speed: a transfer with nothing open and nothing on its way would wait for ever, and the test would
/// end at its time limit.
@Suite(.endsHangs)
struct SegmentFaultTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 3 << 20)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private let mirror = URL(string: "https://mirror.example.net/file.bin")!

  /// Offsets of a body at which something can happen: in the bytes that are compared, at their end, and later.
  private static let offsets = [0, 1, 1000, 65_535, 65_536, 65_537, 300_000, 1 << 20]

  private func script(_ random: inout SeededGenerator) -> FakeSource.Script {
    switch Int.random(in: 0..<10, using: &random) {
    case 0: .status(503)
    case 1: .status(503, retryAfter: .seconds(Int64.random(in: 0...600, using: &random)))
    case 2: .failingToOpen(DownloadError(.timedOut, "no reply"))
    default:
      FakeSource.Script(bytes).failing(
        after: Self.offsets.randomElement(using: &random) ?? 0, with: DownloadError(.network, "cut"))
    }
  }

  @Test(arguments: 0..<LongForm.count(10, long: 40))
  func itEnds(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let faults = (0..<Int.random(in: 1...8, using: &random)).map { _ in script(&random) }
    let others = (0..<Int.random(in: 0...4, using: &random)).map { _ in script(&random) }
    let source = source(faults, atMirror: others + [.init(bytes)])
    try await download(from: source, hasMirror: Bool.random(using: &random), &random)
  }

  /// The URL is asked for the missing bytes only, although the last error of its transfer was one of the mirror's ranges.
  @Test(arguments: 0..<LongForm.count(10, long: 40))
  func wrongRangesOfAMirrorSayNothingAboutTheURL(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let faults = (0..<Int.random(in: 1...2, using: &random)).map { _ in FakeSource.Script.status(404) }
    let wrong = FakeSource.Script(bytes).with { script in
      script.claimedCoverage = .range(1000..<Int64(script.bytes.count), total: .known(Int64(script.bytes.count)))
    }
    let right = (0..<Int.random(in: 1...3, using: &random)).map { _ in
      FakeSource.Script(bytes).failing(after: 70_000, with: DownloadError(.network, "cut"))
    }
    let source = source(faults, atMirror: [.init(bytes)] + right + [wrong])
    try await download(from: source, hasMirror: true, &random)
    // A refused range is followed by one request for the whole file.
    let ranges = source.requests.filter { $0.url == url }.map { $0.range != nil }
    #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0 || $1 })
  }

  private func source(_ faults: [FakeSource.Script], atMirror others: [FakeSource.Script]) -> FakeSource {
    FakeSource([
      url: [FakeSource.Script(bytes).failing(after: 200_000, with: DownloadError(.network, "cut"))] + faults
        + [.init(bytes)],
      mirror: others,
    ])
  }

  private func download(from source: FakeSource, hasMirror: Bool, _ random: inout SeededGenerator) async throws {
    let maximum = Int.random(in: 2...4, using: &random)
    let isGreedy = Bool.random(using: &random)
    let downloader = try await Downloader(
      options: DownloaderOptions(time: time, random: { 0.5 }, lease: .seconds(86_400), minimumSpeed: nil)
    ) {
      source
      FakeSegmentPolicy(maximum: maximum) { _ in isGreedy ? maximum : 1 }
      FakeRetryPolicy { _ in .resume(after: .seconds(1)) }
      storage
      AnyLedger(ledger)
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a", mirrors: hasMirror ? [mirror] : []))
    while !(try await download.status.state.phase.isFinal) {
      try await settle(downloader)
      time.advance(by: .milliseconds(250))
    }
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }
}
