@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Rare sequences of events that were handled wrongly once.
@Suite(.endsHangs)
struct DownloaderEdgeTests {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  let cut = DownloadError(.network, "cut")

  var options: DownloaderOptions {
    DownloaderOptions(time: time, random: { 0.5 }, resumeValidation: .overlap(1000))
  }

  func downloader(
    _ source: FakeSource, retry: FakeRetryPolicy = FakeRetryPolicy(.resume(after: .zero)), gate: FakeGate? = nil,
    ledger: (any Ledger)? = nil, limit: Int = 5
  ) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      if let gate { gate }
      FakeAdmissionPolicy { _, running in running.total < limit ? .admitted : .full("\(limit)") }
      retry
      storage
      AnyLedger(ledger ?? self.ledger)
    }
  }

  @Test("a validator never proves bytes that were not compared with its representation")
  func validatorsAreNotAdoptedBeforeTheComparison() async throws {
    let other = DownloadFixtures.pattern(size: 100_000, seed: 99)
    // First a reply without a validator; then another file with a strong one, whose body ends within the overlap.
    let source = FakeSource([
      url: [
        FakeSource.Script(bytes).with { $0.validator = nil }.failing(after: 40_000, with: cut),
        FakeSource.Script(other).with { $0.chunkSize = 100 }.failing(after: 0, with: cut),
        FakeSource.Script(other),
      ]
    ])
    let retry = FakeRetryPolicy { failure in
      failure.error.code == .contentChanged ? .restart(after: .zero) : .resume(after: .zero)
    }
    let downloader = try await downloader(source, retry: retry)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == other)
    await downloader.shutdown()
  }

  @Test("bytes whose flush failed are not claimed", arguments: [FakeStorage.Operation.synchronize, .close])
  func failedFlushes(operation: FakeStorage.Operation) async throws {
    storage.fail(operation, at: 1, with: DownloadError(.storage, "the disk lost them"))
    // The bytes of an interrupted body are flushed; a complete partial is closed.
    let whole = FakeSource.Script(bytes)
    let first = operation == .synchronize ? whole.failing(after: 40_000, with: DownloadError(.storage, "cut")) : whole
    let source = FakeSource([url: [first, whole]])
    let downloader = try await downloader(source, retry: FakeRetryPolicy(.giveUp))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .storage }
    #expect(try await download.status.progress.received == 0)
    try await download.resume()
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.map(\.range) == [nil, nil])
    #expect(storage.openPartials == 0)
    await downloader.shutdown()
  }

  @Test("a download that is removed and added again has all its attempts")
  func progressOfARemovedDownload() async throws {
    let cut = DownloadError(.network, "cut")
    let source = FakeSource([
      url: [
        .init(bytes).failing(after: 90_000, with: cut), .init(bytes).failing(after: 40_000, with: cut),
        .init(bytes).failing(after: 20_000, with: cut), .init(bytes),
      ]
    ])
    let retry = FakeRetryPolicy(.giveUp, .resume(after: .zero), .resume(after: .zero))
    let downloader = try await downloader(source, retry: retry)
    let first = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await first.value } throws: { ($0 as? DownloadError)?.code == .network }
    try await first.remove()
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(retry.failures.map(\.consecutive) == [1, 1, 1], "both attempts have made progress")
    await downloader.shutdown()
  }

  @Test func aPauseIsNotLostToAGateThatClosesFirst() async throws {
    let gate = FakeGate()
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let downloader = try await downloader(source, gate: gate)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    gate.close("no")
    #expect(try await download.pause())
    #expect(try await download.status.state == .paused)
    gate.open()
    try await downloader.waitUntilIdle()
    #expect(try await download.status.state == .paused)
    await downloader.shutdown()
  }

  @Test func removingAllStartsNothingMeanwhile() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, limit: 2)
    try await downloader.add(contentsOf: (0..<50).map { DownloadRequest(url, id: DownloadID("d\($0)")) })
    await source.held(atLeast: 2)
    #expect(try await downloader.removeAll() == 50)
    #expect(storage.partials.isEmpty)
    #expect(source.requests.count == 2)
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
  }

  @Test func aReplacedSourceIsStoppedWhenNoRunUsesIt() async throws {
    let first = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let second = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(first)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await first.held(atLeast: 1)
    try await downloader.replace(second)
    for _ in 0..<50 { _ = try await downloader.status(of: "a") }
    #expect(first.stops == 0)
    first.release()
    _ = try await download.value
    while first.stops == 0 { await Task.yield() }
    // Nothing runs now, and no run ends.
    try await downloader.replace(FakeSource(everyURL: .init(bytes)))
    while second.stops == 0 { await Task.yield() }
    await downloader.shutdown()
    #expect(first.stops == 1 && second.stops == 1)
  }

  @Test func mirrorsAreAskedWhenTheFirstPlaceStaysUnreachable() async throws {
    let mirror = try #require(URL(string: "https://mirror.example.net/file.bin"))
    let source = FakeSource([url: [.failingToOpen(cut)], mirror: [.init(bytes)]])
    let retry = FakeRetryPolicy { $0.consecutive < 3 ? .resume(after: .zero) : .giveUp }
    let downloader = try await downloader(source, retry: retry)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror])).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.map(\.url) == [url, url, url, mirror])
    await downloader.shutdown()
  }

  @Test func replacingAGateByAnOpenOneInterruptsNothing() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let downloader = try await downloader(source, gate: FakeGate(name: "WiFi"))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let other = FakeGate(name: "WiFi")
    await downloader.replace(other)
    await other.watchers(atLeast: 1)
    source.release()
    _ = try await download.value
    #expect(source.requests.count == 1)
    await downloader.shutdown()
  }

  @Test("A replaced retry policy decides on the failures of downloads that are running")
  func replacingTheRetryPolicy() async throws {
    let source = FakeSource([
      url: [.init(bytes).holding(after: 40_000).failing(after: 50_000, with: cut), .init(bytes)]
    ])
    let (earlier, later) = (FakeRetryPolicy(.giveUp), FakeRetryPolicy(.resume(after: .zero)))
    let downloader = try await downloader(source, retry: earlier)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    await downloader.replace(later)
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(earlier.failures.isEmpty && later.failures.count == 1)
    await downloader.shutdown()
  }

  @Test func aStateThatTheLedgerDidNotTakeIsToldAgain() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let downloader = try await downloader(source, ledger: faulty)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    faulty.fail(.save, with: DownloadError(.ledger, "disk full"))
    _ = try await download.pause()
    // The loop retries at once or after a second.
    for _ in 0..<100 where try await download.status.state != .paused {
      time.advance(by: .seconds(1))
      await Task.yield()
    }
    #expect(try await download.status.state == .paused)
    await downloader.shutdown()
  }

  @Test func aServerThatServesPiecesIsAskedForAll() async throws {
    let pieces = PieceSource(bytes: bytes, piece: 30_000)
    let downloader = try await Downloader(options: options) {
      pieces
      FakeRetryPolicy(.resume(after: .zero))
      storage
      ledger
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    await downloader.shutdown()
  }

  @Test func checkpointsByTimeOnly() async throws {
    var options = options
    options.checkpoints = CheckpointPolicy(bytes: .max)
    let source = FakeSource([url: [.init(bytes).failing(after: 40_000, with: cut), .init(bytes)]])
    let downloader = try await Downloader(options: options) {
      source
      FakeRetryPolicy(.resume(after: .zero))
      storage
      ledger
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    await downloader.shutdown()
  }

  @Test func waitingForIdlenessCanBeCancelled() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)]])
    let downloader = try await downloader(source)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let wait = Task { try await downloader.waitUntilIdle() }
    wait.cancel()
    await #expect(throws: CancellationError.self) { try await wait.value }
    await downloader.shutdown()
  }

  @Test func aDownloaderThatIsLetGoOfKeepsItsDownloadsResumable() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000), .init(bytes)]])
    do {
      let first = try await downloader(source)
      try await first.add(DownloadRequest(url, id: "a"))
      await source.held(atLeast: 1)
    }
    // The loop ends asynchronously; the ledger does not tell other downloaders that a download was given back.
    let store = try await ledger.open()
    while try await store.record("a")?.owner != nil { await Task.yield() }
    let second = try await downloader(source)
    let download = try #require(try await second.download("a"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    await second.shutdown()
  }
}

/// Answers every request with a part of the file, and gives the total size with the last part only.
struct PieceSource: Source, SourceSession {
  let bytes: [UInt8]
  let piece: Int

  func accepts(_ url: URL) -> Bool { true }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    let validator = Validator(entityTag: EntityTag("v1"))
    guard let range = request.range else {
      // The first body is interrupted, so that there are bytes to resume from.
      let first = Array(bytes[..<piece])
      return SourceReply(
        coverage: .whole, validator: validator,
        body: Body { sink in
          try sink(first.span.bytes)
          throw DownloadError(.network, "cut")
        })
    }
    let start = Int(range.start)
    let end = min(start + piece, bytes.count)
    return SourceReply(
      coverage: .range(Int64(start)..<Int64(end), total: .unknown), length: .known(Int64(end - start)),
      validator: validator, body: .bytes(Array(bytes[start..<end])))
  }
}
