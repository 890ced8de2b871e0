import DownpipeChecksum
@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// What was verified, and what `RequireDigest` refuses.
@Suite(.endsHangs)
struct RequireDigestTests {
  private static let bytes = DownloadFixtures.pattern(size: 100_000)
  private static let url = URL(string: "https://example.org/film.mkv")!
  private static let sums = URL(string: "https://example.org/film.mkv.sha256")!

  /// A digest step of another package.
  private struct OwnDigest: UniversalPostProcessor, DigestVerifying {
    let digest: FileDigest
    let isRight: Bool

    func verifies(_ algorithm: DigestAlgorithm) -> Bool { algorithm == digest.algorithm }

    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      context.confirm(digest, from: .init("catalogue"))
      guard isRight else { throw DownloadError(.processing, "another reason") }
      return artifact
    }
  }

  private struct Case {
    var expected: [FileDigest] = []
    var pieces: PieceDigests?
    var sent: [FileDigest] = []
    var hasSums = false
    var own: OwnDigest?
  }

  private func download(
    _ test: Case
  ) async throws -> (
    verified: [VerifiedDigest], told: [VerifiedDigest], error: DownloadError?, recorded: [VerifiedDigest]
  ) {
    let line = Array("\(try DigestSamples.digest(.sha256, of: Self.bytes).hex)  film.mkv\n".utf8)
    let ledger = MemoryLedger()
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      FakeSource([Self.url: [.init(Self.bytes).with { $0.digests = test.sent }], Self.sums: [.init(line)]])
      FakeStorage()
      ledger
      FakeRetryPolicy(.giveUp)
      VerifyChecksum()
      if test.hasSums { VerifyChecksum(file: .beside(".sha256")) }
      if let own = test.own { own }
      RequireDigest()
    }
    var request = DownloadRequest(Self.url, id: "a").with(\.expectedDigests, test.expected)
    request.pieces = test.pieces
    // It does not begin before its events are followed.
    await downloader.setSuspended(true)
    let download = try await downloader.add(request)
    let events = download.events
    await downloader.setSuspended(false)
    var told: [VerifiedDigest] = []
    for await event in events { if case .verified(let digests) = event.kind { told += digests } }
    let status = try await download.status
    await downloader.shutdown()
    let recorded = try await ledger.open().record("a")?.steps.verified ?? []
    return (status.verified, told, status.error, recorded)
  }

  @Test("status, events and record say what was verified, and from where")
  func verified() async throws {
    let (strong, weak) = (
      try DigestSamples.digest(.sha256, of: Self.bytes), try DigestSamples.digest(.md5, of: Self.bytes)
    )
    let pieces = try await withFile(Self.bytes) {
      try await PieceDigests.of(file: $0, algorithm: .sha1, length: 65_536)
    }
    for (test, expected) in [
      (Case(expected: [strong]), [VerifiedDigest(strong, from: .request)]),
      (Case(sent: [weak]), [VerifiedDigest(weak, from: .server)]),
      (
        Case(expected: [strong], sent: [weak, strong]),
        [VerifiedDigest(strong, from: .request), VerifiedDigest(weak, from: .server)]
      ),
      (Case(hasSums: true), [VerifiedDigest(strong, from: .checksumFile)]),
      (
        Case(sent: [strong], hasSums: true),
        [VerifiedDigest(strong, from: .server), VerifiedDigest(strong, from: .checksumFile)]
      ),
      (Case(pieces: pieces), [VerifiedDigest(pieces)]),
      // The digest of the whole file proves the pieces, which are not compared.
      (Case(expected: [strong], pieces: pieces), [VerifiedDigest(strong, from: .request)]),
      (Case(own: OwnDigest(digest: weak, isRight: true)), [VerifiedDigest(weak, from: .init("catalogue"))]),
    ] {
      let result = try await download(test)
      #expect(result.error == nil)
      #expect(result.verified == expected && result.told == expected && result.recorded == expected)
    }
  }

  @Test("a file of which nothing is known is refused, and its bytes are kept")
  func unverified() async throws {
    let result = try await download(Case())
    #expect(result.error?.code == .unverified && result.error?.stage == "RequireDigest")
    #expect(result.verified.isEmpty && result.recorded.isEmpty)
  }

  @Test("a digest of an algorithm that is not computed here is no check")
  func unknownAlgorithm() async throws {
    let result = try await download(Case(sent: [FileDigest(DigestAlgorithm("odd"), bytes: [1])]))
    #expect(result.error?.code == .unverified)
  }

  @Test("what a step reports counts only if it returns")
  func failedStep() async throws {
    let weak = try DigestSamples.digest(.md5, of: Self.bytes)
    let result = try await download(Case(own: OwnDigest(digest: weak, isRight: false)))
    #expect(result.error?.code == .processing && result.verified.isEmpty && result.told.isEmpty)
  }

  @Test("a file that was refused finishes from its bytes once its request has a digest")
  func later() async throws {
    let source = FakeSource([Self.url: [.init(Self.bytes)]])
    let storage = FakeStorage()
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      storage
      FakeRetryPolicy(.giveUp)
      VerifyChecksum()
      RequireDigest()
    }
    var request = DownloadRequest(Self.url, id: "a")
    await #expect(throws: DownloadError.self) { try await downloader.add(request).value }
    request.expectedDigests = [try DigestSamples.digest(.sha256, of: Self.bytes)]
    let artifact = try await downloader.add(request).value
    #expect(storage.bytes(of: artifact) == Self.bytes)
    #expect(source.requests.count == 1, "the bytes were kept")
    await downloader.shutdown()
  }
}
