import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// Places that send wrong bytes: they are excluded, and the next place is asked.
@Suite(.endsHangs)
struct WrongPlaceTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://wrong.example.org/file.bin?key=secret-value")!
  let time = VirtualTime()
  let storage: FakeStorage
  let ledger = MemoryLedger()
  private let mirror = URL(string: "https://mirror.example.net/file.bin")!
  private let third = URL(string: "https://third.example.com/file.bin")!
  private let observer = RecordingObserver()
  private let folder: TemporaryFolder
  private let table = Retry(.constant(.zero, attempts: 5))

  init() throws {
    folder = try TemporaryFolder()
    storage = FakeStorage(workspaces: folder.path)
  }

  /// Compares the file with the right bytes, as VerifyChecksum does with their digest.
  private struct Verify: UniversalPostProcessor, DigestVerifying {
    let bytes: [UInt8]
    var name: String { "Verify" }
    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      guard try artifact.readBytes() == bytes else { throw DownloadError(.digestMismatch, "not the right bytes") }
      return artifact
    }
  }

  /// Throws `.damaged` for anything but the right bytes, as Gunzip does.
  private struct Decode: PostProcessor {
    let bytes: [UInt8]
    var name: String { "Decode" }
    func process(_ file: File, in context: ProcessingContext) async throws -> File {
      guard try file.artifact.readBytes() == bytes else { throw DownloadError(.damaged, "it ends too early") }
      return file
    }
  }

  enum Proof: CaseIterable { case digest, decoding }

  private func downloader(
    _ source: FakeSource, _ proof: Proof = .digest, segments: FakeSegmentPolicy? = nil, retry: FakeRetryPolicy? = nil,
    right: [UInt8]? = nil
  ) async throws -> Downloader {
    let table = table
    return try await Downloader(options: options) {
      source
      if let segments { segments }
      retry ?? FakeRetryPolicy { table.decide($0) }
      storage
      observer
      AnyLedger(ledger)
      if proof == .digest { Verify(bytes: right ?? bytes) }
      if proof == .decoding { Decode(bytes: right ?? bytes) }
    }
  }

  private func wrong(_ seed: UInt8 = 1) -> FakeSource.Script { .init(bytes.map { $0 ^ seed }) }

  private var failures: [DownloadError] {
    observer.events(of: "a").compactMap { if case .attemptFailed(let error) = $0 { error } else { nil } }
  }

  @Test("the next place is asked at once, and the error names the one that was wrong", arguments: Proof.allCases)
  func theMirrorIsAsked(_ proof: Proof) async throws {
    let source = FakeSource([url: [wrong()], mirror: [.init(bytes)]])
    let retry = FakeRetryPolicy(.giveUp)
    let downloader = try await downloader(source, proof, retry: retry)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror])).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.map(\.url) == [url, mirror])
    #expect(source.requests.map(\.range) == [nil, nil])
    #expect(failures.map(\.code) == [proof == .digest ? .digestMismatch : .damaged])
    #expect(failures.first?.url == url.redacted)
    #expect(retry.failures.isEmpty, "another place is no retry")
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
    await downloader.shutdown()
  }

  @Test("when no place is left the error names all, and a resume by hand asks all again", arguments: Proof.allCases)
  func allAreWrong(_ proof: Proof) async throws {
    let source = FakeSource([url: [wrong()], mirror: [wrong(2)], third: [wrong(3)]])
    let downloader = try await downloader(source, proof)
    let download = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror, third]))
    await #expect {
      try await download.value
    } throws: { error in
      let message = (error as? DownloadError)?.message ?? ""
      return ["wrong.example.org", "mirror.example.net", "third.example.com"].allSatisfy(message.contains)
        && !message.contains("secret-value")
    }
    #expect(source.requests.map(\.url) == [url, mirror, third])
    #expect(storage.partials.isEmpty, "wrong bytes are not kept")
    source.script(url, .init(bytes))
    try await download.resume()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.last?.url == url)
    await downloader.shutdown()
  }

  @Test("what is known of places outlives a stop for a change: which was wrong, and which has sent the bytes on disk")
  func changedMeanwhile() async throws {
    let source = FakeSource([
      url: [wrong()], mirror: [wrong(2).holding(after: 50_000), wrong(2)], third: [.init(bytes)],
    ])
    let retry = FakeRetryPolicy(.giveUp)
    let downloader = try await downloader(source, .digest, retry: retry)
    let download = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror]))
    await source.held(atLeast: 1)
    try await download.update { [mirror, third] in $0.mirrors = [mirror, third] }
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.map(\.url) == [url, mirror, mirror, third])
    #expect(source.requests[2].range != nil, "the bytes on disk are used")
    #expect(failures.map(\.url) == [url.redacted, mirror.redacted])
    #expect(retry.failures.isEmpty, "another place is no retry")
    await downloader.shutdown()
  }

  @Test("an excluded place is not asked again when the next one is interrupted")
  func theExclusionOutlivesTheRun() async throws {
    let cut = DownloadError(.network, "cut")
    let source = FakeSource([
      url: [wrong()], mirror: [FakeSource.Script(bytes).failing(after: 50_000, with: cut), .init(bytes)],
    ])
    let downloader = try await downloader(source)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror])).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.map(\.url) == [url, mirror, mirror])
    await downloader.shutdown()
  }

  @Test(
    "a place that was excluded for a wrong digest is asked again for the right one, and after a restart",
    arguments: [true, false])
  func theExclusionEndsWithItsRequest(restarts: Bool) async throws {
    // The digest is that of other bytes, and the mirror cannot be reached.
    let source = FakeSource([url: [.init(bytes)], mirror: [.failingToOpen(DownloadError(.offline, "no route"))]])
    let downloader = try await downloader(source, right: [1])
    let digest = FileDigest(.sha256, bytes: [UInt8](repeating: 1, count: 32))
    let download = try await downloader.add(
      DownloadRequest(url, id: "a", mirrors: [mirror]).with(\.expectedDigests, [digest]))
    await source.requests(atLeast: 2)
    try await settle(downloader)
    if restarts {
      try await download.restart()
    } else {
      try await download.update { $0.expectedDigests = [FileDigest(.sha256, bytes: [UInt8](repeating: 2, count: 32))] }
    }
    // A new digest does not end the wait for the network.
    try await advancing { await source.requests(atLeast: 3) }
    #expect(source.requests[2].url == url)
    await downloader.shutdown()
  }

  @Test("when the next place fails for another reason, the error still names the one that was wrong")
  func theMirrorIsMissing() async throws {
    let source = FakeSource([url: [wrong()], mirror: [.status(404)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror]))
    await #expect {
      try await download.value
    } throws: { error in
      let error = error as? DownloadError
      return error?.httpStatus == 404 && error?.url == mirror.absoluteString
        && error?.message.contains("wrong.example.org") ?? false
    }
    await downloader.shutdown()
  }

  @Test("bytes of an earlier process, whose place is not known: the file is fetched again before a place is excluded")
  func bytesOfUnknownOrigin() async throws {
    let source = FakeSource([url: [wrong().holding(after: 50_000)], mirror: [.init(bytes)]])
    let first = try await downloader(source)
    let begun = try await first.add(DownloadRequest(url, id: "a", mirrors: [mirror]))
    await source.held(atLeast: 1)
    try await begun.pause()
    await first.shutdown()
    source.script(url, wrong())
    let second = try await downloader(source)
    let download = try #require(try await second.download("a"))
    try await download.resume()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.map(\.url) == [url, url, url, mirror])
    await second.shutdown()
  }

  // MARK: Segments

  @Test("with segments, too, the mirror is asked when the first URL is wrong in a place that is not compared")
  func segments() async throws {
    let bytes = DownloadFixtures.pattern(size: 4 << 20)
    var other = bytes
    for index in 70_000..<70_010 { other[index] ^= 1 }
    let source = FakeSource([url: [.init(other)], mirror: [.init(bytes)]])
    let downloader = try await downloader(source, segments: FakeSegmentPolicy(maximum: 4), right: bytes)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror])).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(failures.last?.url == url.redacted)
    await downloader.shutdown()
  }

  @Test("with segments and a first URL that is wrong everywhere")
  func segmentsOfAnotherFile() async throws {
    let bytes = DownloadFixtures.pattern(size: 4 << 20)
    let source = FakeSource([url: [.init(bytes.map { $0 ^ 1 })], mirror: [.init(bytes)]])
    let downloader = try await downloader(source, segments: FakeSegmentPolicy(maximum: 4), right: bytes)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror])).value
    #expect(storage.bytes(of: artifact) == bytes)
    await downloader.shutdown()
  }

  // MARK: Damaged bytes of one place

  @Test("damaged bytes are fetched again, by the table")
  func damagedOnce() async throws {
    let source = FakeSource([url: [wrong(), .init(bytes)]])
    let downloader = try await downloader(source, .decoding)
    #expect(storage.bytes(of: try await downloader.add(DownloadRequest(url, id: "a")).value) == bytes)
    #expect(source.requests.map(\.range) == [nil, nil])
    await downloader.shutdown()
  }

  @Test("bytes that stay damaged fail the download without them, and a resume asks the server")
  func damagedForNow() async throws {
    let source = FakeSource([url: [wrong()]])
    let downloader = try await downloader(source, .decoding)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { code($0) == .damaged }
    #expect(source.requests.count == 2)
    #expect(storage.partials.isEmpty)
    source.script(url, .init(bytes))
    try await download.resume()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.count == 3)
    await downloader.shutdown()
  }

  @Test("a damaged file with the right digest is not fetched again", arguments: [true, false])
  func damagedAtTheServer(isRequested: Bool) async throws {
    let digest = FileDigest(.sha256, bytes: Array(repeating: 1, count: 32))
    let source = FakeSource([url: [FakeSource.Script(bytes).with { if !isRequested { $0.digests = [digest] } }]])
    let table = table
    let downloader = try await Downloader(options: options) {
      source
      FakeRetryPolicy { table.decide($0) }
      storage
      AnyLedger(ledger)
      Verify(bytes: bytes)
      Decode(bytes: [])
    }
    var request = DownloadRequest(url, id: "a")
    if isRequested { request.expectedDigests = [digest] }
    let download = try await downloader.add(request)
    await #expect { try await download.value } throws: { code($0) == .processing }
    #expect(source.requests.count == 1)
    // The server may have another file later, with another digest; the request's digest is only that of these bytes.
    #expect(storage.partials.isEmpty == !isRequested)
    await downloader.shutdown()
  }
}
