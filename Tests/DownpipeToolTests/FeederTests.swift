import ArgumentParser
import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct FeederTests {
  private struct Silence: RunOutput, Sendable {
    func show(_ notice: DownloadNotice) {}
    func show(_ status: DownloadStatus, isNews: Bool) {}
    func show(_ result: DownloadResult) {}
    func flush(_ tally: Tally, at now: Date) {}
    func end(_ tally: Tally, at now: Date) {}
  }

  private let source = FakeSource(everyURL: .init([1, 2, 3]))
  private let storage = MemoryStore()
  private let ledger = MemoryLedger()

  private func downloader() async throws -> Downloader {
    try await Downloader {
      source
      storage
      ledger
      VerifyChecksum()
    }
  }

  /// Downloads URLs as one command does.
  private func run(_ urls: [String], _ prepare: (Downloader) async throws -> Void = { _ in }) async throws -> Tally {
    let downloader = try await downloader()
    try await prepare(downloader)
    let monitor = RunMonitor(output: Silence())
    let feeder = Feeder(plan: try GetPlan(urls: urls))
    try await feeder.add(urls, to: downloader, monitor)
    try await downloader.waitUntilIdle()
    try await monitor.reconcile(downloader)
    let tally = await monitor.result
    await downloader.shutdown()
    return tally
  }

  @Test("A list longer than one batch is added completely, each URL once")
  func longLists() async throws {
    let urls = (0..<450).map { "http://a/\($0)" }
    let tally = try await run(urls + ["nonsense"] + urls.prefix(300))
    #expect(tally.total == 451)
    #expect(tally.finished == 450)
    #expect(tally.failed == 1)
    #expect(source.requests.count == 450)
    #expect(Set(source.requests.map(\.url.absoluteString)) == Set(urls))
  }

  @Test("Files that another command has finished are not fetched again")
  func finishedByOthers() async throws {
    _ = try await run(["http://a/1", "http://a/2"])
    let tally = try await run(["http://a/2", "http://a/3", "http://a/2"])
    #expect(tally.total == 2)
    #expect(tally.finished == 2)
    #expect(tally.finishedBefore == 1)
    #expect(source.requests.map(\.url.absoluteString).sorted() == ["http://a/1", "http://a/2", "http://a/3"])
  }

  @Test(
    "With --refresh the servers of finished files are asked, with --refresh-stale only those of files that are not fresh"
  )
  func refreshes() async throws {
    let folder = try TemporaryFolder()
    let first = try #require(URL(string: "http://a/1"))
    let second = try #require(URL(string: "http://a/2"))
    let source = FakeSource([
      first: [.init([1, 2, 3]).with { $0.freshFor = .seconds(3_600) }],
      second: [.init([4]), .init([4]), .init([5, 6])],
    ])
    let ledger = MemoryLedger()
    func run(_ refresh: RefreshOption?) async throws -> Tally {
      let downloader = try await Downloader {
        source
        FileStore(folder.path)
        ledger
        VerifyChecksum()
      }
      let monitor = RunMonitor(output: Silence())
      var feeder = Feeder(
        plan: try GetPlan(urls: ["http://a/1", "http://a/2"], refresh: refresh?.policy ?? .never))
      try await feeder.lookForHistory(downloader)
      try await feeder.add(feeder.plan.urls, to: downloader, monitor)
      try await downloader.waitUntilIdle()
      try await monitor.reconcile(downloader)
      await downloader.shutdown()
      return await monitor.result
    }
    for (refresh, before, asked) in [
      (nil, 0, [first, second]), (nil, 2, []), (.refreshStale, 1, [second]), (.refresh, 0, [first, second]),
      (nil, 2, []),
    ] as [(RefreshOption?, Int, [URL])] {
      let count = source.requests.count
      let tally = try await run(refresh)
      #expect(tally.finished == 2 && tally.failed == 0 && tally.finishedBefore == before, "\(tally)")
      #expect(Set(source.requests.dropFirst(count).map(\.url)) == Set(asked))
    }
    #expect(try folder.read("1") == [1, 2, 3] && folder.read("2") == [5, 6])
    folder.close()
  }

  @Test("The options of a refresh exclude each other, and a URL may follow them")
  func refreshOptions() throws {
    func policy(_ arguments: [String]) throws -> DownloadRequest.Refresh {
      try GetOptions.parse(arguments).plan().request(for: "http://a/1").refresh
    }
    #expect(try policy(["http://a/1"]) == .never)
    #expect(try policy(["--refresh", "http://a/1"]) == .ifChanged)
    #expect(try policy(["http://a/1", "--refresh-stale"]) == .whenStale)
    #expect(throws: (any Error).self) { try policy(["--refresh", "--refresh-stale", "http://a/1"]) }
  }

  @Test("The result of an earlier command does not count for this one")
  func earlierResults() async throws {
    let id = DownloadIdentity(url: "http://a/1", outputName: nil).id
    _ = try await run(["http://a/1"])
    let downloader = try await downloader()
    let monitor = RunMonitor(output: Silence())
    await monitor.beginAdding()
    #expect(await monitor.include([id, id]) == [true, false])
    try await monitor.reconcile(downloader)
    #expect(await monitor.result.finished == 0)
    await monitor.endAdding()
    try await monitor.reconcile(downloader)
    #expect(await monitor.result.finished == 1)
    await downloader.shutdown()
  }

  @Test("A download that waits for another attempt is held back, one that waits for its turn is not")
  func heldBack() throws {
    let error = DownloadError(.network, "gone")
    for state in [
      DownloadState.paused, .waiting(.retry(at: Samples.now, after: error)),
      .waiting(.missing(.disk, until: Samples.now, after: error)),
    ] { #expect(Samples.status(state).isHeldBack) }
    for state in [DownloadState.waiting(.turn), .waiting(.gate(id: "gate", text: "night")), .transferring, .cancelled] {
      #expect(!Samples.status(state).isHeldBack)
    }
  }

  @Test("A finished file of another size does not count as finished")
  func sizes() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write([1, 2, 3], to: "file")
    let store = FileStore(folder.path)
    func isUnchanged(_ kind: Artifact.Kind, _ path: String, _ size: ByteCount) async -> Bool {
      await store.contains(Artifact(kind: kind, location: .path(path), name: "file", size: size))
    }
    #expect(await isUnchanged(.file, path, .known(3)))
    #expect(await isUnchanged(.file, path, .unknown))
    #expect(await !isUnchanged(.file, path, .known(4)))
    #expect(await !isUnchanged(.file, folder.path("none"), .unknown))
    #expect(await !isUnchanged(.file, folder.path, .unknown))
    #expect(await isUnchanged(.directory, folder.path, .known(7)))
    #expect(await !isUnchanged(.directory, path, .unknown))
  }

  @Test("A paused download is resumed")
  func paused() async throws {
    let id = DownloadIdentity(url: "http://a/1", outputName: nil).id
    let tally = try await run(["http://a/1"]) { downloader in
      await downloader.setSuspended(true)
      try await downloader.add(DownloadRequest("http://a/1", id: id))
      try await downloader.pause(id)
      await downloader.setSuspended(false)
    }
    #expect(tally.finished == 1)
  }

  @Test("A URL that was added with --untrusted keeps its rules when it is added again")
  func untrusted() async throws {
    let url = "http://a/1"
    let id = DownloadIdentity(url: url, outputName: nil).id
    let earlier = try await downloader()
    var plan = try GetPlan(urls: [url])
    plan.isUntrusted = true
    let request = try plan.request(for: url)
    await earlier.setSuspended(true)
    try await earlier.add(request)
    await earlier.shutdown()

    let downloader = try await downloader()
    let monitor = RunMonitor(output: Silence())
    var feeder = Feeder(plan: try GetPlan(urls: [url, "http://a/2"]))
    try await feeder.lookForHistory(downloader)
    try await feeder.add([url, "http://a/2"], to: downloader, monitor)
    try await downloader.waitUntilIdle()
    #expect(await monitor.untrusted == 1)
    #expect(try await downloader.status(of: id)?.request.isUntrusted == true)
    #expect(source.requests.map(\.isUntrusted).sorted { $0 && !$1 } == [true, false])
    await downloader.shutdown()
  }
}
