import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// A transfer is cut, and then the server sends another file as a whole: a new version, which is fetched beside the bytes on
/// disk, or something that contradicts them, which is refused.
@Suite(.endsHangs)
struct ReplacedFileTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()
  private let cut = DownloadError(.network, "cut")
  private let second = Validator(entityTag: EntityTag("v2"))
  private let third = Validator(entityTag: EntityTag("v3"))

  /// A server without ranges and validators.
  private func bare(_ script: FakeSource.Script) -> FakeSource.Script {
    script.with {
      $0.honoursRanges = false
      $0.validator = nil
    }
  }

  private func changed(at offset: Int, count: Int = 100_000) -> [UInt8] {
    var other = Array((bytes + bytes).prefix(count))
    other[offset] ^= 1
    return other
  }

  private var standard: FakeRetryPolicy {
    FakeRetryPolicy { Retry(.exponential(attempts: 3, base: .zero)).decide($0) }
  }

  private func other(_ bytes: [UInt8], _ validator: Validator?) -> FakeSource.Script {
    FakeSource.Script(bytes).with { $0.validator = validator }
  }

  // MARK: Contradictions

  @Test(
    "a whole body without a validator that differs is refused, and the bytes stay",
    arguments: [0, 1, 30_000, 59_999])
  func anotherFileWithoutValidator(firstDifference: Int) async throws {
    let source = FakeSource([
      url: [bare(.init(bytes)).failing(after: 60_000, with: cut), bare(.init(changed(at: firstDifference)))]
    ])
    let downloader = try await downloader(source, retry: standard)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .contentChanged }
    #expect(storage.published.isEmpty)
    #expect(storage.partials.values.first == Array(bytes[..<60_000]))
    #expect(try await download.status.progress.received == 60_000)
    #expect(source.requests.map(\.range) == [nil, RequestedRange(from: 59_000), nil], "once more without a range")
    await downloader.shutdown()
  }

  @Test(
    "a body of no stated length that ends elsewhere is refused",
    arguments: [
      40_000, 150_000,
    ])
  func anotherSize(count: Int) async throws {
    let other = Array((bytes + bytes).prefix(count))
    let source = FakeSource([
      url: [
        bare(.init(bytes)).failing(after: 60_000, with: cut), bare(.init(other)).with { $0.announcesLength = false },
      ]
    ])
    let downloader = try await downloader(source, retry: FakeRetryPolicy { _ in .giveUp })
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect(throws: DownloadError.self) { try await download.value }
    #expect(storage.published.isEmpty)
    await downloader.shutdown()
  }

  @Test("what a restart by hand begins takes the new thing")
  func restart() async throws {
    let new = changed(at: 3, count: 70_000)
    let source = FakeSource([url: [bare(.init(bytes)).failing(after: 60_000, with: cut), bare(.init(new))]])
    let downloader = try await downloader(source, retry: standard)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .contentChanged }
    try await download.restart()
    #expect(storage.bytes(of: try await download.value) == new)
    await downloader.shutdown()
  }

  @Test(
    "a restart by hand takes no message in place of the file",
    arguments: [
      ("text/plain", 7), ("text/html", 7), ("application/json", 7), ("video/mp4", 0),
    ])
  func restartIntoAMessage(mediaType: String, count: Int) async throws {
    let film = bare(.init(bytes)).with { $0.mediaType = "video/mp4" }
    let message = bare(.init(Array(repeating: 1, count: count))).with { $0.mediaType = mediaType }
    for announces in [true, false] {
      let source = FakeSource([
        url: [film.failing(after: 60_000, with: cut), message.with { $0.announcesLength = announces }]
      ])
      let downloader = try await downloader(source, retry: standard)
      let download = try await downloader.add(DownloadRequest(url, id: "a\(announces)"))
      await #expect(throws: DownloadError.self) { try await download.value }
      try await download.restart()
      await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .contentChanged }
      await downloader.shutdown()
      #expect(storage.published.isEmpty)
    }
  }

  @Test("an automatic restart forgets neither size nor media type", arguments: [true, false])
  func automaticRestart(announces: Bool) async throws {
    let damaged = DownloadError(.damaged, "not a gzip stream", stage: "Step")
    let step = FakePostProcessor<File, File>(name: "Step") { _, _ in throw damaged }
    let source = FakeSource([
      url: [
        bare(.init(bytes)), bare(.init([1, 2, 3])).with { $0.announcesLength = announces },
      ]
    ])
    let downloader = try await Downloader(options: DownloaderOptions(time: time, random: { 0.5 })) {
      source
      storage
      standard
      step
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .contentChanged }
    #expect(step.inputs.count == 1, "the three bytes reached no step")
    await downloader.shutdown()
  }

  // MARK: Versions

  @Test("a new version is fetched beside the bytes on disk")
  func newVersion() async throws {
    let new = changed(at: 3)
    let source = FakeSource([
      url: [
        other(bytes, second).failing(after: 60_000, with: cut), other(new, third).with { $0.honoursRanges = false },
      ]
    ])
    let observer = RecordingObserver()
    let downloader = try await downloader(source, observers: [observer], retry: standard)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(storage.bytes(of: try await download.value) == new)
    // A 200 may be the range that was asked for: the new version begins with a request of its own.
    #expect(source.requests.map(\.range) == [nil, RequestedRange(from: 59_000), nil])
    await downloader.shutdown()
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
    let restarts = observer.events(of: "a").compactMap {
      if case .restarted(let error) = $0 { error.code } else { nil }
    }
    #expect(restarts == [.contentChanged])
  }

  @Test("the bytes of the earlier version stay until the new one is complete, which is resumed")
  func newVersionIsCut() async throws {
    let new = changed(at: 3)
    let source = FakeSource([
      url: [
        other(bytes, second).failing(after: 60_000, with: cut),
        other(new, third), other(new, third).failing(after: 50_000, with: cut),
        other(new, third).holding(after: 2_000), other(new, third),
      ]
    ])
    let downloader = try await downloader(source, retry: standard)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let partials = storage.partials
    #expect(partials.count == 2)
    #expect(partials.first { !$0.key.isSecond }?.value == Array(bytes[..<60_000]))
    #expect(partials.first { $0.key.isSecond }?.value.starts(with: new[..<50_000]) == true)
    #expect(source.requests.last?.range?.start ?? 0 > 0, "the new version is resumed")
    source.release()
    #expect(storage.bytes(of: try await download.value) == new)
    await downloader.shutdown()
    #expect(storage.partials.isEmpty)
  }

  @Test("a server that goes back to the earlier version costs none of its bytes")
  func backToTheEarlierVersion() async throws {
    let new = changed(at: 3)
    let source = FakeSource([
      url: [
        other(bytes, second).failing(after: 60_000, with: cut),
        other(new, third), other(new, third).failing(after: 70_000, with: cut),
        // If-Range does not match: the whole earlier version.
        other(bytes, second).with { $0.honoursRanges = false },
      ]
    ])
    let downloader = try await downloader(source, retry: standard)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    let writes = storage.calls.filter { $0.operation == .write && $0.key?.isSecond == false }
    #expect(writes.reduce(0) { $0 + ($1.range.map { $0.upperBound - $0.lowerBound } ?? 0) } == 100_000)
    await downloader.shutdown()
    #expect(storage.partials.isEmpty)
  }

  @Test("nothing has come of a new version: the earlier one goes on")
  func emptyVersion() async throws {
    let source = FakeSource([
      url: [
        other(bytes, second).failing(after: 60_000, with: cut),
        other(changed(at: 3), third), other(changed(at: 3), third).failing(after: 0, with: cut),
        other(bytes, second),
      ]
    ])
    let downloader = try await downloader(source, retry: standard)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.last?.range?.start ?? 0 > 0)
    await downloader.shutdown()
    #expect(storage.partials.isEmpty)
  }

  @Test("a server that sends versions in turn is not asked for ever")
  func versionsInTurn() async throws {
    let source = FakeSource()
    source.script(
      url,
      other(bytes, second).failing(after: 60_000, with: cut),
      other(changed(at: 1), third), other(changed(at: 1), third).failing(after: 10_000, with: cut),
      other(changed(at: 2), Validator(entityTag: EntityTag("v4"))).with { $0.honoursRanges = false }
        .failing(after: 10_000, with: cut),
      other(changed(at: 3), Validator(entityTag: EntityTag("v5"))).with { $0.honoursRanges = false }
        .failing(after: 10_000, with: cut))
    let downloader = try await downloader(source, retry: standard)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect(throws: DownloadError.self) { try await download.value }
    #expect(storage.partials.first { !$0.key.isSecond }?.value == Array(bytes[..<60_000]))
    await downloader.shutdown()
  }

  @Test("all versions are removed with the download", arguments: ["remove", "cancel", "restart"])
  func removal(command: String) async throws {
    let new = changed(at: 3)
    let source = FakeSource([
      url: [
        other(bytes, second).failing(after: 60_000, with: cut),
        other(new, third), other(new, third).failing(after: 50_000, with: cut), .status(404),
        .status(404), other(new, third),
      ]
    ])
    let downloader = try await downloader(
      source, retry: FakeRetryPolicy { $0.error.code == .network ? .resume(after: .zero) : .giveUp })
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect(throws: DownloadError.self) { try await download.value }
    #expect(storage.partials.count == 2)
    switch command {
    case "remove": try await downloader.remove("a", deletingFile: true)
    case "cancel": try await download.cancel()
    default:
      try await download.restart()
      #expect(storage.bytes(of: try await download.value) == new)
    }
    await downloader.shutdown()
    #expect(storage.partials.isEmpty)
  }

  @Test("a changed URL is permission for another file, and its bytes are compared first")
  func changedURL() async throws {
    let fresh = try #require(URL(string: "https://example.org/other.bin"))
    for isSame in [true, false] {
      let new = isSame ? bytes : changed(at: 3, count: 70_000)
      let source = FakeSource([
        url: [bare(.init(bytes)).failing(after: 60_000, with: cut)], fresh: [bare(.init(new))],
      ])
      let downloader = try await downloader(source, retry: FakeRetryPolicy { _ in .giveUp })
      let download = try await downloader.add(DownloadRequest(url, id: "\(isSame)"))
      await #expect(throws: DownloadError.self) { try await download.value }
      try await downloader.update(download.id) { $0.url = fresh }
      try await download.resume()
      #expect(storage.bytes(of: try await download.value) == new)
      await downloader.shutdown()
    }
  }

  // MARK: Refused ranges

  @Test(
    "a server that refuses ranges, and sends the whole file, completes a partial in the same attempt",
    arguments: [400, 403, 404, 405, 406, 412, 500, 501, 503])
  func refusedRanges(status: Int) async throws {
    let source = FakeSource([
      url: [FakeSource.Script(bytes).failing(after: 60_000, with: cut), .status(status), FakeSource.Script(bytes)]
    ])
    let downloader = try await downloader(source, retry: standard)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.map(\.range) == [nil, RequestedRange(from: 59_000), nil])
    #expect(try await download.status.attempts == 2)
    await downloader.shutdown()
  }
}
