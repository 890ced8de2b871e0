import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// A download starts when the downloads that it waits for have finished, and says until then which one that is.
@Suite(.endsHangs)
struct DependencyTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private func request(_ id: DownloadID, after: Set<DownloadID> = []) -> DownloadRequest {
    DownloadRequest(url.appending(path: id.rawValue), id: id, destination: .init(name: id.rawValue)).with(
      \.after, after)
  }

  private func url(_ id: DownloadID) -> URL { url.appending(path: id.rawValue) }

  private func reason(_ downloader: Downloader, _ id: DownloadID) async throws -> String? {
    guard case .waiting(let reason)? = try await downloader.status(of: id)?.state else { return nil }
    return reason.description
  }

  /// Waits until a download is published with a reason.
  private func sees(_ downloader: Downloader, _ id: DownloadID, _ reason: WaitingReason) async throws -> Bool {
    guard let download = try await downloader.download(id) else { return false }
    return try await advancing {
      for await event in download.events where event.kind == .state(.waiting(reason)) { return true }
      return false
    }
  }

  @Test("a download starts when its dependency has finished, in the same turn of the loop")
  func order() async throws {
    let observer = RecordingObserver()
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(source, observers: [observer])
    try await downloader.add(contentsOf: [
      request("c", after: ["a", "b"]), request("b", after: ["a"]), request("a"),
    ])
    // No virtual time passes: nothing is polled.
    try await downloader.waitUntilIdle()
    // Events reach an observer later than those who wait, but all of them before the shutdown has ended.
    await downloader.shutdown()
    let events = observer.events.compactMap { event -> String? in
      switch event.kind {
      case .state(.transferring): "\(event.id) starts"
      case .state(.finished): "\(event.id) ends"
      default: nil
      }
    }
    #expect(events == ["a starts", "a ends", "b starts", "b ends", "c starts", "c ends"])
  }

  @Test("a download says live which dependency it waits for, and what that does")
  func reasons() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    try await downloader.add(request("b", after: ["a"]))
    #expect(try await sees(downloader, "b", .dependency("a", .unknown)))
    #expect(try await reason(downloader, "b") == "waits for “a”, which does not exist")
    try await downloader.add(request("a"))
    #expect(try await sees(downloader, "b", .dependency("a", .unfinished)))
    #expect(try await reason(downloader, "b") == "waits for “a” to finish")
    await source.held(atLeast: 1)
    try await downloader.pause("a")
    #expect(try await sees(downloader, "b", .dependency("a", .paused)))
    #expect(try await reason(downloader, "b") == "waits for “a”, which is paused")
    try await downloader.cancel("a")
    #expect(try await sees(downloader, "b", .dependency("a", .cancelled)))
    #expect(try await reason(downloader, "b") == "waits for “a”, which was cancelled")
    try await downloader.remove("a")
    #expect(try await sees(downloader, "b", .dependency("a", .unknown)))
    #expect(try await reason(downloader, "b") == "waits for “a”, which does not exist")
    let unknown = DownloadState.waiting(.dependency("a", .unknown))
    #expect(try await downloader.statuses(of: ["b"])["b"]?.state == unknown)
    #expect(try await downloader.statuses().map(\.state) == [unknown])
    source.release()
    try await downloader.add(request("a"))
    try await downloader.waitUntilIdle()
    #expect(try await downloader.status(of: "b")?.state.phase == .finished)
    await downloader.shutdown()
  }

  @Test("a failed dependency is named before one that goes on, and a released download says what else it waits for")
  func failure() async throws {
    let source = FakeSource([
      url("a"): [.init(bytes).holding(after: 10_000)],
      url("z"): [.failingToOpen(DownloadError(.network, "broken")), .init(bytes)],
      url("b"): [.init(bytes)],
    ])
    let downloader = try await downloader(source)
    try await downloader.add(contentsOf: [request("b", after: ["a", "z"]), request("a")])
    #expect(try await reason(downloader, "b") == "waits for “z”, which does not exist")
    try await downloader.add(request("z"))
    #expect(try await sees(downloader, "b", .dependency("z", .failed)))
    #expect(try await reason(downloader, "b") == "waits for “z”, which has failed")
    try await downloader.resume("z")
    #expect(try await sees(downloader, "b", .dependency("a", .unfinished)))
    source.release()
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.finished: 3])
    await downloader.shutdown()
  }

  @Test("watchers of all downloads learn why downloads wait that were added before")
  func changesOfEarlierDownloads() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    try await downloader.add(contentsOf: [request("b", after: ["a"]), request("a")])
    await source.held(atLeast: 1)
    try await settle(downloader)
    let changes = downloader.changes(every: .zero)
    let state = try await advancing { () -> DownloadState? in
      for await batch in changes {
        if let status = batch.statuses.first(where: { $0.id == "b" }) { return status.state }
      }
      return nil
    }
    #expect(state == .waiting(.dependency("a", .unfinished)))
    source.release()
    await downloader.shutdown()
  }

  @Test("waitUntilIdle returns when only downloads are left whose dependencies need a command")
  func idle() async throws {
    let broken = DownloadError(.network, "broken")
    let source = FakeSource([
      url("a"): [.failingToOpen(broken), .failingToOpen(broken), .init(bytes)],
      url("b"): [.init(bytes)], url("c"): [.init(bytes)],
    ])
    let downloader = try await downloader(source)
    try await downloader.add(contentsOf: [request("a"), request("b", after: ["a"]), request("c", after: ["b"])])
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.failed: 1, .waiting: 2])
    #expect(try await reason(downloader, "c") == "waits for “b” to finish")
    // Also in a later process, and the downloads go on when the dependency does.
    await downloader.shutdown()
    let later = try await self.downloader(source)
    try await later.waitUntilIdle()
    try await later.resume("a")
    try await later.waitUntilIdle()
    #expect(try await later.counts() == [.failed: 1, .waiting: 2])
    try await later.resume("a")
    try await later.waitUntilIdle()
    #expect(try await later.counts() == [.finished: 3])
    await later.shutdown()
  }

  @Test("a start by hand does not override a dependency")
  func byHand() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    try await downloader.add(contentsOf: [request("a"), request("b", after: ["a"])])
    await source.held(atLeast: 1)
    #expect(try await !downloader.start("b", preempting: .oldest))
    #expect(try await reason(downloader, "b") == "waits for “a” to finish")
    #expect(try await downloader.status(of: "a")?.state == .transferring, "it was not preempted")
    try await downloader.pause("b")
    #expect(try await !downloader.start("b"))
    try await downloader.update("b") { $0.after = [] }
    await source.held(atLeast: 2)
    source.release()
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.finished: 2])
    await downloader.shutdown()
  }

  @Test("cycles and requests with bad dependencies are refused, and nothing is added")
  func refusals() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes).holding(after: 10_000)))
    func refusal(_ requests: [DownloadRequest]) async -> String {
      do { try await downloader.add(contentsOf: requests) } catch let error as DownloadError {
        #expect(error.code == .invalidRequest)
        return error.message
      } catch { Issue.record(error) }
      return ""
    }
    #expect(
      await refusal([request("a", after: ["b"]), request("b", after: ["a"])])
        == "“a” waits for “b”, which waits for “a”: leave out one of these dependencies")
    #expect(await refusal([request("a", after: ["a"])]) == "“a” waits for “a”: a download cannot wait for itself")
    #expect(await refusal([request("a", after: [""])]).contains("1 to 255 bytes"))
    let many = Set((0...1000).map { DownloadID("\($0)") })
    #expect(
      await refusal([request("a", after: many)])
        == "a download can wait for at most 1000 others, but “a” waits for 1001")
    #expect(try await downloader.counts() == [:])
    try await downloader.add(contentsOf: [request("a"), request("b", after: ["a"]), request("c", after: ["b"])])
    await #expect(throws: DownloadError.self) { try await downloader.update("a") { $0.after = ["c"] } }
    #expect(try await downloader.status(of: "a")?.request.after == [])
    let long = (0..<20).map { request(DownloadID("x\($0)"), after: [DownloadID("x\(($0 + 1) % 20)")]) }
    #expect(await refusal(long).contains("“x9”, which waits for 10 more in turn, which waits for “x0”"))
    await downloader.shutdown()
  }

  @Test("a lost file that is added again holds the downloads that are added with it")
  func lostFile() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(source)
    let first = try await downloader.add(request("a")).value
    try await storage.remove(first)
    let observer = RecordingObserver()
    await downloader.shutdown()
    let later = try await self.downloader(source, observers: [observer])
    let added = try await later.add(contentsOf: [request("b", after: ["a"]), request("a")])
    #expect(added.map(\.id) == ["b", "a"])
    try await later.waitUntilIdle()
    await later.shutdown()
    #expect(
      observer.events.compactMap { $0.kind == .state(.transferring) ? $0.id : nil } == ["a", "b"])
  }

  @Test("a download that gets a dependency during its run waits for it after the run")
  func dependencyDuringARun() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let gate = FakeGate()
    let downloader = try await downloader(source, gates: [gate])
    try await downloader.add(request("b"))
    await source.held(atLeast: 1)
    try await downloader.update("b") { $0.after = ["a"] }
    #expect(try await downloader.status(of: "b")?.state == .transferring)
    gate.close("off")
    #expect(try await sees(downloader, "b", .dependency("a", .unknown)))
    gate.open()
    source.release()
    try await downloader.waitUntilIdle()
    #expect(try await reason(downloader, "b") == "waits for “a”, which does not exist")
    try await downloader.add(request("a"))
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.finished: 2])
    await downloader.shutdown()
  }

  @Test("a dependency that another downloader on the ledger finishes is told at once, without a timer")
  func otherDownloader() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let first = try await downloader(source)
    try await first.add(request("a"))
    await source.held(atLeast: 1)
    var own = options
    own.scope = .own
    let second = try await Downloader(options: own) {
      FakeSource(everyURL: .init(bytes))
      storage
      ledger
    }
    let download = try await second.add(request("b", after: ["a"]))
    source.release()
    _ = try await download.value
    #expect(try await first.status(of: "a")?.state.phase == .finished)
    await first.shutdown()
    await second.shutdown()
  }
}
