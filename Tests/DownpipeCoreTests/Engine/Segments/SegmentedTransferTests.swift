import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Files that come over several connections and from several places.
@Suite(.endsHangs)
struct SegmentedTransferTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 4 << 20)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private let mirror = URL(string: "https://mirror.example.net/file.bin")!
  private let cut = DownloadError(.network, "cut")
  private let observer = RecordingObserver()
  private let policy = FakeSegmentPolicy(maximum: 4)

  private func downloader(
    _ source: FakeSource, segments: FakeSegmentPolicy? = nil, perHost: Int? = nil,
    retry: FakeRetryPolicy = FakeRetryPolicy(.giveUp), isSegmented: Bool = true
  ) async throws -> Downloader {
    try await Downloader(options: DownloaderOptions(time: time, random: { 0.5 }, lease: .seconds(600))) {
      source
      if isSegmented { segments ?? policy }
      FakeAdmissionPolicy(maximumPerHost: perHost)
      retry
      storage
      observer
      AnyLedger(ledger)
    }
  }

  private var refusals: [DownloadError.Code] {
    observer.events(of: "a").compactMap { if case .refused(let error) = $0 { error.code } else { nil } }
  }

  @Test func severalConnectionsFetchOneFile() async throws {
    let source = FakeSource([url: [FakeSource.Script(bytes).holding(after: 400_000), .init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.requests(atLeast: 4)
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(policy.sizes == [Int64(bytes.count)])
    let ranges = source.requests.map(\.range)
    #expect(ranges[0] == nil)
    // Open-ended, so that a connection can go on when its neighbour fails.
    for range in ranges[1...3] { #expect(range.map { $0.start > 0 && $0.end == nil } == true) }
    #expect(Set(source.requests.dropFirst().map(\.validator)) == [FakeSource.Script(bytes).validator])
    await downloader.shutdown()
  }

  @Test func aLostConnectionIsReplaced() async throws {
    let source = FakeSource([
      url: [.init(bytes), FakeSource.Script(bytes).failing(after: 300_000, with: cut), .init(bytes)]
    ])
    let downloader = try await downloader(source)
    #expect(storage.bytes(of: try await downloader.add(DownloadRequest(url, id: "a")).value) == bytes)
    await downloader.shutdown()
  }

  enum Plain: CaseIterable { case withoutValidator, weak, withoutLength, withoutRanges }

  @Test(
    "a server without a strong validator, without a size, or without ranges gets one request",
    arguments: Plain.allCases)
  func oneConnection(plain: Plain) async throws {
    let script = FakeSource.Script(bytes).with { script in
      switch plain {
      case .withoutValidator: script.validator = nil
      case .weak: script.validator = Validator(entityTag: EntityTag("a", isWeak: true))
      case .withoutLength: script.announcesLength = false
      case .withoutRanges: script.honoursRanges = false
      }
    }
    let source = FakeSource([url: [script]])
    let downloader = try await downloader(source)
    #expect(storage.bytes(of: try await downloader.add(DownloadRequest(url, id: "a")).value) == bytes)
    #expect(source.requests.count == 1)
    await downloader.shutdown()
  }

  @Test func aFileThatChangesMeanwhileIsNeverMixed() async throws {
    let other = DownloadFixtures.pattern(size: 4 << 20).map { $0 ^ 0x55 }
    let validator = FakeSource.Script(bytes).validator
    // The server keeps the entity tag.
    let changed = FakeSource.Script(other).with { $0.validator = validator }
    let source = FakeSource([url: [FakeSource.Script(bytes).holding(after: 400_000), changed]])
    let retry = FakeRetryPolicy { $0.error.code == .contentChanged ? .restart(after: .zero) : .giveUp }
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.requests(atLeast: 2)
    source.release()
    #expect(storage.bytes(of: try await download.value) == other)
    await downloader.shutdown()
  }

  @Test func aMirrorThatLiesIsDroppedAndItsBytesAreFetchedAgain() async throws {
    // The first bytes are right, so that it is admitted.
    let lie = Array(bytes[..<(1 << 20)]) + bytes[(1 << 20)...].map { $0 ^ 0x55 }
    let source = FakeSource([
      url: [FakeSource.Script(bytes).holding(after: 300_000)], mirror: [.init(lie)],
    ])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror]))
    // It was compared, and then asked for bytes.
    await source.requests(atLeast: 5)
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.count { $0.url == mirror } >= 2)
    await downloader.shutdown()
    #expect(refusals.contains(.contentChanged))
  }

  @Test func bytesThatWereNotComparedAreNotKept() async throws {
    let policy = FakeSegmentPolicy(maximum: 2)
    let first = FakeSource.Script(bytes).holding(after: 400_000)
    // Where the second connection begins.
    let trial = FakeSource([url: [first]])
    let trialDownloader = try await downloader(trial, segments: policy)
    let tried = try await trialDownloader.add(DownloadRequest(url, id: "trial"))
    await trial.requests(atLeast: 2)
    let start = Int(try #require(trial.requests[1].range).start)
    trial.release()
    _ = try await tried.value
    await trialDownloader.shutdown()

    // The first one is lost just there, and the server has another file for the second, under the same entity tag.
    let changed = FakeSource.Script(bytes.map { $0 ^ 0x55 }).with { $0.validator = first.validator }
    let source = FakeSource([url: [first.failing(after: start, with: cut), changed, .status(503)]])
    let retry = FakeRetryPolicy { $0.error.code == .contentChanged ? .restart(after: .zero) : .giveUp }
    let downloader = try await downloader(source, segments: policy, retry: retry)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.requests(atLeast: 2)
    source.release()
    await source.requests(atLeast: 3)
    try await download.pause()
    let kept = try #require(try await ledger.open().record("a")).checkpoint.ranges
    #expect(kept.byteCount < bytes.count)

    source.script(url, .init(bytes))
    try await download.resume()
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }

  enum Useless: CaseIterable { case otherBytes, otherSize, missing, withoutRanges }

  @Test(
    "a mirror with other bytes, another size, or without ranges brings nothing", arguments: Useless.allCases)
  func uselessMirrors(useless: Useless) async throws {
    let script: FakeSource.Script =
      switch useless {
      case .otherBytes: .init(bytes.map { $0 ^ 1 })
      case .otherSize: .init(DownloadFixtures.pattern(size: 5 << 20))
      case .missing: .status(404)
      case .withoutRanges: FakeSource.Script(bytes).with { $0.honoursRanges = false }
      }
    let source = FakeSource([url: [FakeSource.Script(bytes).holding(after: 300_000), .init(bytes)], mirror: [script]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror]))
    await source.requests(atLeast: 4)
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.filter { $0.url == mirror }.count == 1)
    await downloader.shutdown()
  }

  @Test func duplicatesWithoutADigestAreIgnored() async throws {
    let script = FakeSource.Script(bytes).with { $0.duplicates = [mirror] }
    let source = FakeSource([url: [script.holding(after: 300_000), script], mirror: [.init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.requests(atLeast: 4)
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(!source.requests.contains { $0.url == mirror })
    await downloader.shutdown()
  }

  @Test func aPartialWithHolesIsCompletedWithoutAPolicy() async throws {
    let script = FakeSource.Script(bytes)
    let source = FakeSource([url: [script.holding(after: 200_000)]])
    let first = try await downloader(source)
    let stopped = try await first.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 4)
    try await stopped.pause()
    await first.shutdown()
    let record = try #require(try await ledger.open().record("a"))
    #expect(record.checkpoint.ranges.ranges.count == 4)
    #expect(record.checkpoint.ranges.byteCount == 4 * 200_000)

    source.script(url, script)
    let second = try await downloader(source, isSegmented: false)
    let download = try #require(try await second.download("a"))
    try await download.resume()
    #expect(storage.bytes(of: try await download.value) == bytes)
    // Besides the missing bytes, at most a seam before and one behind each hole.
    #expect(try await download.status.bytesFetched <= Int64(bytes.count) + 8 * SegmentTable.seam)
    await second.shutdown()
  }

  @Test func aPartialWithoutItsFirstBytesIsCompleted() async throws {
    let script = FakeSource.Script(bytes)
    let source = FakeSource([url: [script.holding(after: 0), script.holding(after: 200_000)]])
    let first = try await downloader(source)
    let stopped = try await first.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 4)
    try await stopped.pause()
    let front = try await ledger.open().record("a")?.checkpoint.ranges.prefixLength
    #expect(front == 0)

    source.script(url, script)
    source.release()
    try await stopped.resume()
    #expect(storage.bytes(of: try await stopped.value) == bytes)
    await first.shutdown()
  }

  @Test func aLimitPerHostHoldsForSegments() async throws {
    let source = FakeSource([url: [FakeSource.Script(bytes).holding(after: 400_000)]])
    let downloader = try await downloader(source, perHost: 2)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 2)
    #expect(source.readers == 2)
    // The limit of the suite ends this loop.
    while try await download.status.progress.connections != 2 { await Task.yield() }
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }

  @Test func aPolicyThatIsAddedAppliesToTheNextTransfer() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source, isSegmented: false)
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(source.requests.count == 1)
    await downloader.replace(policy)
    _ = try await downloader.add(DownloadRequest(url, id: "b")).value
    #expect(policy.sizes == [Int64(bytes.count)])
    await downloader.shutdown()
  }

  @Test func aRefusedConnectionIsNoFailureOfTheDownload() async throws {
    let script = FakeSource.Script(bytes)
    let source = FakeSource([url: [script.holding(after: 400_000), .status(503), .status(429), .status(503), script]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.requests(atLeast: 2)
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(refusals.allSatisfy { $0 == .httpStatus || $0 == .rangeRefused })
    #expect(try await download.status.attempts == 1)
    await downloader.shutdown()
  }

  @Test("a first reply that breaks off within the bytes that are compared ends the transfer, which asks again")
  func aReplyThatEndsWhileItIsCompared() async throws {
    let script = FakeSource.Script(bytes)
    let source = FakeSource([url: [script.holding(after: 1 << 20)]])
    let retry = FakeRetryPolicy(.resume(after: .zero))
    let options = DownloaderOptions(time: time, random: { 0.5 }, lease: .seconds(600), minimumSpeed: nil)
    let downloader = try await Downloader(options: options) {
      source
      FakeSegmentPolicy(maximum: 2) { _ in 1 }
      retry
      storage
      AnyLedger(ledger)
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await download.pause()
    source.release()
    source.script(url, script.failing(after: 1000, with: cut), script)
    try await download.resume()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(retry.failures.map(\.error.code) == [.network])
    await downloader.shutdown()
  }

  @Test("a place that asks for a long pause ends the transfer: the retry policy waits, not the connections")
  func theOnlyPlaceAsksForALongPause() async throws {
    let script = FakeSource.Script(bytes)
    let busy = FakeSource.Script.status(503, retryAfter: .seconds(600))
    let source = FakeSource([url: [script.failing(after: 1 << 20, with: cut), busy]])
    let retry = FakeRetryPolicy(.giveUp)
    let downloader = try await downloader(source, segments: FakeSegmentPolicy(maximum: 2), retry: retry)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect(throws: DownloadError.self) { try await download.value }
    await downloader.shutdown()
  }
}
