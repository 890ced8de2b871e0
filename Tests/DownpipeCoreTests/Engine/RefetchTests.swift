import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Finished downloads that are fetched again.
@Suite(.endsHangs)
struct RefetchTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let newURL = URL(string: "https://example.org/corrected.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private var newBytes: [UInt8] { bytes.map { ~$0 } + [1] }
  private var request: DownloadRequest { DownloadRequest(url, id: "a", destination: .init(name: "film")) }

  private func downloader(
    _ source: FakeSource, _ storage: FakeStorage? = nil, retry: FakeRetryPolicy = FakeRetryPolicy(.giveUp)
  ) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      retry
      storage ?? self.storage
      ledger
      Verify()
    }
  }

  enum Change: CaseIterable, Sendable {
    case url, size, digest, restart, restartAll

    func apply(to request: inout DownloadRequest) {
      switch self {
      case .url: request.url = URL(string: "https://example.org/corrected.bin")!
      case .size: request.expectedSize = .known(100_001)
      case .digest: request.expectedDigests = [FileDigest(.crc32, bytes: [1, 2, 3, 4])]
      case .restart, .restartAll: break
      }
    }
  }

  @Test(
    "a finished download whose request asks for another file is fetched again", arguments: Change.allCases,
    [true, false])
  func isFetchedAgain(_ change: Change, byAdding: Bool) async throws {
    let new = FakeSource.Script(newBytes).holding(after: 40_000)
    let source = FakeSource([url: [.init(bytes), new], newURL: [new]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(request)
    let old = try await download.value
    var changed = request
    change.apply(to: &changed)
    switch change {
    case .restart: #expect(try await downloader.restart("a"))
    case .restartAll: #expect(try await downloader.restartAll() == 1)
    default:
      if byAdding {
        #expect(try await downloader.add(changed).isNew, "it was started again")
      } else {
        try await download.update { change.apply(to: &$0) }
      }
    }
    await source.held(atLeast: 1)
    #expect(storage.bytes(of: old) == bytes, "the old file stays until the new one is complete")
    #expect(try await download.status.state == .transferring)
    source.release()
    let artifact = try await download.value
    #expect(artifact.location == old.location, "the new file takes the place of the old one")
    #expect(storage.bytes(of: artifact) == newBytes && storage.published.count == 1)
    #expect(try await download.status.request == changed)
    // Asked for again, nothing happens.
    #expect(try await !downloader.add(changed).isNew)
    try await downloader.waitUntilIdle()
    #expect(source.requests.count == 2)
    await downloader.shutdown()
    #expect(storage.partials.isEmpty)
  }

  @Test func whatDoesNotConcernTheFileDoesNotFetchItAgain() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(source)
    var request = request
    request.expectedSize = .known(100_000)
    request.expectedDigests = [FileDigest(.crc32, bytes: [1, 2, 3, 4])]
    let download = try await downloader.add(request)
    _ = try await download.value
    try await downloader.add(request)
    // A requirement that is gone asks for nothing.
    request.expectedDigests = []
    request.expectedSize = .unknown
    request.priority = .high
    request.tags = ["x"]
    request.metadata = ["x": "y"]
    request.headers = ["Authorization": "Bearer new"]
    request.mirrors = [newURL]
    request.maximumSize = 1_000_000
    request.destination.name = "other"
    #expect(try await !downloader.add(request).isNew)
    try await download.update { request in
      request.priority = .low
      request.sizeHint = .known(7)
    }
    try await downloader.waitUntilIdle()
    #expect(source.requests.count == 1)
    #expect(try await download.status.state.phase == .finished)
    await downloader.shutdown()
  }

  @Test func aFileWithAnotherNameReplacesTheOldOne() async throws {
    let source = FakeSource([url: [.init(bytes)], newURL: [.init(newBytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(try await download.value.name == "file.bin")
    try await downloader.add(DownloadRequest(newURL, id: "a"))
    let artifact = try await download.value
    #expect(artifact.name == "corrected.bin" && storage.bytes(of: artifact) == newBytes)
    #expect(storage.published.count == 1, "the old file is gone")
    await downloader.shutdown()
  }

  @Test func aNewDestinationHoldsForTheFileThatIsFetchedAgain() async throws {
    let source = FakeSource([url: [.init(bytes)], newURL: [.init(newBytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(request)
    _ = try await download.value
    try await download.update { [newURL] request in
      request.url = newURL
      request.destination.name = "corrected film"
    }
    #expect(try await download.value.name == "corrected film")
    #expect(storage.published.count == 1)
    await downloader.shutdown()
  }

  @Test func theOldFileStaysWhenTheNewOneFailsAndIsReplacedLater() async throws {
    let source = FakeSource([url: [.init(bytes)], newURL: [.status(404), .init(newBytes)]])
    let first = try await downloader(source)
    let download = try await first.add(request)
    let old = try await download.value
    try await download.update { [newURL] in $0.url = newURL }
    await #expect(throws: DownloadError.self) { try await download.value }
    #expect(storage.bytes(of: old) == bytes)
    await first.shutdown()
    // The next process knows which file is replaced.
    let second = try await downloader(source)
    #expect(try await second.resume("a"))
    let artifact = try await #require(try await second.download("a")).value
    #expect(artifact.location == old.location && storage.bytes(of: artifact) == newBytes)
    #expect(storage.published.count == 1)
    await second.shutdown()
  }

  @Test func theOldFileGoesWithADownloadThatIsDiscardedOrRemoved() async throws {
    for isDiscarded in [true, false] {
      let storage = FakeStorage()
      let source = FakeSource([url: [.init(bytes), .init(newBytes).holding(after: 40_000)]])
      let downloader = try await downloader(source, storage)
      let download = try await downloader.add(request)
      _ = try await download.value
      try await downloader.restart("a")
      await source.held(atLeast: 1)
      if isDiscarded {
        #expect(try await downloader.discard("a"))
      } else {
        #expect(try await download.remove(deletingFile: true))
      }
      #expect(storage.published.isEmpty, "\(isDiscarded)")
      if isDiscarded { _ = try await download.remove() }
      await downloader.shutdown()
    }
  }

  @Test func anExistingFileIsNotReusedInPlaceOfTheNewOne() async throws {
    let storage = FakeStorage(onConflict: .reuse)
    let source = FakeSource([url: [.init(bytes)], newURL: [.init(newBytes)]])
    let downloader = try await downloader(source, storage)
    let download = try await downloader.add(request)
    _ = try await download.value
    try await download.update { [newURL] in $0.url = newURL }
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == newBytes && storage.published.count == 1)
    await downloader.shutdown()
  }

  // MARK: Digests

  @Test func aDigestThatNoStepChecksIsRefused() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await Downloader(options: options) {
      source
      storage
      ledger
      Verify().when { $0.request.tags.contains("verified") }
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    _ = try await download.value
    var request = request
    request.id = "b"
    request.expectedDigests = [FileDigest(.crc32, bytes: [1, 2, 3, 4])]
    func refuses(_ request: DownloadRequest, _ text: String) async {
      let refusals = [
        await refusal { try await downloader.validate(request) },
        await refusal { _ = try await downloader.add(request) },
        await refusal {
          _ = try await downloader.update("a") { changed in
            changed.expectedDigests = request.expectedDigests
            changed.tags = request.tags
            changed.steps = request.steps
          }
        },
      ]
      #expect(refusals.allSatisfy { $0?.contains(text) == true }, "\(refusals)")
    }
    await refuses(request, "no selected step of this pipeline verifies digests: add one, such as VerifyChecksum()")
    request.tags = ["verified"]
    try await downloader.validate(request)
    request.expectedDigests = [FileDigest(.crc32, bytes: [1, 2, 3])]
    await refuses(request, "a crc32 digest has 4 bytes, but the expected one has 3")
    request.expectedDigests = [FileDigest(DigestAlgorithm("sha3-512"), bytes: [1, 2, 3])]
    await refuses(request, "verifies digests of the algorithm “sha3-512”")
    request.expectedDigests = [FileDigest(.crc32, bytes: [1, 2, 3, 4])]
    request.steps = .none
    await refuses(request, "no selected step")
    #expect(try await downloader.status(of: "b") == nil)
    #expect(try await download.status.request.expectedDigests.isEmpty)
    await downloader.shutdown()
  }

  @Test func aStepOfOneOwnVerifiesItsOwnAlgorithm() async throws {
    let own = DigestAlgorithm("tiger")
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      storage
      ledger
      Verify(algorithm: own)
    }
    var request = request
    request.expectedDigests = [FileDigest(own, bytes: [1, 2, 3])]
    _ = try await downloader.add(request).value
    request.expectedDigests = [FileDigest(.sha256, bytes: [UInt8](repeating: 0, count: 32))]
    let refused = request
    let error = await downloadError { _ = try await downloader.add(refused) }
    #expect(error?.code == .invalidRequest)
    await downloader.shutdown()
  }

  @Test func aLedgerWithADigestThatTheNewPipelineDoesNotCheckFails() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let first = try await downloader(source)
    var request = request
    request.expectedDigests = [FileDigest(.crc32, bytes: [1, 2, 3, 4])]
    try await first.add(request)
    await source.held(atLeast: 1)
    await first.shutdown()
    let second = try await Downloader(options: options) {
      source
      storage
      ledger
    }
    let download = try #require(try await second.download("a"))
    #expect(await refusal { _ = try await download.value }?.contains("VerifyChecksum()") == true)
    #expect(source.requests.count == 1 && storage.published.isEmpty)
    await second.shutdown()
  }

  // MARK: Head starts

  @Test func aHeadStartWithoutAFileBeginsAtTheFirstByte() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let observer = RecordingObserver()
    let downloader = try await downloader(source, observers: [observer])
    let request = DownloadRequest(url, id: "a").with(\.headStart, .init(file: "/nowhere/at/all", count: 10))
    let download = try await downloader.add(request)
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(try await download.status.request.headStart == nil)
    #expect(source.requests.map(\.range) == [nil])
    await downloader.shutdown()
    let told = observer.events.contains { event in
      if case .refused(let error) = event.kind { error.message.contains("/nowhere/at/all") } else { false }
    }
    #expect(told)
  }

  private struct Verify: UniversalPostProcessor, DigestVerifying {
    var algorithm: DigestAlgorithm?
    func verifies(_ algorithm: DigestAlgorithm) -> Bool {
      self.algorithm.map { $0 == algorithm } ?? (algorithm.byteCount != nil)
    }
    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact { artifact }
  }
}

/// The message with which a request is refused as invalid; `nil` if it is not.
private func refusal(_ body: () async throws -> Void) async -> String? {
  do {
    try await body()
    return nil
  } catch {
    guard let error = error as? DownloadError, error.code == .invalidRequest else { return nil }
    return error.message
  }
}
