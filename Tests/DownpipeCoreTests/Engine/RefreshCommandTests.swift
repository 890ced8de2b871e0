import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Commands, changes and ends of processes while a finished download is refreshed.
@Suite(.endsHangs)
struct RefreshCommandTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private var newBytes: [UInt8] { bytes.map { ~$0 } + [1] }
  private var request: DownloadRequest { DownloadRequest(url, id: "a", destination: .init(name: "film")) }

  private func record() async throws -> DownloadRecord {
    try #require(try await ledger.open().record("a"))
  }

  /// A finished download that is being refreshed: the server has not answered yet, or has begun to send another file.
  private struct Asked {
    let downloader: Downloader
    let download: Download
    let old: Artifact
    let source: FakeSource
    let door: Watched<Bool>
  }

  /// An interceptor that holds conditional requests before they are sent.
  private func holder(_ door: Watched<Bool>) -> FakeInterceptor {
    FakeInterceptor { request, next in
      if request.condition != nil { await door.wait { $0 } }
      try Task.checkCancellation()
      return try await next(request)
    }
  }

  /// - Parameter hearsOthers: Whether the ledger tells of changes by others at once.
  private func asked(
    isFetching: Bool, request: DownloadRequest? = nil, hearsOthers: Bool = true
  ) async throws -> Asked {
    let shown: any Ledger = hearsOthers ? ledger : QuietLedger(base: ledger)
    let source = FakeSource([
      url: isFetching
        ? [.init(bytes), .init(newBytes).holding(after: 40_000), .init(newBytes)] : [.init(bytes)]
    ])
    let door = Watched(isFetching)
    let holder = holder(door)
    let downloader = try await Downloader(options: options) {
      source
      holder
      FakeRetryPolicy(.giveUp)
      storage
      AnyLedger(shown)
    }
    let download = try await downloader.add(request ?? self.request)
    let old = try await download.value
    #expect(try await downloader.refresh("a"))
    if isFetching {
      await source.held(atLeast: 1)
    } else {
      await seen(2, by: holder)
    }
    return Asked(downloader: downloader, download: download, old: old, source: source, door: door)
  }

  private func seen(_ count: Int, by interceptor: FakeInterceptor) async {
    while interceptor.requests.count < count { await Task.yield() }
  }

  @Test func whatCanBeRefreshed() async throws {
    let source = FakeSource([url: [.init(bytes).holding(after: 100)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(request)
    await source.held(atLeast: 1)
    #expect(try await !download.refresh(), "it runs")
    #expect(try await downloader.refreshAll() == 0)
    source.release()
    _ = try await download.value
    #expect(try await download.refresh())
    _ = try await download.value
    #expect(try await downloader.refreshAll(.ids(["a"])) == 1)
    _ = try await download.value
    try await downloader.waitUntilIdle()
    #expect(source.requests.map { $0.condition != nil } == [false, true, true])
    try await downloader.discard("a")
    #expect(try await !download.refresh(), "it was cancelled")
    await #expect(throws: DownloadError.self) { try await downloader.refresh("b") }
    await downloader.shutdown()
  }

  @Test("a paused refresh keeps the file, and goes on when it is resumed", arguments: [false, true])
  func pause(isFetching: Bool) async throws {
    let asked = try await asked(isFetching: isFetching)
    #expect(try await asked.download.pause())
    #expect(storage.bytes(of: asked.old) == bytes)
    let status = try await asked.download.status
    #expect(status.state == .paused && status.earlierArtifact?.location == asked.old.location)
    #expect(storage.partials.isEmpty != isFetching)
    asked.door.update { $0 = true }
    #expect(try await asked.download.resume())
    let artifact = try await asked.download.value
    #expect(storage.bytes(of: artifact) == (isFetching ? newBytes : bytes))
    #expect(storage.published.count == 1)
    if isFetching { #expect(asked.source.requests.last?.range != nil, "it goes on where it stood") }
    await asked.downloader.shutdown()
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
  }

  @Test("a cancelled refresh leaves the file; restarted, the download is fetched as a whole", arguments: [false, true])
  func cancel(isFetching: Bool) async throws {
    let asked = try await asked(isFetching: isFetching)
    #expect(try await asked.download.cancel())
    #expect(storage.bytes(of: asked.old) == bytes && storage.partials.isEmpty)
    let status = try await asked.download.status
    #expect(status.state == .cancelled && status.earlierArtifact?.location == asked.old.location)
    asked.source.release()
    #expect(try await asked.download.restart())
    let artifact = try await asked.download.value
    #expect(storage.bytes(of: artifact) == (isFetching ? newBytes : bytes))
    #expect(storage.published.count == 1 && asked.source.requests.last?.condition == nil)
    await asked.downloader.shutdown()
  }

  @Test("A file that could not be deleted is deleted by a second call")
  func discardAfterAFailure() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    let artifact = try await download.value
    storage.fail(.remove, with: DownloadError(.permission, "the folder is read-only"))
    await #expect(throws: DownloadError.self) { try await download.discard() }
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(try await download.discard())
    #expect(storage.published.isEmpty)
    #expect(try await !download.discard(), "there is nothing left")
    #expect(try await downloader.status(of: "a")?.state == .cancelled)
    await downloader.shutdown()
  }

  @Test("the file that a cancelled refresh has left is discarded once")
  func discardAfterCancel() async throws {
    let asked = try await asked(isFetching: true)
    #expect(try await asked.download.cancel())
    #expect(try await asked.download.discard())
    #expect(storage.published.isEmpty)
    #expect(try await asked.download.status.earlierArtifact == nil)
    #expect(try await !asked.download.discard(), "there is nothing left")
    asked.source.release()
    await asked.downloader.shutdown()
  }

  @Test("a removed refresh leaves the file, or deletes it on request", arguments: [false, true], [false, true])
  func remove(isFetching: Bool, deletingFile: Bool) async throws {
    let asked = try await asked(isFetching: isFetching)
    #expect(try await asked.download.remove(deletingFile: deletingFile))
    #expect(storage.bytes(of: asked.old) == (deletingFile ? nil : bytes))
    #expect(storage.partials.isEmpty)
    await asked.downloader.shutdown()
  }

  @Test("a refresh that waits is removed with its file", arguments: [false, true])
  func removeWaiting(all: Bool) async throws {
    let asked = try await asked(isFetching: false)
    try await asked.download.pause()
    if all {
      #expect(try await asked.downloader.removeAll(deletingFiles: true) == 1)
    } else {
      #expect(try await asked.download.remove(deletingFile: true))
    }
    #expect(storage.published.isEmpty)
    await asked.downloader.shutdown()
  }

  @Test("a restart while the server is asked fetches the file as a whole")
  func restart() async throws {
    let asked = try await asked(isFetching: false)
    #expect(try await asked.download.restart())
    let artifact = try await asked.download.value
    #expect(artifact.location == asked.old.location && storage.published.count == 1)
    #expect(asked.source.requests.map(\.condition) == [nil, nil])
    await asked.downloader.shutdown()
  }

  @Test("the refresh of another process is not repeated, and a download that is refreshed is not refreshed")
  func twoProcesses() async throws {
    let asked = try await asked(isFetching: false)
    let second = try await downloader(asked.source)
    var request = request
    request.refresh = .ifChanged
    #expect(try await !second.refresh("a"))
    #expect(try await !second.add(request).isNew)
    #expect(try await !asked.download.refresh())
    asked.door.update { $0 = true }
    _ = try await asked.download.value
    try await asked.downloader.waitUntilIdle()
    #expect(asked.source.requests.count == 2)
    await second.shutdown()
    await asked.downloader.shutdown()
  }

  @Test("after the end of the downloader the next one asks again, with the validator", arguments: [false, true])
  func nextProcess(isFetching: Bool) async throws {
    let asked = try await asked(isFetching: isFetching)
    await asked.downloader.shutdown()
    #expect(storage.bytes(of: asked.old) == bytes)
    asked.source.release()
    let second = try await downloader(asked.source)
    let artifact = try await #require(try await second.download("a")).value
    #expect(storage.bytes(of: artifact) == (isFetching ? newBytes : bytes))
    #expect(storage.published.count == 1)
    let last = try #require(asked.source.requests.last)
    #expect(isFetching ? last.range != nil && last.condition == nil : last.condition != nil)
    await second.shutdown()
    #expect(storage.partials.isEmpty)
  }

  // MARK: Changed requests

  enum Change: CaseIterable, Sendable {
    case url, size, digest
  }

  @Test(
    "a request that asks for another file meanwhile is fetched as a whole", arguments: Change.allCases,
    ["paused", "noticed at the end", "noticed at once"])
  func otherFile(_ change: Change, _ way: String) async throws {
    let isPaused = way == "paused"
    let asked = try await asked(isFetching: false, hearsOthers: way != "noticed at the end")
    if isPaused { try await asked.download.pause() }
    let newURL = URL(string: "https://example.org/corrected.bin")!
    asked.source.script(newURL, .init(newBytes))
    asked.source.script(url, .init(newBytes))
    // No step of this pipeline verifies digests: the ledger is changed as by a downloader with one.
    let store = try await ledger.open()
    _ = try await store.update("a", at: time.date) { record in
      switch change {
      case .url: record.request.url = newURL
      case .size: record.request.expectedSize = .known(100_001)
      case .digest: record.request.expectedDigests = [FileDigest(.crc32, bytes: [1, 2, 3, 4])]
      }
    }
    try await store.close()
    // Otherwise the run notices when its outcome is saved.
    if way == "noticed at once" { try await settle(asked.downloader) }
    asked.door.update { $0 = true }
    if isPaused { try await asked.download.resume() }
    if change == .digest {
      #expect(await downloadError { _ = try await asked.download.value }?.code == .invalidRequest)
    } else {
      _ = try await asked.download.value
      try await asked.downloader.waitUntilIdle()
      let artifact = try await asked.download.value
      #expect(storage.bytes(of: artifact) == newBytes && storage.published.count == 1)
      #expect(asked.source.requests.last?.condition == nil)
    }
    await asked.downloader.shutdown()
  }

  @Test("what does not concern the file does not end the question")
  func sameFile() async throws {
    let asked = try await asked(isFetching: false)
    try await asked.download.pause()
    var again = request
    again.mirrors = [URL(string: "https://mirror.example/x")!]
    again.maximumSize = 1_000_000
    again.priority = .high
    again.destination.name = "other"
    asked.source.script(again.mirrors[0], .init(newBytes))
    try await asked.downloader.add(again)
    #expect(try await record().refreshing == .asking)
    #expect(try await asked.download.status.request.destination.name == "film", "the file is already at its place")
    asked.door.update { $0 = true }
    try await asked.download.resume()
    #expect(try await asked.download.value.location == asked.old.location)
    #expect(asked.source.requests.last?.condition != nil)
    await asked.downloader.shutdown()
  }

  @Test("a refresh that waits and gets another name is fetched as a whole under that name")
  func renameWaiting() async throws {
    let asked = try await asked(isFetching: false)
    try await asked.download.pause()
    try await asked.download.rename(to: "other film")
    try await asked.download.resume()
    let artifact = try await asked.download.value
    #expect(artifact.name == "other film" && storage.published.keys.sorted() == ["other film"])
    #expect(asked.source.requests.last?.condition == nil)
    await asked.downloader.shutdown()
  }

  @Test("a rename while the server is asked waits for its answer")
  func renameRunning() async throws {
    let asked = try await asked(isFetching: false)
    let rename = Task { try await asked.download.rename(to: "other film") }
    try await settle(asked.downloader)
    #expect(storage.published.keys.sorted() == ["film"])
    asked.door.update { $0 = true }
    let status = try await rename.value
    #expect(status.artifact?.name == "other film" && storage.published.keys.sorted() == ["other film"])
    #expect(storage.published["other film"] == bytes)
    await asked.downloader.shutdown()
  }

  @Test("a refresh that has fetched nothing has no partial to export")
  func export() async throws {
    let asked = try await asked(isFetching: false)
    try await asked.download.pause()
    let error = await downloadError { _ = try await asked.downloader.exportPartial("a", to: "/nowhere") }
    #expect(error?.code == .invalidRequest)
    await asked.downloader.shutdown()
  }

  @Test("credentials of the request go with the question")
  func credentials() async throws {
    var request = request
    request.headers = HeaderFields([HeaderField("Authorization", "Bearer secret")])
    let asked = try await asked(isFetching: false, request: request)
    asked.door.update { $0 = true }
    _ = try await asked.download.value
    #expect(asked.source.requests.last?.headers["Authorization"] == "Bearer secret")
    await asked.downloader.shutdown()
  }

  @Test("an update changes what the next addition does, and asks nothing itself")
  func update() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(request)
    _ = try await download.value
    try await download.update { $0.refresh = .ifChanged }
    try await downloader.waitUntilIdle()
    #expect(source.requests.count == 1)
    #expect(try await downloader.add(request).isNew)
    _ = try await download.value
    #expect(source.requests.count == 2)
    await downloader.shutdown()
  }
}

/// A ledger that does not tell of changes by others.
private struct QuietLedger: Ledger {
  let base: any Ledger

  func open() async throws -> any LedgerStore { QuietStore(base: try await base.open()) }

  private struct QuietStore: LedgerStoreWrapper {
    let base: any LedgerStore
    var changesByOthers: AsyncStream<Void>? { nil }
  }
}
