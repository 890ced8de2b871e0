import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Content codings that were not requested. In these tests a coded file is a reversed one.
@Suite(.endsHangs)
struct DecodingTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.csv")!
  let time = VirtualTime()
  let ledger = MemoryLedger()
  let storage: FakeStorage
  private let folder: TemporaryFolder
  private let key = PartialKey(id: "a", generation: 1)

  init() throws {
    folder = try TemporaryFolder()
    storage = FakeStorage(workspaces: folder.path)
  }

  typealias Step = FakePostProcessor<File, File>

  private var coded: FakeSource.Script { FakeSource.Script(bytes.reversed()).with { $0.contentCoding = "gzip" } }
  private func gzip() -> Step { .bytes(name: "Reverse") { $0.reversed() } }

  private func source(_ scripts: FakeSource.Script..., decoder: Step? = nil) -> FakeSource {
    FakeSource([url: scripts], decoders: ["gzip": decoder ?? gzip()])
  }

  /// Downloads in a downloader of its own; a download that exists already is resumed.
  @discardableResult
  private func run(
    _ source: FakeSource, _ steps: [Step] = [], observer: RecordingObserver = RecordingObserver(),
    retry: FakeRetryPolicy = FakeRetryPolicy(.giveUp), _ change: (inout DownloadRequest) -> Void = { _ in }
  ) async throws -> Artifact {
    let downloader = try await Downloader(options: options) {
      source
      storage
      ledger
      retry
      observer
      for step in steps { step }
    }
    do {
      var request = DownloadRequest(url, id: "a")
      change(&request)
      let artifact = try await downloader.add(request).value
      await downloader.shutdown()
      return artifact
    } catch {
      await downloader.shutdown()
      throw error
    }
  }

  private func notices(_ observer: RecordingObserver) -> [DownloadError.Code] {
    observer.events(of: "a").compactMap { if case .refused(let error) = $0 { error.code } else { nil } }
  }

  @Test func theCodingIsRemovedBeforeTheFirstStep() async throws {
    let observer = RecordingObserver()
    let step = Step.bytes(name: "Append") { $0 + [42] }
    let artifact = try await run(source(coded.with { $0.mediaType = "text/csv" }), [step], observer: observer)
    #expect(storage.bytes(of: artifact) == bytes + [42])
    #expect(artifact.name == "file.csv")
    #expect(step.inputs.map(\.mediaType) == ["text/csv"])
    let events = observer.events(of: "a")
    #expect(events.contains(.state(.processing(step: "Decode gzip"))))
    #expect(events.contains(.stepFinished(name: "Decode gzip")))
    #expect(notices(observer) == [])
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
  }

  @Test("the coding belongs to the transfer, not to the steps that a request selects")
  func withoutSteps() async throws {
    let step = Step.bytes(name: "Append") { $0 + [42] }
    let artifact = try await run(source(coded), [step]) { $0.steps = .none }
    #expect(storage.bytes(of: artifact) == bytes)
  }

  @Test("coded bytes that are the file are published as they came, without a notice")
  func theCodedFormIsTheFile() async throws {
    let scripts = [
      coded.with { $0.suggestedName = "a.tar.gz" }, coded.with { $0.mediaType = "application/x-gzip" },
      coded.with { $0.contentCoding = "decoded-gzip" }, coded.with { $0.bytes = [] },
    ]
    for (index, script) in scripts.enumerated() {
      let observer = RecordingObserver()
      let artifact = try await run(source(script), observer: observer) { request in
        request.id = DownloadID("\(index)")
        request.destination = .init(name: "\(index)")
      }
      #expect(storage.bytes(of: artifact) == script.bytes)
      #expect(!observer.events(of: DownloadID("\(index)")).contains { if case .refused = $0 { true } else { false } })
    }
    let named = try await run(source(coded)) { $0.destination = .init(name: "mine.gz") }
    #expect(storage.bytes(of: named) == bytes.reversed())
  }

  @Test("an unknown coding, or too many of them: the coded bytes are the file, and an event says so")
  func unknownCodings() async throws {
    for (index, coding) in ["foo", "gzip, foo", "gzip, gzip, gzip"].enumerated() {
      let observer = RecordingObserver()
      let id = DownloadID("\(index)")
      let artifact = try await run(source(coded.with { $0.contentCoding = coding }), observer: observer) { request in
        request.id = id
        request.destination = .init(name: "\(index)")
      }
      #expect(storage.bytes(of: artifact) == bytes.reversed())
      let notices = observer.events(of: id).compactMap { if case .refused(let error) = $0 { error } else { nil } }
      #expect(notices.map(\.code) == [.keptContentCoding])
      #expect(notices.first?.message.contains(coding.prefix(20)) ?? false)
    }
  }

  @Test func severalCodingsAreRemovedFromTheOutside() async throws {
    let script = FakeSource.Script(bytes.reversed() + [7]).with { $0.contentCoding = "gzip, br" }
    let decoders = ["gzip": gzip(), "br": Step.bytes(name: "Drop") { $0.dropLast() }]
    let artifact = try await run(FakeSource([url: [script]], decoders: decoders))
    #expect(storage.bytes(of: artifact) == bytes)
  }

  // MARK: Failures and restarts

  @Test("the process ends between the last byte and the decoding: the bytes are not requested again")
  func restart() async throws {
    let failing = Step(name: "Reverse") { _, _ in throw DownloadError(.processing, "not in this format") }
    let first = source(coded, decoder: failing)
    await #expect {
      try await run(first)
    } throws: { error in
      let error = error as? DownloadError
      return error?.code == .processing && error?.stage == "Decode gzip"
        && error?.message.contains("the content coding gzip cannot be removed: not in this format") ?? false
    }
    #expect(storage.published.isEmpty)
    #expect(storage.partials[key] == bytes.reversed(), "nothing is lost")
    let second = source(coded)
    let artifact = try await run(second)
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(second.requests.isEmpty)
    #expect(storage.partials.isEmpty)
  }

  @Test("with a source that keeps content codings the coded bytes are published, and not requested again")
  func keptAfterAFailure() async throws {
    let failing = Step(name: "Reverse") { _, _ in throw DownloadError(.processing, "not in this format") }
    await #expect(throws: DownloadError.self) { try await run(source(coded, decoder: failing)) }
    let second = FakeSource([url: [coded]])
    let observer = RecordingObserver()
    #expect(storage.bytes(of: try await run(second, observer: observer)) == bytes.reversed())
    #expect(second.requests.isEmpty)
    #expect(notices(observer) == [.keptContentCoding])
  }

  @Test func aDecodedFileIsNotDecodedAgain() async throws {
    let decoder = gzip()
    let failing = Step(name: "Move") { _, _ in throw DownloadError(.processing, "there is no such folder") }
    await #expect(throws: DownloadError.self) { try await run(source(coded, decoder: decoder), [failing]) }
    let moving = Step.bytes(name: "Move") { $0 + [42] }
    let second = source(coded, decoder: decoder)
    #expect(storage.bytes(of: try await run(second, [moving])) == bytes + [42])
    #expect(decoder.inputs.count == 1)
    #expect(second.requests.isEmpty)
  }

  @Test("coded bytes are resumed only with a strong entity tag", arguments: [true, false])
  func resumed(hasTag: Bool) async throws {
    let old = Date(timeIntervalSince1970: 0)
    let script = coded.with {
      // A date, even a strong one, is the same for all codings of a file.
      if !hasTag { $0.validator = Validator(lastModified: old, responseDate: old.addingTimeInterval(100)) }
    }
    let cut = DownloadError(.network, "cut")
    let source = source(script.failing(after: 60_000, with: cut), script)
    let artifact = try await run(source, retry: FakeRetryPolicy { _ in .resume(after: .zero) })
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.map(\.range) == [nil, hasTag ? RequestedRange(from: 59_000) : nil])
  }

  // MARK: Sizes and digests

  @Test("the expected size is that of the decoded file", arguments: [true, false])
  func expectedSize(announcesLength: Bool) async throws {
    let halving = Step.bytes(name: "Halve") { Array($0.prefix(50_000)) }
    let script = coded.with { $0.announcesLength = announcesLength }
    let artifact = try await run(source(script, decoder: halving)) { $0.expectedSize = 50_000 }
    #expect(storage.bytes(of: artifact)?.count == 50_000)
    await #expect {
      try await run(source(script, decoder: halving)) { request in
        request.id = "b"
        request.expectedSize = 49_999
        request.destination = .init(name: "b")
      }
    } throws: {
      code($0) == .lengthMismatch
    }
    #expect(storage.published.count == 1)
    // Coded bytes of the expected size are the expected file: nothing else can have that size by chance.
    let kept = try await run(source(script, decoder: halving)) { request in
      request.id = "c"
      request.expectedSize = 100_000
      request.destination = .init(name: "c")
    }
    #expect(storage.bytes(of: kept) == bytes.reversed())
  }

  @Test func theMaximumSizeHoldsForTheDecodedFileToo() async throws {
    let growing = Step.bytes(name: "Grow") { $0 + [1] }
    await #expect {
      try await run(source(coded, decoder: growing)) { $0.maximumSize = 100_000 }
    } throws: {
      code($0) == .tooLarge
    }
    #expect(storage.published.isEmpty)
    #expect(storage.calls.contains { $0.operation == .remove }, "the decoded file is removed")
    #expect(
      try await run(source(coded)) { request in
        request.id = "b"
        request.maximumSize = 100_000
      }.size == .known(100_000))
  }

  /// Records what it would verify.
  private struct Verifying: UniversalPostProcessor, DigestVerifying {
    let seen = Watched<[(bytes: [UInt8], digests: [FileDigest])]>([])
    func isNeeded(in context: ProcessingContext) -> Bool { !context.digests.isEmpty }
    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      let bytes = try artifact.readBytes()
      seen.update { $0.append((bytes, context.digests)) }
      return artifact
    }
  }

  @Test(
    "the user's digest is that of the decoded file, the server's that of the coded bytes", arguments: [true, false])
  func digests(isRequested: Bool) async throws {
    let user = FileDigest(.sha256, bytes: Array(repeating: 1, count: 32))
    let server = FileDigest(.sha256, bytes: Array(repeating: 2, count: 32))
    let source = source(coded.with { $0.digests = [server] })
    let verify = Verifying()
    let downloader = try await Downloader(options: options) {
      source
      storage
      ledger
      Step.bytes(name: "Append") { $0 + [42] }
      verify
    }
    var request = DownloadRequest(url, id: "a")
    request.expectedDigests = isRequested ? [user] : []
    let artifact = try await downloader.add(request).value
    await downloader.shutdown()
    #expect(storage.bytes(of: artifact) == bytes + [42])
    #expect(verify.seen.value.map(\.digests) == [isRequested ? [user] : [server]])
    #expect(verify.seen.value.map(\.bytes) == [isRequested ? bytes + [42] : bytes.reversed()])
  }

  @Test("a body of unknown length and of another size than expected is never published")
  func unexpectedSize() async throws {
    let source = FakeSource([url: [FakeSource.Script(bytes).with { $0.announcesLength = false }]])
    let retry = FakeRetryPolicy { $0.attempts < 3 ? .resume(after: .zero) : .giveUp }
    await #expect {
      try await run(source, retry: retry) { $0.expectedSize = 100_001 }
    } throws: {
      code($0) == .lengthMismatch
    }
    #expect(storage.published.isEmpty)
  }

  @Test("decoders share one limit: each is told how many bytes were received")
  func bytesReceived() async throws {
    let seen = Watched<[Int64?]>([])
    let growing = Step(name: "Grow") { file, context in
      seen.update { $0.append(context.bytesReceived) }
      return try await Step.bytes(name: "Double") { $0 + $0 }.process(file, in: context)
    }
    let script = coded.with { $0.contentCoding = "gzip, gzip" }
    let artifact = try await run(source(script, decoder: growing))
    #expect(storage.bytes(of: artifact)?.count == 4 * bytes.count)
    #expect(seen.value == [Int64(bytes.count), Int64(bytes.count)])
  }
}
