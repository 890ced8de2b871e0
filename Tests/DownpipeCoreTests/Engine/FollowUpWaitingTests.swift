import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// A download that finishes after the downloads that follow from it.
@Suite(.endsHangs)
struct FollowUpWaitingTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 1000)
  let url = URL(string: "https://example.org/list")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private let files = [URL(string: "https://a.test/1")!, URL(string: "https://a.test/2")!]

  private func downloader(
    _ source: FakeSource, observer: RecordingObserver? = nil, next: FakePostProcessor<File, File>? = nil
  ) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      FakeRetryPolicy(.giveUp)
      if let observer { observer }
      storage
      ledger
      limit(1)
      FollowUp(waitsForChildren: true) { [files] _, context in
        context.request.id == "root" ? files.map { DownloadRequest($0) } : []
      }
      if let next { next }
    }
  }

  @Test("the parent gives its slot away, and its next steps run after its children")
  func order() async throws {
    let observer = RecordingObserver()
    let next = FakePostProcessor<File, File>(name: "Next") { file, _ in file }
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), observer: observer, next: next)
    let artifact = try await downloader.add(DownloadRequest(url, id: "root")).value
    #expect(storage.bytes(of: artifact) == bytes)
    @Sendable func ends(_ events: [DownloadEvent]) -> [DownloadID] {
      events.filter { if case .state(.finished) = $0.kind { true } else { false } }.map(\.id)
    }
    #expect(await observer.wait { ends($0).contains("root") })
    let ended = ends(observer.events)
    #expect(Set(ended).count == 3 && ended.firstIndex(of: "root") == ended.count - 1, "\(ended)")
    #expect(next.inputs.count == 3)
    let status = try #require(try await downloader.status(of: "root"))
    #expect(status.request.after == Set(ended).subtracting(["root"]))
    // It runs twice and fails never.
    #expect(status.attempts <= 2)
    await downloader.shutdown()
  }

  @Test("a child that fails holds the parent back until it is resumed, also over a restart")
  func failing() async throws {
    let source = FakeSource([
      url: [.init(bytes)], files[0]: [.init(bytes)],
      files[1]: [.failingToOpen(DownloadError(.tls, "the certificate has expired")), .init(bytes)],
    ])
    let first = try await downloader(source)
    try await first.add(DownloadRequest(url, id: "root"))
    try await first.waitUntilIdle()
    let failed = try #require(try await first.statuses().first { $0.state.phase == .failed })
    let waiting = try #require(try await first.status(of: "root"))
    #expect(waiting.state == .waiting(.dependency(failed.id, .failed)), "\(waiting.state)")
    await first.shutdown()

    let second = try await downloader(source)
    #expect(try await second.status(of: "root")?.state.phase == .waiting)
    try await second.resume(failed.id)
    try await second.waitUntilIdle()
    #expect(try await second.statuses().allSatisfy { $0.state.phase == .finished })
    #expect(source.requests.count { $0.url == files[0] } == 1, "what has finished is not fetched again")
    await second.shutdown()
  }

  @Test("a parent that starts again waits for children that start again, and not for those of its earlier artifact")
  func startingAgain() async throws {
    let lists = Watched([files, [files[0]]])
    let source = FakeSource([
      url: [.init(bytes)], files[1]: [.init(bytes)],
      files[0]: [.init(bytes), .failingToOpen(DownloadError(.tls, "the certificate has expired")), .init(bytes)],
    ])
    let downloader = try await Downloader(options: options) {
      source
      FakeRetryPolicy(.giveUp)
      storage
      ledger
      FollowUp(waitsForChildren: true) { _, context in
        guard context.request.id == "root" else { return [] }
        return lists.update { $0.count > 1 ? $0.removeFirst() : $0[0] }.map { DownloadRequest($0) }
      }
    }
    let download = try await downloader.add(DownloadRequest(url, id: "root"))
    _ = try await download.value
    let first = try #require(try await downloader.statuses().first { $0.request.url == files[0] })
    // Its file is gone, so that it starts again with its parent, and fails.
    if case .finished(let artifact) = first.state { try await storage.remove(artifact) }
    try await download.restart()
    try await downloader.waitUntilIdle()
    let waiting = try await download.status
    #expect(waiting.state == .waiting(.dependency(first.id, .failed)), "\(waiting.state)")
    #expect(waiting.request.after == [first.id])
    try await downloader.resume(first.id)
    _ = try await download.value
    await downloader.shutdown()
  }

  @Test("more children than a download can wait for are refused, and none is added")
  func tooMany() async throws {
    let files = (0..<1001).map { url.appending(path: "\($0)") }
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      FakeRetryPolicy(.giveUp)
      storage
      ledger
      FollowUp(waitsForChildren: true) { _ in files.map { DownloadRequest($0) } }
    }
    let download = try await downloader.add(DownloadRequest(url, id: "root"))
    let error = await #expect(throws: DownloadError.self) { try await download.value }
    #expect(error?.code == .followUpLimit)
    #expect(try await downloader.statuses().count == 1)
    await downloader.shutdown()
  }

  @Test("a child that waits for its parent is a cycle")
  func cycles() async throws {
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      FakeRetryPolicy(.giveUp)
      storage
      ledger
      FollowUp(waitsForChildren: true) { [files] _ in [DownloadRequest(files[0]).with(\.after, ["root"])] }
    }
    let download = try await downloader.add(DownloadRequest(url, id: "root"))
    let error = await #expect(throws: DownloadError.self) { try await download.value }
    #expect(error?.code == .invalidRequest && error?.message.contains("waits for") == true)
    await downloader.shutdown()
  }

  @Test func conformance() async throws {
    let added = Watched<[DownloadRequest]>([])
    try await PostProcessorConformance(
      FollowUp { artifact in
        _ = try artifact.readBytes()
        return [try DownloadRequest("https://a.test/1")]
      },
      .init(bytes).adding { children, _ in added.update { $0 += children } },
      bad: nil
    ).run()
    #expect(Set(added.value.map(\.url.absoluteString)) == ["https://a.test/1"])
  }
}
