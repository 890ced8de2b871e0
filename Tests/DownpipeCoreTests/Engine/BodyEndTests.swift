import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// What a source knows only at the end of a body: digests of a trailer, and ends that nothing confirms.
@Suite(.endsHangs)
struct BodyEndTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// The end of the connection is the only end of the body.
  private func endless(_ bytes: [UInt8]) -> FakeSource.Script {
    FakeSource.Script(bytes).with {
      $0.validator = nil
      $0.announcesLength = false
      $0.honoursRanges = false
      $0.endsUnconfirmed = true
    }
  }

  private func notices(_ observer: RecordingObserver) -> [DownloadError.Code] {
    observer.events(of: "a").compactMap { event in
      switch event {
      case .refused(let error), .attemptFailed(let error): error.code
      default: nil
      }
    }
  }

  /// Downloads, and returns the bytes that were published, and what was told of them.
  private func fetch(
    _ source: FakeSource, _ steps: [FakePostProcessor<File, File>] = [], _ request: DownloadRequest? = nil
  ) async throws -> (bytes: [UInt8]?, notices: [DownloadError.Code]) {
    let observer = RecordingObserver()
    let downloader = try await Downloader(options: options) {
      source
      FakeRetryPolicy { _ in .resume(after: .zero) }
      storage
      observer
      for step in steps { step }
    }
    let artifact = try await downloader.add(request ?? DownloadRequest(url, id: "a")).value
    await downloader.shutdown()
    return (storage.bytes(of: artifact), notices(observer))
  }

  // MARK: The rule

  struct Example: Sendable {
    var size: Int64?
    var hasDigest = false
    var end: Int64
    var result: UnconfirmedEnd
  }

  @Test(
    "what proves the end, and what is fetched again",
    arguments: [
      Example(end: 0, result: .compare), Example(end: 1, result: .compare),
      Example(end: 64 << 20, result: .compare), Example(end: 64 << 20 + 1, result: .publish),
      Example(end: .max, result: .publish),
      Example(size: 10, end: 10, result: .proved), Example(size: 10, end: 9, result: .proved),
      Example(size: 1 << 40, end: 1 << 40, result: .proved),
      Example(hasDigest: true, end: 10, result: .proved), Example(hasDigest: true, end: 1 << 40, result: .proved),
      Example(size: 10, hasDigest: true, end: 10, result: .proved),
    ])
  func rule(_ example: Example) {
    #expect(
      UnconfirmedEnd.decide(size: example.size, hasDigest: example.hasDigest, endedAt: example.end) == example.result)
  }

  // MARK: Ends

  @Test("a body that was cut is not published: a second one is longer", arguments: [0, 1, 60_000, 99_999])
  func cut(at count: Int) async throws {
    let source = FakeSource([url: [endless(Array(bytes.prefix(count))), endless(bytes)]])
    let result = try await fetch(source)
    #expect(result.bytes == bytes)
    #expect(result.notices.first == .lengthMismatch && result.notices.last == .comparedEnd)
  }

  @Test("a second body that is shorter, or differs, confirms nothing")
  func otherSecond() async throws {
    for second in [Array(bytes.dropLast()), Array(bytes.dropLast()) + [bytes[99_999] ^ 1], []] {
      let source = FakeSource([url: [endless(bytes), endless(second), endless(bytes)]])
      let result = try await fetch(source)
      #expect(result.bytes == bytes)
      #expect(result.notices.first == .lengthMismatch && result.notices.last == .comparedEnd)
    }
  }

  @Test("a body that ends like a second one is complete, and that is told", arguments: [0, 1, 100_000])
  func compared(size: Int) async throws {
    let content = Array(bytes.prefix(size))
    let source = FakeSource([url: [endless(content)]])
    let result = try await fetch(source)
    #expect(result.bytes == content)
    #expect(result.notices == [.comparedEnd])
    #expect(source.requests.map(\.range) == [nil, nil])
    // The second body is only compared.
    let written = storage.calls.compactMap { $0.operation == .write ? $0.range : nil }
    #expect(written.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } == size)
  }

  @Test("a confirmed end needs no second body, nor does one of which the size is known")
  func known() async throws {
    let scripts = [
      endless(bytes).with { $0.endsUnconfirmed = false }, endless(bytes).with { $0.announcesLength = true },
    ]
    for script in scripts {
      let source = FakeSource([url: [script]])
      let result = try await fetch(source)
      #expect(result.bytes == bytes && result.notices.isEmpty && source.requests.count == 1)
    }
    let source = FakeSource([url: [endless(bytes)]])
    let result = try await fetch(source, [], DownloadRequest(url, id: "a").with(\.expectedSize, .known(100_000)))
    #expect(result.bytes == bytes && result.notices.isEmpty && source.requests.count == 1)
  }

  private struct Verify: UniversalPostProcessor, DigestVerifying {
    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact { artifact }
  }

  @Test("a digest that a step verifies proves the end", arguments: [false, true])
  func digests(isTrailer: Bool) async throws {
    let digest = FileDigest(.sha256, bytes: Array(0..<32))
    let source = FakeSource([
      url: [endless(bytes).with { if isTrailer { $0.trailerDigests = [digest] } else { $0.digests = [digest] } }]
    ])
    let observer = RecordingObserver()
    let downloader = try await Downloader(options: options) {
      source
      storage
      observer
      Verify()
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    await downloader.shutdown()
    #expect(storage.bytes(of: artifact) == bytes && notices(observer).isEmpty && source.requests.count == 1)
  }

  @Test("a link that is good for one request only: the file is published, and its end is unconfirmed")
  func onlyOnce() async throws {
    let source = FakeSource([url: [endless(bytes), .status(410)]])
    let result = try await fetch(source)
    #expect(result.bytes == bytes)
    #expect(result.notices == [.unconfirmedEnd])
  }

  @Test("a large file is not fetched twice: it is published, and its end is unconfirmed")
  func large() async throws {
    let content = [UInt8](repeating: 7, count: 64 << 20 + 1)
    let source = FakeSource([url: [endless(content).with { $0.chunkSize = 1 << 20 }]])
    let result = try await fetch(source)
    #expect(result.bytes?.count == content.count)
    #expect(result.notices == [.unconfirmedEnd] && source.requests.count == 1)
  }

  @Test("the rest of a file may be cut, too")
  func resumed() async throws {
    let source = FakeSource([
      url: [
        endless(bytes).failing(after: 50_000, with: DownloadError(.network, "cut")),
        endless(Array(bytes.prefix(70_000))), endless(bytes),
      ]
    ])
    let result = try await fetch(source)
    #expect(result.bytes == bytes)
    #expect(result.notices.contains(.lengthMismatch) && result.notices.last == .comparedEnd)
  }

  @Test("bytes whose end is not confirmed yet are not complete for the next run")
  func paused() async throws {
    let source = FakeSource([url: [endless(Array(bytes.prefix(60_000))), endless(bytes).holding(after: 1)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await download.pause()
    #expect(try await download.status.progress.total == .unknown)
    source.script(url, endless(bytes))
    try await download.resume()
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }

  // MARK: Trailers

  @Test("the digests of a trailer are those of the file, beside those of the header")
  func trailer() async throws {
    let header = FileDigest(.sha512, bytes: Array(repeating: 1, count: 64))
    let trailer = FileDigest(.sha256, bytes: Array(0..<32))
    let source = FakeSource([
      url: [
        FakeSource.Script(bytes).with {
          $0.digests = [header]
          $0.trailerDigests = [trailer, header]
        }
      ]
    ])
    let seen = Watched<[FileDigest]>([])
    let step = FakePostProcessor<File, File>(name: "Digests") { file, context in
      seen.update { $0 = context.digests }
      return file
    }
    _ = try await fetch(source, [step])
    #expect(seen.value == [header, trailer])
  }
}
