@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Updating, renaming, restarting and exporting downloads.
@Suite(.endsHangs)
struct ChangingTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  // MARK: Updating

  @Test func aWaitingDownloadJumpsTheQueueWithItsNewPriority() async throws {
    let gate = FakeGate(.closed("not yet"))
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await Downloader(options: options) {
      source
      gate
      limit(1)
      FakeSchedulingPolicy { Rank().descending($0.priority).ascending($0.arrival) }
      storage
      ledger
    }
    try await downloader.add(contentsOf: requests(3))
    let status = try await downloader.update("d2") { request in
      request.priority = .high
      request.metadata["tapped"] = "yes"
    }
    #expect(status.request.priority == .high && status.request.metadata == ["tapped": "yes"])
    // Adding an unchanged request again changes nothing.
    try await downloader.add(contentsOf: requests(3))
    #expect(try await downloader.status(of: "d2")?.request.priority == .high)
    gate.open()
    try await downloader.waitUntilIdle()
    #expect(source.requests.map(\.id) == ["d2", "d0", "d1"])
    await downloader.shutdown()
  }

  @Test func aRunningDownloadGoesToItsNewDestinationAndCountsWithItsNewTags() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await Downloader(options: options) {
      source
      FakeAdmissionPolicy { candidate, running in
        candidate.tags.contains("video") && running.perTag["video"] != nil ? .refused("one video") : .admitted
      }
      storage
      ledger
    }
    var some = requests(2)
    some[1].tags = ["video"]
    let first = try await downloader.add(some[0])
    await source.held(atLeast: 1)
    try await first.update { request in
      request.tags = ["video"]
      request.destination.name = "other.bin"
    }
    let second = try await downloader.add(some[1])
    try await settle(downloader)
    #expect(try await second.status.state == .waiting(.limit(id: "FakeAdmissionPolicy", text: "one video")))
    source.release()
    #expect(try await first.value.name == "other.bin")
    _ = try await second.value
    await downloader.shutdown()
  }

  @Test func whatCannotBeIsRefusedAndNothingHasChanged() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a", tags: ["x"]))
    _ = try await download.value
    func refuses(_ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void) async {
      await #expect(throws: DownloadError.self) {
        try await downloader.update(id) { request in
          request.tags = ["y"]
          try change(&request)
        }
      }
    }
    await refuses("none") { _ in }
    await refuses("a") { $0.id = "b" }
    await refuses("a") { $0.url = URL(filePath: "/nowhere") }
    await refuses("a") { $0.destination.name = "other" }
    await refuses("a") { _ in throw DownloadError(.invalidRequest, "no") }
    #expect(try await download.status.request.tags == ["x"])
    try await download.update { $0.tags = ["z"] }
    #expect(try await download.status.request.tags == ["z"])
    await downloader.shutdown()
  }

  @Test func aFinishedDownloadKeepsItsNameWhenTheFeedCorrectsIt() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)))
    let download = try await downloader.add(DownloadRequest(url, id: "a", destination: .init(name: "typo")))
    _ = try await download.value
    try await downloader.add(DownloadRequest(url, id: "a", tags: ["x"], destination: .init(name: "right")))
    let status = try await download.status
    #expect(status.name == "typo" && status.request.destination.name == "typo" && status.request.tags == ["x"])
    await downloader.shutdown()
  }

  @Test func whatWasDeletedByHandStaysSoForAFeedThatKeeps() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(source)
    let request = DownloadRequest(url, id: "a", destination: .init(name: "film"))
    let artifact = try await downloader.add(request).value
    try await storage.remove(artifact)
    try await downloader.add(request, ifKnown: .keep)
    try await downloader.waitUntilIdle()
    #expect(source.requests.count == 1)
    try await downloader.add(request)
    try await downloader.waitUntilIdle()
    #expect(source.requests.count == 2)
    await downloader.shutdown()
  }

  @Test func whatIsDiscardedIsGoneAndDoesNotComeBack() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(source)
    let download = try await downloader.add(contentsOf: requests(1))[0]
    _ = try await download.value
    #expect(try await downloader.discard("d0"))
    #expect(try await download.status.state == .cancelled)
    #expect(storage.published.isEmpty)
    #expect(try await !downloader.discard("d0"))
    try await downloader.add(contentsOf: requests(1))
    try await downloader.waitUntilIdle()
    #expect(source.requests.count == 1)
    #expect(try await downloader.restart("d0"))
    _ = try await download.value
    await downloader.shutdown()
  }

  @Test func whatRunsIsRankedByTheNewPolicyToo() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await Downloader(options: options) {
      source
      limit(2)
      FakeSchedulingPolicy { Rank().ascending($0.arrival) }
      storage
      ledger
    }
    let downloads = try await downloader.add(contentsOf: requests(2))
    await source.held(atLeast: 2)
    try await downloader.replace(FakeSchedulingPolicy { Rank().descending($0.arrival) })
    await downloader.replace(limit(1))
    for await event in downloads[0].events { if case .state(.waiting) = event.kind { break } }
    #expect(try await downloads[1].status.state == .transferring, "the last one comes first now")
    source.release()
    await downloader.shutdown()
  }

  @Test func aRemovalIsCarriedOutWhateverBecomesOfItsCaller() async throws {
    let (probe, source) = (ProbeStorage(storage), FakeSource(everyURL: .init(bytes).holding(after: 10_000)))
    let downloader = try await Downloader(options: options) {
      source
      probe
      ledger
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    var events = download.events.makeAsyncIterator()
    _ = await events.next()
    probe.hold(.removePartial)
    let removal = Task { try await downloader.remove("a") }
    await probe.held(.removePartial)
    removal.cancel()
    probe.release()
    var last: DownloadEvent?
    while let event = await events.next() { last = event }
    #expect(last?.kind == .removed)
    #expect(try await downloader.status(of: "a") == nil)
    await downloader.shutdown()
    #expect(storage.partials.isEmpty)
  }

  // MARK: Restarting

  @Test(arguments: [DownloadState.Phase.waiting, .transferring, .paused, .failed, .cancelled])
  func aRestartBeginsWithTheFirstByte(_ phase: DownloadState.Phase) async throws {
    let gate = FakeGate()
    let error = DownloadError(.network, "gone")
    let first: FakeSource.Script =
      phase == .failed ? .init(bytes).failing(after: 40_000, with: error) : .init(bytes).holding(after: 40_000)
    let source = FakeSource([url: [first, .init(bytes)]])
    let downloader = try await downloader(source, gates: [gate])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    if phase == .failed { _ = try? await download.value } else { await source.held(atLeast: 1) }
    switch phase {
    case .waiting:
      gate.close("no")
      for await event in download.events { if case .state(.waiting) = event.kind { break } }
    case .paused: try await download.pause()
    case .cancelled: try await download.cancel()
    default: break
    }
    #expect(try await download.status.state.phase == phase)
    #expect(try await downloader.restart("a"))
    gate.open()
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.last?.range == nil)
    #expect(try await download.status.resumedFrom == 0)
    await downloader.shutdown()
    #expect(storage.partials.isEmpty)
  }

  @Test func whatWasCancelledComesBackByARestartOnly() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    let downloads = try await downloader.add(contentsOf: requests(2))
    await source.held(atLeast: 2)
    try await downloads[0].cancel()
    #expect(try await !downloads[0].resume())
    #expect(try await downloader.resumeAll() == 0)
    try await downloader.add(contentsOf: requests(2))
    #expect(try await downloads[0].status.state == .cancelled)
    #expect(try await downloader.restart("d0"))
    source.release()
    _ = try await downloads[0].value
    await downloader.shutdown()
  }

  @Test func whatWasPausedTogetherIsResumedTogether() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await Downloader(options: options) {
      source
      limit(2)
      storage
      ledger
    }
    let downloads = try await downloader.add(contentsOf: requests(5))
    await source.held(atLeast: 2)
    try await downloads[3].pause()
    try await downloads[4].cancel()
    #expect(try await downloader.pauseAll() == 3)
    for index in 0..<4 { #expect(try await downloads[index].status.state == .paused) }
    #expect(try await downloader.resumeAll(only: .pausedTogether) == 3)
    source.release()
    try await downloader.waitUntilIdle()
    let phases = try await downloader.counts()
    #expect(phases == [.finished: 3, .paused: 1, .cancelled: 1])
    #expect(try await downloader.resumeAll() == 1)
    try await downloader.waitUntilIdle()
    #expect(try await downloader.counts() == [.finished: 4, .cancelled: 1])
    await downloader.shutdown()
  }

  // MARK: Renaming

  @Test func aFinishedFileHasItsNewNameAtOnce() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)))
    let download = try await downloader.add(DownloadRequest(url, id: "a", destination: .init(directory: "films")))
    _ = try await download.value
    let status = try await downloader.rename("a", to: "AC/DC.bin")
    #expect(status.name == "AC-DC.bin" && status.request.destination.name == "AC-DC.bin")
    let artifact = try #require(status.artifact)
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(storage.published.count == 1, "the file exists once")
    // Added again, the file is found under its new name and is not downloaded.
    try await downloader.add(DownloadRequest(url, id: "a", destination: .init(directory: "films")))
    try await downloader.waitUntilIdle()
    #expect(try await download.status.artifact == artifact)
    await downloader.shutdown()
  }

  @Test func whatRunsWillHaveItsNewName() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a", destination: .init(name: "old")))
    await source.held(atLeast: 1)
    #expect(try await downloader.rename("a", to: "new").state == .transferring)
    source.release()
    #expect(try await download.value.name == "new")
    await #expect(throws: DownloadError.self) { try await downloader.rename("none", to: "new") }
    await downloader.shutdown()
  }

  @Test func whatIsBeingPublishedIsRenamedAfterwards() async throws {
    let (probe, source) = (ProbeStorage(storage), FakeSource(everyURL: .init(bytes)))
    let downloader = try await Downloader(options: options) {
      source
      probe
      ledger
    }
    probe.hold(.publish)
    try await downloader.add(DownloadRequest(url, id: "a", destination: .init(name: "old")))
    await probe.held(.publish)
    let renaming = Task { try await downloader.rename("a", to: "new") }
    try await settle(downloader)
    probe.release()
    #expect(try await renaming.value.artifact?.name == "new")
    #expect(Array(storage.published.keys) == ["new"])
    await downloader.shutdown()
  }

  @Test func aRenameThatFailsLeavesEverythingAsItWas() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)))
    let download = try await downloader.add(DownloadRequest(url, id: "a", destination: .init(name: "old")))
    let artifact = try await download.value
    storage.fail(.publish, at: 2, with: DownloadError(.permission, "no"))
    await #expect(throws: DownloadError.self) { try await downloader.rename("a", to: "new") }
    #expect(try await download.status.artifact == artifact)
    let store = try await ledger.open()
    #expect(try await store.record("a")?.steps.note == nil, "no rename is left to finish")
    try await store.close()
    await downloader.shutdown()
  }

  // MARK: Exporting

  @Test func whatIsOnDiskIsHandedOut() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    func code(_ id: DownloadID) async -> DownloadError.Code? {
      do { _ = try await downloader.exportPartial(id, to: "/nowhere") } catch { return self.code(error) }
      return nil
    }
    #expect(await code("a") == .inUse, "the partial is being written")
    #expect(await code("none") == .invalidRequest)
    try await download.pause()
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let path = folder.path + "/bytes"
    let export = try await downloader.exportPartial("a", to: path)
    #expect(export.count == 40_000 && export.total == .known(100_000) && export.request.id == "a")
    #expect(export.validator != nil)
    #expect(try Data(contentsOf: URL(filePath: path)).elementsEqual(bytes.prefix(40_000)))
    await #expect(throws: DownloadError.self, "an existing file is not replaced") {
      try await downloader.exportPartial("a", to: path)
    }
    #expect(storage.openPartials == 0)
    try await download.resume()
    source.release()
    _ = try await download.value
    #expect(await code("a") == .invalidRequest, "the download is finished")
    await downloader.shutdown()
  }

  // MARK: Totals

  @Test func totalsCountWhatRunsToo() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 40_000))
    let downloader = try await downloader(source)
    var some = requests(3)
    some[1].tags = ["x"]
    let downloads = try await downloader.add(contentsOf: some)
    await source.held(atLeast: 3)
    try await downloads[2].cancel()
    var totals = try await downloader.totals()
    #expect(totals.counts == [.transferring: 2, .cancelled: 1])
    #expect(totals.received == 80_000)
    totals = try await downloader.totals(.tag("x"))
    #expect(totals.received == 40_000)
    source.release()
    try await downloader.waitUntilIdle()
    totals = try await downloader.totals()
    #expect(totals.received == 200_000 && totals.expected == 200_000 && totals.unknownSizes == 0)
    #expect(totals.bytesPerSecond == nil)
    await downloader.shutdown()
  }
}
