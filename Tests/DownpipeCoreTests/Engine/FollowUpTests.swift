@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Downloads that follow from the artifact of another one.
@Suite(.endsHangs)
struct FollowUpTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 1000)
  let url = URL(string: "https://example.org/list")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// The bytes of a manifest that the steps of these tests read.
  private static func manifest(_ urls: String...) -> [UInt8] { Array("list\n\(urls.joined(separator: "\n"))".utf8) }

  private static func entries(of artifact: Artifact) throws -> [DownloadRequest] {
    let lines = String(decoding: try artifact.readBytes(), as: UTF8.self).split(separator: "\n")
    guard lines.first == "list" else { return [] }
    return try lines.dropFirst().map { try DownloadRequest(String($0)) }
  }

  private func step(_ limits: FollowUpLimits = FollowUpLimits(), waits: Bool = false) -> FollowUp {
    FollowUp(limits: limits, waitsForChildren: waits) { try Self.entries(of: $0) }
  }

  private func downloader(
    _ source: FakeSource, _ step: FollowUp, ledger: (any Ledger)? = nil, observer: RecordingObserver? = nil,
    scope: LeaseScope = .all
  ) async throws -> Downloader {
    var options = options
    options.scope = scope
    return try await Downloader(options: options) {
      source
      FakeRetryPolicy(.giveUp)
      if let observer { observer }
      storage
      AnyLedger(ledger ?? self.ledger)
      step
    }
  }

  private func source(_ manifests: [String: [UInt8]]) throws -> FakeSource {
    var scripts: [URL: [FakeSource.Script]] = [:]
    for (text, manifest) in manifests { scripts[try #require(URL(string: text))] = [.init(manifest)] }
    return FakeSource(scripts)
  }

  private func children(_ downloader: Downloader, of root: DownloadID = "root") async throws -> [DownloadStatus] {
    try await downloader.statuses(DownloadQuery()).filter { $0.id != root }
  }

  @Test("the files of a manifest become downloads of their own, without credentials")
  func adding() async throws {
    let (a, b) = ("https://a.test/1", "http://b.test/2")
    let source = try source(["https://example.org/list": Self.manifest(a, b, a), a: bytes, b: bytes])
    let step = FollowUp { artifact, context in
      #expect(context.request.id.rawValue.hasPrefix("root"))
      return try Self.entries(of: artifact).map { request in
        var request = request
        request.headers = ["Authorization": "secret", "Accept": "*/*"]
        return request
      }
    }
    let downloader = try await downloader(source, step)
    try await downloader.add(DownloadRequest(url, id: "root").with(\.headers, ["X-Key": "parent"]))
    try await downloader.waitUntilIdle()
    let children = try await children(downloader)
    #expect(children.count == 2 && children.allSatisfy { $0.state.phase == .finished })
    #expect(Set(children.map(\.request.url.absoluteString)) == [a, b])
    for child in children {
      #expect(child.id.rawValue.hasPrefix("root/") && child.request.tags == [FollowUp.tag(of: "root")])
      #expect(child.request.lineage == DownloadRequest.Lineage(following: DownloadRequest(url, id: "root")))
      #expect(child.request.isNamedByServer)
    }
    let sent = source.requests.filter { $0.url != url }
    #expect(sent.count == 2 && sent.allSatisfy { $0.isNamedByServer && $0.headers.fields.map(\.name) == ["Accept"] })
    #expect(source.requests.first?.headers["X-Key"] == "parent")
    await downloader.shutdown()
  }

  @Test func credentialsOnRequest() async throws {
    let source = try source(["https://example.org/list": Self.manifest("https://a.test/1"), "https://a.test/1": bytes])
    let step = FollowUp(sendsCredentials: true) { artifact in
      try Self.entries(of: artifact).map { request in
        var request = request
        request.headers = ["Authorization": "given"]
        return request
      }
    }
    let downloader = try await downloader(source, step)
    try await downloader.add(DownloadRequest(url, id: "root"))
    try await downloader.waitUntilIdle()
    #expect(source.requests.last?.isNamedByServer == false)
    #expect(source.requests.last?.headers["Authorization"] == "given")
    await downloader.shutdown()
  }

  @Test("dependencies between the children keep their meaning")
  func siblings() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let step = FollowUp { artifact, context in
      guard context.request.lineage == nil else { return [] }
      let first = try DownloadRequest("https://a.test/1", id: "one")
      return [try DownloadRequest("https://a.test/2", id: "two").with(\.after, ["one", "elsewhere"]), first]
    }
    let downloader = try await downloader(source, step)
    try await downloader.add(DownloadRequest(url, id: "root"))
    try await downloader.waitUntilIdle()
    let children = try await children(downloader)
    let first = try #require(children.first { $0.request.url.lastPathComponent == "1" })
    let second = try #require(children.first { $0.request.url.lastPathComponent == "2" })
    #expect(second.request.after == [first.id, "elsewhere"])
    await downloader.shutdown()
  }

  // MARK: Bounds

  @Test("a manifest that names itself ends with an error after four generations")
  func loops() async throws {
    let source = try source(["https://example.org/list": Self.manifest("https://example.org/list")])
    let downloader = try await downloader(source, step())
    try await downloader.add(DownloadRequest(url, id: "root"))
    try await downloader.waitUntilIdle()
    #expect(source.requests.count == 5)
    let last = try #require(try await children(downloader).max { $0.id.rawValue.count < $1.id.rawValue.count })
    #expect(last.request.lineage?.depth == 4 && last.request.lineage?.root == "root")
    #expect(last.error?.code == .followUpLimit, "\(last.state)")
    await downloader.shutdown()
  }

  @Test("the number of descendants is bounded through the generations")
  func count() async throws {
    let lists = (0..<3).map { "https://a.test/list/\($0)" }
    var manifests = ["https://example.org/list": Self.manifest(lists[0], lists[1], lists[2])]
    for (index, list) in lists.enumerated() {
      let files = (0..<3).map { "https://a.test/\(index)/\($0)" }
      manifests[list] = Self.manifest(files[0], files[1], files[2])
      for file in files { manifests[file] = bytes }
    }
    let downloader = try await downloader(try source(manifests), step(FollowUpLimits(count: 9)))
    try await downloader.add(DownloadRequest(url, id: "root"))
    try await downloader.waitUntilIdle()
    let children = try await children(downloader)
    #expect(children.count == 9, "two of the three lists fit")
    let failed = children.filter { $0.state.phase == .failed }
    #expect(failed.count == 1 && failed.first?.error?.code == .followUpLimit)
    // Those that are known do not count twice.
    try await downloader.restart("root")
    try await downloader.waitUntilIdle()
    #expect(try await downloader.status(of: "root")?.state.phase == .finished)
    #expect(try await self.children(downloader).count == 9)
    await downloader.shutdown()
  }

  @Test(
    "a child that must not be added adds none",
    arguments: [
      ("file:///etc/passwd", "n", DownloadError.Code.unsupportedURL), ("https://a.test/2", "../n", .unsafePath),
      ("https://a.test/2", "a/b", .unsafePath),
    ])
  func refusals(_ text: String, _ name: String, _ code: DownloadError.Code) async throws {
    let step = FollowUp { _ in
      [
        try DownloadRequest("https://a.test/1"),
        try DownloadRequest(text, destination: .init(directory: nil, name: name)),
      ]
    }
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), step)
    let download = try await downloader.add(DownloadRequest(url, id: "root"))
    let error = await #expect(throws: DownloadError.self) { try await download.value }
    #expect(error?.code == code)
    #expect(try await children(downloader).isEmpty)
    await downloader.shutdown()
  }

  @Test("ids depend on parent, URL and destination, and have a limit")
  func ids() throws {
    let request = try DownloadRequest("https://a.test/1", destination: .init(directory: "d", name: "n"))
    let id = try FollowUp.id(of: request, below: "p")
    #expect(try FollowUp.id(of: DownloadRequest(request.url, destination: request.destination), below: "p") == id)
    var others = [try FollowUp.id(of: request, below: "q")]
    for change in [\DownloadRequest.Destination.directory, \.name] {
      var other = request
      other.destination[keyPath: change] = nil
      others.append(try FollowUp.id(of: other, below: "p"))
    }
    #expect(Set(others + [id]).count == 4)
    let error = #expect(throws: DownloadError.self) {
      try FollowUp.id(of: request, below: DownloadID(String(repeating: "x", count: 230)))
    }
    #expect(error?.code == .invalidRequest)
  }

  // MARK: Interruptions

  /// The children are in the ledger, and the process ends before the ledger has the step.
  @Test func aStepThatRunsAgainAddsNothingTwice() async throws {
    let (a, b) = ("https://a.test/1", "https://b.test/2")
    let source = try source(["https://example.org/list": Self.manifest(a, b), a: bytes, b: bytes])
    let faulty = FaultyLedger(ledger)
    let calls = Mutex(0)
    let step = FollowUp { artifact in
      // The next save is the note.
      if calls.withLock({
        $0 += 1; return $0
      }) == 1 {
        faulty.fail(.save, at: faulty.calls.count { $0 == .save } + 1, with: DownloadError(.ledger, "the disk is full"))
      }
      return try Self.entries(of: artifact)
    }
    // The children run in the second one only: one that the end of the first interrupts would run twice, too.
    let first = try await downloader(source, step, ledger: faulty, scope: .ids(["root"]))
    let download = try await first.add(DownloadRequest(url, id: "root"))
    let error = await #expect(throws: DownloadError.self) { try await download.value }
    #expect(error?.code == .ledger)
    await first.shutdown()

    let second = try await downloader(source, step)
    #expect(try await children(second).count == 2, "they were added before the failure")
    try await second.resume("root")
    try await second.waitUntilIdle()
    #expect(calls.withLock { $0 } == 2 + 2, "twice for the manifest, once for each file")
    let all = try await second.statuses()
    #expect(all.count == 3 && all.allSatisfy { $0.state.phase == .finished }, "\(all)")
    for file in [a, b] { #expect(source.requests.count { $0.url.absoluteString == file } == 1) }
    await second.shutdown()
  }

  @Test("what an owner has begun when it ends is completed by the next one, and added once")
  func twoOwners() async throws {
    let (a, b) = ("https://a.test/1", "https://b.test/2")
    let source = try source(["https://example.org/list": Self.manifest(a, b), a: bytes, b: bytes])
    // The step of the first owner has added the children, and hangs before the ledger has its note.
    let (follow, hasAdded) = (step(), Watched(false))
    let hanging = FakePostProcessor<File, File>(name: "FollowUp") { file, context in
      let held = ProcessingContext(
        request: context.request, workspace: nil,
        note: { _ in
          hasAdded.update { $0 = true }
          await Watched(false).wait { $0 }
          throw CancellationError()
        }, add: { try await context.add($0, within: $1) })
      return File(try await follow.process(file.artifact, in: held))
    }
    let first = try await Downloader(options: options) {
      source
      FakeRetryPolicy(.giveUp)
      storage
      ledger
      limit(1)
      hanging
    }
    try await first.add(DownloadRequest(url, id: "root"))
    await hasAdded.wait { $0 }
    #expect(try await children(first).map(\.state.phase) == [.waiting, .waiting])
    await first.shutdown()

    let second = try await downloader(source, step())
    try await second.waitUntilIdle()
    let all = try await second.statuses()
    #expect(all.count == 3 && all.allSatisfy { $0.state.phase == .finished }, "\(all)")
    for file in [a, b] { #expect(source.requests.count { $0.url.absoluteString == file } == 1) }
    await second.shutdown()
  }

  @Test("a download that was cancelled adds nothing more")
  func cancelling() async throws {
    let isHeld = Watched(true)
    let hasBegun = Watched(false)
    let step = FollowUp { _ in
      hasBegun.update { $0 = true }
      await isHeld.wait { !$0 }
      return [try DownloadRequest("https://a.test/1")]
    }
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), step)
    let download = try await downloader.add(DownloadRequest(url, id: "root"))
    await hasBegun.wait { $0 }
    async let cancelled = download.cancel()
    // The step does not heed the cancellation.
    isHeld.update { $0 = false }
    #expect(try await cancelled)
    try await downloader.waitUntilIdle()
    #expect(try await children(downloader).isEmpty)
    await downloader.shutdown()
  }
}
