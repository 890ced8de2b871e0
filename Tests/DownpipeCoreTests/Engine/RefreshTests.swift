import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Finished downloads whose server is asked whether the file has changed.
@Suite(.endsHangs)
struct RefreshTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private var newBytes: [UInt8] { bytes.map { ~$0 } + [1] }
  private var request: DownloadRequest {
    DownloadRequest(url, id: "a", destination: .init(name: "film")).with(\.refresh, .ifChanged)
  }

  private func record() async throws -> DownloadRecord {
    try #require(try await ledger.open().record("a"))
  }

  // MARK: Unchanged

  @Test("a file that has not changed is finished again without a byte")
  func unchanged() async throws {
    let source = FakeSource([url: [.init(bytes).with { $0.freshFor = .seconds(60) }]])
    let step = FakePostProcessor<File, File>.bytes { $0 }
    let observer = RecordingObserver()
    let downloader = try await Downloader(options: options) {
      source
      observer
      storage
      ledger
      step
    }
    let download = try await downloader.add(request)
    let old = try await download.value
    let before = try await record()
    time.advance(by: .seconds(100))
    #expect(try await downloader.add(request).isNew)
    #expect(try await download.value.location == old.location)
    try await downloader.waitUntilIdle()
    let after = try await record()
    #expect(source.requests.map(\.condition) == [nil, before.checkpoint.validator])
    #expect(source.requests.allSatisfy { $0.range == nil })
    #expect(step.inputs.count == 1, "the steps of the published file are not repeated")
    #expect(storage.bytes(of: old) == bytes && storage.published.count == 1)
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
    #expect(after.bytesFetched == before.bytesFetched && after.steps == before.steps)
    #expect(after.updatedAt.timeIntervalSince(before.updatedAt) == 100)
    var checkpoint = before.checkpoint
    checkpoint.freshUntil = before.checkpoint.freshUntil?.addingTimeInterval(100)
    #expect(after.checkpoint == checkpoint && checkpoint.freshUntil != nil, "its freshness is renewed")
    #expect(after.refreshing == nil && after.earlierArtifact == nil)
    #expect(try await download.status.earlierArtifact == nil)
    await downloader.shutdown()
    #expect(observer.states(of: "a").count { $0.phase == .finished } == 2)
  }

  @Test("a fresh file is not asked about, and an equal addition writes nothing")
  func whenStale() async throws {
    let source = FakeSource([url: [.init(bytes).with { $0.freshFor = .seconds(60) }]])
    let downloader = try await downloader(source)
    var request = request
    request.refresh = .whenStale
    let download = try await downloader.add(request)
    _ = try await download.value
    let before = try await record()
    time.advance(by: .seconds(59))
    #expect(try await !downloader.add(request).isNew)
    #expect(try await record() == before)
    time.advance(by: .seconds(1))
    #expect(try await downloader.add(request).isNew)
    _ = try await download.value
    try await downloader.waitUntilIdle()
    #expect(source.requests.count == 2 && source.requests.last?.condition != nil)
    // Renewed by the answer.
    time.advance(by: .seconds(59))
    #expect(try await !downloader.add(request).isNew)
    // The date jumps far back: the end of the freshness cannot be right any more.
    time.jumpDate(by: .seconds(-2 * 365 * 86_400))
    #expect(try await downloader.add(request).isNew)
    _ = try await download.value
    #expect(source.requests.count == 3)
    await downloader.shutdown()
  }

  @Test(
    "without a word of the server about freshness, a stale file is asked about each time, and one that is never asked about is not"
  )
  func noFreshness() async throws {
    for (refresh, count) in [(DownloadRequest.Refresh.never, 1), (.whenStale, 4)] {
      let (storage, ledger) = (FakeStorage(), MemoryLedger())
      let source = FakeSource(everyURL: .init(bytes))
      let downloader = try await Downloader(options: options) {
        source
        storage
        ledger
      }
      var request = request
      request.refresh = refresh
      for _ in 0..<4 { _ = try await downloader.add(request).value }
      #expect(source.requests.count == count)
      await downloader.shutdown()
    }
  }

  @Test("no source makes a file fresh for more than a year")
  func longestFreshness() async throws {
    let source = FakeSource([url: [.init(bytes).with { $0.freshFor = .seconds(10 * 365 * 86_400) }]])
    let downloader = try await downloader(source)
    var request = request
    request.refresh = .whenStale
    let download = try await downloader.add(request)
    _ = try await download.value
    time.advance(by: .seconds(364 * 86_400))
    #expect(try await !downloader.add(request).isNew)
    time.advance(by: .seconds(86_400))
    #expect(try await downloader.add(request).isNew)
    _ = try await download.value
    #expect(source.requests.count == 2)
    await downloader.shutdown()
  }

  @Test("a server without conditional requests is not asked for the body again if its strong validator is the same")
  func wholeReplyOfTheSameFile() async throws {
    let source = FakeSource([url: [.init(bytes), .init(bytes).with { $0.honoursConditions = false }]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(request)
    _ = try await download.value
    try await downloader.add(request)
    _ = try await download.value
    #expect(source.requests.count == 2 && source.discarded == 1)
    #expect(try await download.status.bytesFetched == 100_000)
    await downloader.shutdown()
  }

  // MARK: Changed

  @Test(
    "a changed file takes the place of the published one, which stays until then",
    arguments: [
      FakeStorage.Conflict.replace, .keepBoth, .fail, .reuse,
    ])
  func changed(_ conflict: FakeStorage.Conflict) async throws {
    let storage = FakeStorage(onConflict: conflict)
    let source = FakeSource([url: [.init(bytes), .init(newBytes).holding(after: 40_000)]])
    let step = FakePostProcessor<File, File>.bytes { $0.reversed() }
    let downloader = try await Downloader(options: options) {
      source
      storage
      ledger
      step
    }
    let download = try await downloader.add(request)
    let old = try await download.value
    try await downloader.add(request)
    await source.held(atLeast: 1)
    #expect(storage.bytes(of: old) == bytes.reversed())
    #expect(try await download.status.earlierArtifact?.location == old.location)
    #expect(try await record().refreshing == .fetching)
    source.release()
    let new = try await download.value
    #expect(new.location == old.location && storage.published.count == 1)
    #expect(storage.bytes(of: new) == newBytes.reversed())
    try await downloader.waitUntilIdle()
    #expect(source.requests.count == 2, "one request, whose body is used")
    #expect(try await record().refreshing == nil)
    #expect(try await download.status.bytesFetched == 200_001)
    // The new file is asked about with its own validator.
    try await downloader.add(request)
    _ = try await download.value
    #expect(source.requests.last?.condition == (try await record()).checkpoint.validator)
    #expect(source.requests.count == 3)
    await downloader.shutdown()
    #expect(storage.partials.isEmpty)
  }

  @Test(
    "a server without validators sends the whole file, which takes the place of the published one only when complete")
  func withoutValidators() async throws {
    func bare(_ script: FakeSource.Script) -> FakeSource.Script {
      script.with {
        $0.validator = nil
        $0.honoursRanges = false
      }
    }
    let cut = DownloadError(.network, "cut")
    let source = FakeSource([
      url: [bare(.init(bytes)), bare(.init(newBytes)).failing(after: 60_000, with: cut), bare(.init(newBytes))]
    ])
    let downloader = try await downloader(source)
    let download = try await downloader.add(request)
    let old = try await download.value
    try await downloader.add(request)
    await #expect(throws: DownloadError.self) { try await download.value }
    #expect(storage.bytes(of: old) == bytes)
    #expect(try await download.status.earlierArtifact?.location == old.location)
    #expect(try await download.resume())
    let new = try await download.value
    #expect(storage.bytes(of: new) == newBytes && storage.published.count == 1)
    #expect(source.requests.map(\.condition) == [nil, nil, nil])
    await downloader.shutdown()
  }

  @Test("a file that was removed or changed by another program is fetched as a whole")
  func lostFile() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(request)
    let old = try await download.value
    try await storage.remove(old)
    try await downloader.add(request)
    let new = try await download.value
    #expect(storage.bytes(of: new) == bytes)
    #expect(source.requests.map(\.condition) == [nil, nil])
    await downloader.shutdown()
  }

  @Test("an artifact in memory is fetched as a whole, because the ledger does not have its bytes")
  func inMemory() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let step = FakePostProcessor<File, File> { file, _ in
      File(Artifact(location: .memory([1]), name: file.name, size: 1))
    }
    let storage = StagedNowhere(base: storage)
    let downloader = try await Downloader(options: options) {
      source
      storage
      ledger
      step
    }
    for _ in 0..<2 {
      #expect(try await downloader.add(request).value.location == .memory([1]))
    }
    #expect(source.requests.map(\.condition) == [nil, nil])
    await downloader.shutdown()
  }

  // MARK: Failures

  @Test("a refresh that fails leaves the file, and a resume asks again")
  func failure() async throws {
    let offline = DownloadError(.network, "no route")
    let source = FakeSource([url: [.init(bytes), .failingToOpen(offline), .status(404), .status(503), .init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(request)
    let old = try await download.value
    try await downloader.add(request)
    for code in [DownloadError.Code.network, .httpStatus, .httpStatus] {
      #expect(await downloadError { _ = try await download.value }?.code == code)
      let status = try await download.status
      #expect(status.state.phase == .failed && status.earlierArtifact?.location == old.location)
      #expect(storage.bytes(of: old) == bytes && storage.partials.isEmpty)
      #expect(try await record().refreshing == .asking)
      #expect(try await download.resume())
    }
    #expect(try await download.value.location == old.location)
    let conditions = source.requests.map(\.condition)
    #expect(conditions.count == 5 && conditions.dropFirst().allSatisfy { $0 != nil })
    #expect(try await download.status.bytesFetched == 100_000)
    await downloader.shutdown()
  }

  @Test("an answer that contradicts itself is asked for again at once, without the condition")
  func contradiction() async throws {
    let other = Validator(entityTag: EntityTag("another"))
    let scripts: [FakeSource.Script] = [
      .init(newBytes).with {
        $0.refusal = .notModified
        $0.validator = other
      },
      .init(newBytes).with {
        $0.refusal = .notModified
        $0.validator = nil
        $0.finalURL = URL(string: "https://example.org/other.bin")
      },
      .init(newBytes).with { $0.refusal = .preconditionFailed },
    ]
    for script in scripts {
      let (storage, ledger) = (FakeStorage(), MemoryLedger())
      let source = FakeSource([url: [.init(bytes), script, .init(newBytes)]])
      let observer = RecordingObserver()
      let downloader = try await Downloader(options: options) {
        source
        observer
        FakeRetryPolicy(.giveUp)
        storage
        ledger
      }
      let download = try await downloader.add(request)
      _ = try await download.value
      try await downloader.add(request)
      let new = try await download.value
      #expect(storage.bytes(of: new) == newBytes && storage.published.count == 1)
      #expect(source.requests.map { $0.condition == nil } == [true, false, true])
      await downloader.shutdown()
      let refusals = observer.events(of: "a").filter { if case .refused = $0 { true } else { false } }
      #expect(refusals.count == 1)
    }
  }

  @Test("a 304 that was not asked for is an error, and the file stays")
  func unaskedNotModified() async throws {
    let source = FakeSource([
      url: [
        .init(bytes).with { $0.validator = nil },
        .init(bytes).with {
          $0.validator = nil
          $0.refusal = .notModified
        },
      ]
    ])
    let downloader = try await downloader(source)
    let download = try await downloader.add(request)
    let old = try await download.value
    try await downloader.add(request)
    let error = await downloadError { _ = try await download.value }
    #expect(error?.httpStatus == 304 && source.requests.count == 2)
    #expect(storage.bytes(of: old) == bytes)
    await downloader.shutdown()
  }

  @Test("a log-in page does not take the place of a file")
  func page() async throws {
    let html = FakeSource.Script(Array("<html>".utf8)).with {
      $0.mediaType = "text/html"
      $0.validator = nil
    }
    let source = FakeSource([url: [.init(bytes).with { $0.mediaType = "video/mp4" }, html]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(request)
    let old = try await download.value
    try await downloader.add(request)
    #expect(await downloadError { _ = try await download.value }?.code == .contentChanged)
    #expect(storage.bytes(of: old) == bytes)
    await downloader.shutdown()
  }

  @Test("a file that is too large or has the wrong size leaves the published one, and the question open")
  func wrongSize() async throws {
    let source = FakeSource([url: [.init(bytes), .init(newBytes), .init(bytes)]])
    let downloader = try await downloader(source)
    var request = request
    request.expectedSize = .known(100_000)
    let download = try await downloader.add(request)
    let old = try await download.value
    try await downloader.add(request)
    #expect(await downloadError { _ = try await download.value }?.code == .lengthMismatch)
    #expect(storage.bytes(of: old) == bytes)
    #expect(try await record().refreshing == .asking)
    try await download.resume()
    #expect(try await download.value.location == old.location)
    #expect(source.requests.last?.condition != nil)
    await downloader.shutdown()
  }

  // MARK: Mirrors

  @Test("only the place that has delivered the file is asked with its validator")
  func mirrors() async throws {
    let mirror = URL(string: "https://mirror.example/file.bin")!
    var request = request
    request.mirrors = [mirror]
    // The file came from the mirror. The URL is asked without its validator, the mirror with it.
    let source = FakeSource([url: [.status(404)], mirror: [.init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(request)
    let old = try await download.value
    try await downloader.add(request)
    #expect(try await download.value.location == old.location)
    #expect(source.requests.map(\.url) == [url, mirror, url, mirror])
    #expect(source.requests.map { $0.condition != nil } == [false, false, false, true])
    // The URL has the file again: it is fetched from there, and asked about there.
    source.script(url, .init(newBytes))
    try await downloader.add(request)
    let new = try await download.value
    #expect(storage.bytes(of: new) == newBytes)
    try await downloader.add(request)
    _ = try await download.value
    #expect(source.requests.suffix(2).map(\.url) == [url, url])
    #expect(source.requests.suffix(2).map { $0.condition != nil } == [false, true])
    await downloader.shutdown()
  }

  @Test("a URL that redirects is asked with the validator of the target, whose answer counts only for the same target")
  func redirects() async throws {
    let target = URL(string: "https://cdn.example/v1/file.bin?signature=1")!
    let later = URL(string: "https://cdn.example/v1/file.bin?signature=2")!
    let other = URL(string: "https://cdn.example/v2/file.bin?signature=3")!
    let source = FakeSource([
      url: [
        .init(bytes).with { $0.redirects = [target] }, .init(bytes).with { $0.redirects = [later] },
        .init(bytes).with { $0.redirects = [other] }, .init(newBytes).with { $0.redirects = [other] },
      ]
    ])
    let downloader = try await downloader(source)
    let download = try await downloader.add(request)
    _ = try await download.value
    try await downloader.add(request)
    _ = try await download.value
    #expect(source.requests.map { $0.condition != nil } == [false, true])
    // The new target claims that nothing has changed, but the tag is that of another resource.
    try await downloader.add(request)
    let new = try await download.value
    #expect(source.requests.map { $0.condition != nil } == [false, true, true, false])
    #expect(storage.bytes(of: new) == newBytes)
    await downloader.shutdown()
  }
}

/// A storage for which artifacts in memory are published.
private struct StagedNowhere: StorageWrapper {
  let base: any Storage
  func isStaged(_ artifact: Artifact) -> Bool { artifact.path != nil && base.isStaged(artifact) }
  func contains(_ artifact: Artifact) async -> Bool { artifact.path == nil ? true : await base.contains(artifact) }
}
