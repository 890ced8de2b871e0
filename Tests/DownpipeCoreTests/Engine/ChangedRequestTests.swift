@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// What is asked for is what lands: requests that change while their downloads run.
@Suite(.endsHangs)
struct ChangedRequestTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let newURL = URL(string: "https://example.org/corrected.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// Other bytes of the same size.
  private var otherBytes: [UInt8] { bytes.map { ~$0 } }
  private var retry: FakeRetryPolicy {
    FakeRetryPolicy { $0.error.code == .contentChanged ? .restart(after: .zero) : .giveUp }
  }

  enum Way: CaseIterable, Sendable {
    case update, updateAll, add

    func give(_ url: URL, to downloader: Downloader) async throws {
      switch self {
      case .update: try await downloader.update("a") { $0.url = url }
      case .updateAll: _ = try await downloader.updateAll { $0.url = url }
      case .add: try await downloader.add(DownloadRequest(url, id: "a", destination: .init(name: "film")))
      }
    }
  }

  private var request: DownloadRequest { DownloadRequest(url, id: "a", destination: .init(name: "film")) }

  @Test("a new URL of the same bytes continues the running download", arguments: Way.allCases)
  func aNewURLContinues(_ way: Way) async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)], newURL: [.init(bytes)]])
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(request)
    await source.held(atLeast: 1)
    try await way.give(newURL, to: downloader)
    #expect(try await download.status.request.url == newURL)
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.map(\.url) == [url, newURL])
    #expect(source.requests.last?.range?.start == 39_000, "the end of the bytes on disk is compared")
    #expect(try await download.status.request.url == newURL)
    await downloader.shutdown()
    #expect(storage.partials.isEmpty && storage.published.count == 1)
  }

  @Test("a new URL of other bytes starts the running download again", arguments: Way.allCases)
  func aNewURLOfOtherBytes(_ way: Way) async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)], newURL: [.init(otherBytes)]])
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(request)
    await source.held(atLeast: 1)
    try await way.give(newURL, to: downloader)
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == otherBytes && storage.published.count == 1)
    #expect(try await download.status.request.url == newURL)
    await downloader.shutdown()
  }

  @Test("a new URL stops the steps of the old file", arguments: Way.allCases)
  func theStepsOfTheOldFileStop(_ way: Way) async throws {
    let source = FakeSource([url: [.init(bytes)], newURL: [.init(otherBytes)]])
    let calls = Watched(0)
    let step = FakePostProcessor<File, File>(name: "Hold") { file, _ in
      // The first call ends when its run is stopped.
      if calls.update({ count in
        count += 1; return count
      }) == 1 {
        for await _ in AsyncStream<Never>(Never.self, { _ in }) {}
      }
      return file
    }
    let downloader = try await Downloader(options: options) {
      source
      retry
      storage
      ledger
      step
    }
    let download = try await downloader.add(request)
    await step.calls(atLeast: 1)
    try await way.give(newURL, to: downloader)
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == otherBytes && storage.published.count == 1)
    await downloader.shutdown()
    #expect(storage.partials.isEmpty)
  }

  /// All bytes are on disk, and a step has failed: the new URL has to prove them.
  @Test(arguments: [true, false], [DownloadState.Phase.waiting, .paused, .failed])
  func completeBytesOfTheOldURLAreComparedWithTheNewOne(isSame: Bool, _ phase: DownloadState.Phase) async throws {
    let new = isSame ? bytes : otherBytes
    let source = FakeSource([url: [.init(bytes)], newURL: [.init(new)]])
    let calls = Watched(0)
    let step = FakePostProcessor<File, File>(name: "Fail once") { file, _ in
      if calls.update({ count in
        count += 1; return count
      }) == 1 {
        throw DownloadError(.processing, "once")
      }
      return file
    }
    let retry = FakeRetryPolicy { failure in
      switch failure.error.code {
      case .contentChanged: .restart(after: .zero)
      case .processing: phase == .failed ? .giveUp : .resume(after: .seconds(3_600))
      default: .giveUp
      }
    }
    let downloader = try await Downloader(options: options) {
      source
      retry
      storage
      ledger
      step
    }
    let download = try await downloader.add(request)
    await step.calls(atLeast: 1)
    while try await download.status.state.phase.isActive { await Task.yield() }
    if phase == .paused { #expect(try await download.pause()) }
    #expect(try await download.status.state.phase == phase)
    try await download.update { [newURL] in $0.url = newURL }
    // A waiting download does not wait any longer for the old link.
    if phase != .waiting { #expect(try await download.resume()) }
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == new)
    // A whole answer with other bytes is fetched beside the old ones, by a request of its own.
    #expect(source.requests[1].url == newURL && source.requests.count <= (isSame ? 2 : 4))
    await downloader.shutdown()
    #expect(storage.partials.isEmpty && storage.published.count == 1)
  }

  @Test func aFailureOfTheOldURLDoesNotCountForTheNewOne() async throws {
    let source = FakeSource([url: [.status(404)], newURL: [.init(bytes)]])
    let hooked = HookedLedger(base: ledger)
    let downloader = try await downloader(source, retry: retry, ledger: hooked)
    // The URL changes when the run has failed, before the failure is saved.
    hooked.atOutcome { [time, newURL] store in
      _ = try await store.update("a", at: time.date) { $0.request.url = newURL }
    }
    let download = try await downloader.add(request)
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }

  @Test("a run that has just published does not finish a download whose request has changed")
  func thePublishedOldFileIsReplaced() async throws {
    let source = FakeSource([url: [.init(bytes)], newURL: [.init(otherBytes)]])
    let hooked = HookedLedger(base: ledger)
    let downloader = try await downloader(source, retry: retry, ledger: hooked)
    hooked.atOutcome { [storage, time, newURL] store in
      #expect(storage.published.count == 1, "the old file is published, but not recorded")
      // As another process does that shares the ledger.
      _ = try await store.update("a", at: time.date) { $0.request.url = newURL }
    }
    let download = try await downloader.add(request)
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == otherBytes)
    #expect(storage.published.count == 1 && artifact.name == "film", "it replaces the old one")
    await downloader.shutdown()
  }

  @Test func anotherProcessGivesARunningDownloadItsNewURL() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 40_000)], newURL: [.init(otherBytes)]])
    let opened = OpenLedger(ledger)
    let downloader = try await downloader(source, retry: retry, ledger: opened)
    let download = try await downloader.add(request)
    await source.held(atLeast: 1)
    // Without a notification, as from another process: the owner looks once in each lease.
    try await opened.change("a") { [newURL] in $0.request.url = newURL }
    time.advance(by: DownloaderOptions().lease)
    #expect(storage.bytes(of: try await download.value) == otherBytes)
    #expect(try await download.status.request.url == newURL)
    await downloader.shutdown()
  }

  // MARK: Other parts

  @Test func aNewDigestIsCheckedWithTheBytesOnDisk() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let seen = Watched<[[FileDigest]]>([])
    let downloader = try await Downloader(options: options) {
      source
      retry
      storage
      ledger
      Verify(seen)
    }
    let (old, new) = (
      FileDigest(.md5, bytes: [UInt8](repeating: 1, count: 16)), FileDigest(.crc32, bytes: [1, 2, 3, 4])
    )
    var request = request
    request.expectedDigests = [old]
    let download = try await downloader.add(request)
    await source.held(atLeast: 1)
    try await download.update { $0.expectedDigests = [new] }
    source.release()
    _ = try await download.value
    #expect(seen.value == [[new]])
    await downloader.shutdown()
  }

  @Test func aNewDigestStopsTheStepThatChecksTheOldOne() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let seen = Watched<[[FileDigest]]>([])
    let downloader = try await Downloader(options: options) {
      source
      retry
      storage
      ledger
      Verify(seen)
      FakePostProcessor<File, File>(name: "Hold") { file, _ in
        if seen.value.count == 1 { for await _ in AsyncStream<Never>(Never.self, { _ in }) {} }
        return file
      }
    }
    let (old, new) = (
      FileDigest(.md5, bytes: [UInt8](repeating: 1, count: 16)), FileDigest(.crc32, bytes: [1, 2, 3, 4])
    )
    var request = request
    request.expectedDigests = [old]
    let download = try await downloader.add(request)
    for await event in download.events { if event.kind == .state(.processing(step: "Hold")) { break } }
    try await download.update { $0.expectedDigests = [new] }
    _ = try await download.value
    #expect(seen.value == [[old], [new]])
    #expect(source.requests.count == 1, "the bytes need not be fetched again")
    await downloader.shutdown()
  }

  @Test func aLowerMaximumStopsATransferThatIsPastIt() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(request)
    await source.held(atLeast: 1)
    try await download.update { $0.maximumSize = 50_000 }
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .tooLarge }
    await downloader.shutdown()
    #expect(storage.published.isEmpty)
  }

  @Test func aWrongSizeThatIsCorrectedIsTheSizeThatLands() async throws {
    let source = FakeSource(everyURL: .init(bytes).with { $0.announcesLength = false }.holding(after: 40_000))
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(request)
    await source.held(atLeast: 1)
    try await download.update { $0.expectedSize = .known(99_999) }
    source.release()
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .lengthMismatch }
    await downloader.shutdown()
    #expect(storage.published.isEmpty)
  }

  @Test func newMirrorsServeARunningDownload() async throws {
    let source = FakeSource([
      url: [.init(bytes).holding(after: 40_000), .status(404)], newURL: [.init(bytes)],
    ])
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(request)
    await source.held(atLeast: 1)
    try await download.update { [newURL] in $0.mirrors = [newURL] }
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.last?.url == newURL)
    await downloader.shutdown()
  }

  @Test func whatDoesNotConcernTheFileDoesNotStopTheTransfer() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(request)
    await source.held(atLeast: 1)
    try await download.update { request in
      request.priority = .high
      request.tags = ["a"]
      request.metadata = ["a": "b"]
      request.headers = ["X-New": "1"]
      request.sizeHint = .known(5)
      request.deadline = Date(timeIntervalSince1970: 2_000_000_000)
    }
    source.release()
    _ = try await download.value
    #expect(source.requests.count == 1)
    await downloader.shutdown()
  }

  // MARK: Refreshing

  @Test func aFreshLinkDoesNotOverwriteTheURLThatTheUserGivesMeanwhile() async throws {
    let expired = DownloadError(.linkExpired, "expired")
    let source = FakeSource([url: [.failingToOpen(expired)], newURL: [.init(bytes)]])
    let isRefreshing = Watched(false)
    let downloader = try await Downloader(options: options) {
      source
      FakeRetryPolicy { $0.error.code == .linkExpired ? .refresh(after: .zero) : .giveUp }
      Refreshing(isRefreshing, to: URL(string: "https://example.org/fresh.bin")!)
      storage
      ledger
    }
    let download = try await downloader.add(request)
    await isRefreshing.wait { $0 }
    try await download.update { [newURL] in $0.url = newURL }
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(try await download.status.request.url == newURL)
    #expect(source.requests.map(\.url) == [url, newURL])
    await downloader.shutdown()
  }

  private struct Verify: UniversalPostProcessor, DigestVerifying {
    let seen: Watched<[[FileDigest]]>
    init(_ seen: Watched<[[FileDigest]]>) { self.seen = seen }
    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      seen.update { $0.append(context.request.expectedDigests) }
      return artifact
    }
  }

  /// A refresher that answers when its run is stopped.
  private struct Refreshing: LinkRefresher {
    let isRefreshing: Watched<Bool>
    let url: URL
    init(_ isRefreshing: Watched<Bool>, to url: URL) { (self.isRefreshing, self.url) = (isRefreshing, url) }
    func refresh(_ link: ExpiredLink) async throws -> FreshLink {
      isRefreshing.update { $0 = true }
      for await _ in AsyncStream<Never>(Never.self, { _ in }) {}
      return FreshLink(url)
    }
  }
}

/// A ledger that calls a closure once, before it saves that a download has finished or failed.
private struct HookedLedger: Ledger {
  typealias Hook = @Sendable (any LedgerStore) async throws -> Void

  let base: any Ledger
  private let hook = Watched<Hook?>(nil)

  init(base: any Ledger) { self.base = base }

  func atOutcome(_ body: @escaping Hook) { hook.update { $0 = body } }

  func open() async throws -> any LedgerStore { Store(base: try await base.open(), hook: hook) }

  private struct Store: LedgerStoreWrapper {
    let base: any LedgerStore
    let hook: Watched<Hook?>

    func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
      if fields.contains(.state), record.phase.isFinal, let body = hook.value {
        hook.update { $0 = nil }
        try await body(base)
      }
      return try await base.save(record, fields, at: now)
    }
  }
}
