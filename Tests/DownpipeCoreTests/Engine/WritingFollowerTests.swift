import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Followers that write to the workspace: what they have written is finished by their step, or is gone.
@Suite(.endsHangs)
struct WritingFollowerTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 5 << 20)
  let url = URL(string: "https://example.org/file.bin")!
  let newURL = URL(string: "https://example.org/corrected.bin")!
  let time = VirtualTime()
  let storage: FakeStorage
  let ledger = MemoryLedger()
  private let folder: TemporaryFolder
  private static let mebibyte = 1 << 20
  private let cut = DownloadError(.network, "cut")

  init() throws {
    folder = try TemporaryFolder()
    storage = FakeStorage(workspaces: folder.path)
  }

  private var inverted: [UInt8] { bytes.map { ~$0 } }

  private func script(_ bytes: [UInt8]) -> FakeSource.Script {
    FakeSource.Script(bytes).with { $0.chunkSize = 100_000 }
  }

  private func downloader(
    _ source: FakeSource, retry: FakeRetryPolicy = FakeRetryPolicy(.giveUp), gates: [any Gate] = [],
    _ steps: any Stage...
  ) async throws -> Downloader {
    try await Downloader(options: options) {
      source
      storage
      ledger
      retry
      for gate in gates { AnyGate(base: gate) }
      for step in steps { AnyStep(base: step) }
    }
  }

  /// Passes on what a stage contributes.
  private struct AnyStep: UniversalPostProcessor {
    let base: any Stage
    var name: String { base.name }
    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact { artifact }
    func contribute(to parts: inout PipelineParts) { base.contribute(to: &parts) }
  }

  private struct AnyGate: Gate {
    let base: any Gate
    var name: String { base.name }
    func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws { try await base.watch(publish) }
    func room(for candidate: Candidate) async throws -> Int64? { try await base.room(for: candidate) }
  }

  /// The files in all workspaces.
  private var written: [String] {
    (FileManager.default.subpaths(atPath: folder.path) ?? []).filter { path in
      var isFolder: ObjCBool = false
      return FileManager.default.fileExists(atPath: folder.path(path), isDirectory: &isFolder) && !isFolder.boolValue
    }
  }

  /// The number of bytes that were read from partials.
  private var readCount: Int64 {
    storage.calls.filter { $0.operation == .read }.compactMap(\.range).reduce(0) { $0 + $1.upperBound - $1.lowerBound }
  }

  private func held(
    _ step: WritingStep, after held: Int = 3 << 20, then scripts: [URL: [FakeSource.Script]] = [:],
    retry: FakeRetryPolicy = FakeRetryPolicy(.giveUp)
  ) async throws -> (FakeSource, Downloader, Download, WritingStep.Follower) {
    let source = FakeSource([url: [script(bytes).holding(after: held)]].merging(scripts) { $0 + $1 })
    let downloader = try await downloader(source, retry: retry, step)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let follower = try await step.follower()
    await follower.taken(atLeast: held - Self.mebibyte)
    return (source, downloader, download, follower)
  }

  @Test func theStepFinishesWhatWasWrittenAndNothingIsRead() async throws {
    let step = WritingStep()
    let (source, downloader, download, follower) = try await held(step)
    #expect(!written.isEmpty)
    #expect(step.contexts.map(\.bytesReceived) == [5 << 20])
    source.release()
    #expect(storage.bytes(of: try await download.value) == inverted)
    #expect(step.calls == [true])
    #expect(follower.isDiscarded)
    await downloader.shutdown()
    #expect(written.isEmpty)
    #expect(readCount == 0, "the bytes have arrived in order")
    let calls = storage.calls.map(\.operation)
    let (named, used) = (calls.firstIndex(of: .persist), calls.firstIndex(of: .workspace))
    #expect(try #require(named) < #require(used), "other processes see that it is in use")
    #expect(storage.partials.isEmpty)
  }

  @Test func aDigestAndAWriterTakeTheSameBytes() async throws {
    let (first, step, last) = (FollowingStep(name: "First"), WritingStep(), FollowingStep(name: "Last"))
    let downloader = try await downloader(FakeSource([url: [script(bytes)]]), first, step, last)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == inverted)
    #expect(first.results == [bytes])
    #expect(step.calls == [true])
    #expect(last.contexts.isEmpty, "it takes what the step before it writes")
    #expect(first.contexts.map(\.workspace) == [nil])
    await downloader.shutdown()
  }

  @Test func twoStepsThatWrite() async throws {
    let (first, second) = (WritingStep(name: "First"), WritingStep(name: "Second"))
    let downloader = try await downloader(FakeSource([url: [script(bytes)]]), first, second)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(first.calls == [true] && second.calls == [false])
    #expect(second.contexts.isEmpty)
    await downloader.shutdown()
    #expect(written.isEmpty)
  }

  @Test("a conditional step follows if its condition is met", arguments: [true, false])
  func aConditionalStep(isMet: Bool) async throws {
    let step = WritingStep()
    let downloader = try await downloader(FakeSource([url: [script(bytes)]]), step.when { _ in isMet })
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == (isMet ? inverted : bytes))
    #expect(step.calls == (isMet ? [true] : []))
    #expect(step.followers.count == (isMet ? 1 : 0))
    await downloader.shutdown()
  }

  @Test func aStorageWithoutWorkspacesHasNone() async throws {
    let memory = FakeStorage()
    let step = WritingStep()
    let downloader = try await Downloader(options: options) {
      FakeSource([url: [script(bytes)]])
      memory
      ledger
      step
    }
    #expect(memory.bytes(of: try await downloader.add(DownloadRequest(url, id: "a")).value) == bytes)
    #expect(step.contexts.isEmpty)
    #expect(step.calls == [false])
    await downloader.shutdown()
  }

  @Test func bytesOnDiskAreReadOnce() async throws {
    let source = FakeSource([
      url: [script(bytes).failing(after: 3 * Self.mebibyte, with: cut), script(bytes)]
    ])
    let step = WritingStep()
    let downloader = try await downloader(source, retry: FakeRetryPolicy(.resume(after: .zero)), step)
    #expect(storage.bytes(of: try await downloader.add(DownloadRequest(url, id: "a")).value) == inverted)
    #expect(source.requests.last?.range != nil)
    #expect(step.followers.map(\.isDiscarded) == [true, true], "one for each run")
    #expect(readCount < Int64(bytes.count) + 200_000, "each byte at most once, and the end that is compared")
    #expect(step.calls == [true])
    await downloader.shutdown()
    #expect(written.isEmpty)
  }

  enum End: CaseIterable, Sendable { case cancel, pause, remove, restart, changedURL, shutdown }

  @Test("nothing is left of a transfer that is stopped", arguments: End.allCases)
  func stopped(by end: End) async throws {
    let step = WritingStep()
    let other = inverted
    let (_, downloader, download, follower) = try await held(
      step, then: [newURL: [script(other)], url: [script(bytes)]], retry: FakeRetryPolicy(.restart(after: .zero)))
    switch end {
    case .cancel: try await download.cancel()
    case .pause: try await download.pause()
    case .remove: try await downloader.remove("a")
    case .changedURL:
      try await downloader.update("a") { $0.url = newURL }
      #expect(storage.bytes(of: try await download.value) == bytes)
    case .restart:
      try await download.restart()
      #expect(storage.bytes(of: try await download.value) == inverted)
    case .shutdown: await downloader.shutdown()
    }
    #expect(follower.isDiscarded)
    let goesOn = end == .changedURL || end == .restart
    // After a change of the URL, the follower may be reading the bytes of the first one while they turn out to be others:
    // then the step reads the file.
    #expect(step.calls == (goesOn ? [true] : []) || end == .changedURL && step.calls == [false])
    #expect(end == .changedURL ? step.followers.count >= 2 : step.followers.count == (goesOn ? 2 : 1))
    await downloader.shutdown()
    #expect(written.isEmpty)
    #expect(storage.openPartials == 0)
  }

  @Test func aPausedTransferGoesOn() async throws {
    let step = WritingStep()
    let (source, downloader, download, _) = try await held(step)
    try await download.pause()
    #expect(written.isEmpty)
    source.release()
    try await download.resume()
    #expect(storage.bytes(of: try await download.value) == inverted)
    #expect(step.calls == [true])
    #expect(step.followers.count == 2)
    await downloader.shutdown()
    #expect(written.isEmpty)
  }

  @Test("bytes that were replaced after they were taken are written again", arguments: [0, 1, 3_500_000])
  func replacedBytes(firstDifference: Int) async throws {
    var other = bytes
    other[firstDifference] ^= 1
    let bare: @Sendable (inout FakeSource.Script) -> Void = {
      $0.honoursRanges = false
      $0.validator = nil
    }
    let source = FakeSource([
      url: [
        script(bytes).with(bare).failing(after: 4 * Self.mebibyte, with: cut),
        script(other).with(bare).holding(after: 0),
      ]
    ])
    let step = WritingStep()
    let restarting = FakeRetryPolicy {
      $0.error.code == .contentChanged ? .restart(after: .zero) : .resume(after: .zero)
    }
    let downloader = try await downloader(source, retry: restarting, step)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let follower = try await step.follower(1)
    await follower.taken(atLeast: 4 * Self.mebibyte)
    source.release()
    #expect(storage.bytes(of: try await download.value) == other.map { ~$0 })
    // The body is refused twice, and after the restart a follower has taken the other bytes.
    #expect(step.calls == [true])
    #expect(step.followers.map(\.isDiscarded) == [true, true, true])
    await downloader.shutdown()
    #expect(written.isEmpty)
  }

  @Test func segmentsInAnyOrderAreTheSame() async throws {
    let step = WritingStep()
    let source = FakeSource([url: [script(bytes)]])
    let downloader = try await Downloader(options: options) {
      source
      storage
      ledger
      FakeSegmentPolicy(maximum: 4)
      step
    }
    #expect(storage.bytes(of: try await downloader.add(DownloadRequest(url, id: "a")).value) == inverted)
    #expect(step.followers.count == 1)
    await downloader.shutdown()
    #expect(written.isEmpty)
  }

  @Test func wrongBytesOfAMirrorAreNotInTheResult() async throws {
    let mirror = URL(string: "https://mirror.example.net/file.bin")!
    // The first bytes are right, so that it is admitted.
    let lie = Array(bytes[..<(1 << 20)]) + bytes[(1 << 20)...].map { $0 ^ 0x55 }
    let source = FakeSource([url: [FakeSource.Script(bytes).holding(after: 300_000)], mirror: [.init(lie)]])
    let step = WritingStep()
    let downloader = try await Downloader(options: DownloaderOptions(time: time, random: { 0.5 })) {
      source
      storage
      ledger
      FakeRetryPolicy(.giveUp)
      FakeSegmentPolicy(maximum: 4)
      step
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror]))
    await source.requests(atLeast: 5)
    source.release()
    #expect(storage.bytes(of: try await download.value) == inverted)
    #expect(source.requests.count { $0.url == mirror } >= 2)
    #expect(step.followers.allSatisfy { $0.isDiscarded })
    await downloader.shutdown()
    #expect(written.isEmpty)
  }

  @Test func anotherStepThatFailsLeavesNothing() async throws {
    let step = WritingStep()
    let refusing = FakePostProcessor<File, File>(name: "Refuse", follower: { _ in FollowerRecorder() }) { _, _ in
      throw DownloadError(.digestMismatch, "the digest is wrong")
    }
    let downloader = try await downloader(FakeSource([url: [script(bytes)]]), refusing, step)
    await #expect(throws: DownloadError.self) { try await downloader.add(DownloadRequest(url, id: "a")).value }
    #expect(step.followers.map(\.isDiscarded) == [true])
    #expect(step.calls.isEmpty)
    #expect(storage.published.isEmpty)
    #expect(written.isEmpty)
    await downloader.shutdown()
  }

  // MARK: Disks

  @Test func aFollowerOnAFullDiskGivesItsSpaceBack() async throws {
    let step = WritingStep(limit: 2 * Self.mebibyte)
    let held = FakeSource([url: [script(bytes).holding(after: 4 * Self.mebibyte)]])
    let downloader = try await downloader(held, step)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await held.held(atLeast: 1)
    let follower = try await step.follower()
    while !follower.isDiscarded { await Task.yield() }
    #expect(written.isEmpty, "while the transfer runs")
    held.release()
    #expect(storage.bytes(of: try await download.value) == inverted)
    #expect(step.calls == [false])
    #expect(step.followers.count == 1)
    await downloader.shutdown()
  }

  @Test func aTransferOnAFullDiskGoesOnWithoutItsFollower() async throws {
    let step = WritingStep()
    let source = FakeSource([url: [script(bytes)]])
    storage.fail(.write, at: 40, with: DownloadError(.noSpace, "the disk is full"))
    let downloader = try await downloader(source, step)
    #expect(storage.bytes(of: try await downloader.add(DownloadRequest(url, id: "a")).value) == inverted)
    #expect(source.requests.map { $0.range != nil } == [false, true])
    #expect(step.calls == [false])
    #expect(step.followers.count == 1, "the transfer has the space")
    await downloader.shutdown()
    #expect(written.isEmpty)
  }

  @Test func aDiskThatStaysFullFailsTheTransfer() async throws {
    storage.fail(.write, at: 40, times: .max, with: DownloadError(.noSpace, "the disk is full"))
    let source = FakeSource([url: [script(bytes)]])
    let downloader = try await downloader(source, WritingStep())
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    let error = await #expect(throws: DownloadError.self) { try await download.value }
    #expect(error?.code == .noSpace)
    #expect(source.requests.count == 2)
    #expect(written.isEmpty)
    await downloader.shutdown()
  }

  /// A gate that leaves some room on a disk.
  private struct RoomGate: Gate {
    /// The room at each question; the last one stays.
    let room: Watched<[Int64]>
    init(_ room: Int64...) { self.room = Watched(room) }
    func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws { publish(.open) }
    func room(for candidate: Candidate) async throws -> Int64? {
      room.update { $0.count > 1 ? $0.removeFirst() : $0.first }
    }
  }

  @Test func aGateThatProtectsTheDiskEndsTheWriting() async throws {
    let step = WritingStep()
    let source = FakeSource([url: [script(bytes).holding(after: 3 * Self.mebibyte)]])
    // For the claim of the download, and when its follower begins.
    let gate = RoomGate(1 << 40, 1 << 40, 10 << 20)
    let downloader = try await downloader(source, gates: [gate], step)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let follower = try await step.follower()
    while !follower.isDiscarded { await Task.yield() }
    #expect(written.isEmpty, "while the transfer runs")
    source.release()
    #expect(storage.bytes(of: try await download.value) == inverted)
    #expect(step.calls == [false])
    await downloader.shutdown()
    #expect(written.isEmpty)
  }

  @Test func aDiskWithLittleRoomIsNotWrittenTo() async throws {
    let step = WritingStep()
    let gate = RoomGate(50 << 20)
    let downloader = try await downloader(FakeSource([url: [script(bytes)]]), gates: [gate], step)
    #expect(storage.bytes(of: try await downloader.add(DownloadRequest(url, id: "a")).value) == inverted)
    #expect(step.contexts.isEmpty)
    await downloader.shutdown()
  }
}
