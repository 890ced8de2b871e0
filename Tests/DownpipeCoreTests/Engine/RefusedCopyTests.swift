@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Files of runs whose outcome the ledger refuses, because another owner has taken over the download in the meantime.
@Suite(.endsHangs)
struct RefusedCopyTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 10_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage(location: "here")
  let ledger = MemoryLedger()

  /// A ledger in which something happens after a file is in its place, and before that is saved.
  ///
  /// From then on its owner gets no lease: the download in question is for the other owner.
  private struct TakenLedger: Ledger {
    private struct Store: LedgerStoreWrapper {
      let base: any LedgerStore
      let ledger: TakenLedger

      func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
        if record.phase == .finished || record.steps.artifact?.path == "placed.bin" {
          ledger.isTaking.update { $0 = true }
          try await ledger.take(base)
        }
        return try await base.save(record, fields, at: now)
      }

      func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
        ledger.isTaking.value ? [] : try await base.lease(request)
      }
    }

    let base: any Ledger
    /// Gets the store of the downloader.
    let take: @Sendable (any LedgerStore) async throws -> Void
    let isTaking = Watched(false)

    func open() async throws -> any LedgerStore { Store(base: try await base.open(), ledger: self) }
  }

  /// Puts the file into its final place, as steps do that move files.
  private struct Placing: UniversalPostProcessor {
    let storage: FakeStorage

    func outputFolders(in context: ProcessingContext) -> [String] { [storage.root] }

    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      try await storage.publish(artifact, of: nil, at: DownloadRequest.Destination(name: "placed.bin"), in: context)
    }
  }

  /// Gives the lease of the downloader's store to another one, as when it has expired.
  private func takeOver(from own: any LedgerStore, by other: any LedgerStore) async throws -> DownloadRecord {
    var lost = try #require(try await own.record("a"))
    lost.apply(.leaseLost)
    #expect(try await own.save(lost, .state, at: time.date))
    let lease = LeaseRequest(now: time.date, until: time.date.addingTimeInterval(60)) { _ in .take }
    return try #require(try await other.lease(lease).first)
  }

  private func finish(
    _ leased: DownloadRecord, by store: any LedgerStore, at path: String, in place: String? = nil
  ) async throws {
    var record = leased
    record.apply(.bytesComplete)
    record.apply(.stepsComplete)
    record.steps = StepLog(
      artifact: StoredArtifact(
        kind: .file, path: path, name: path, size: Int64(bytes.count), mediaType: nil, location: place))
    #expect(try await store.save(record, [.state, .steps], at: time.date))
  }

  /// Adds a download, and waits until the downloader has ended its run.
  private func run(
    isPlacedByAStep: Bool = false, _ take: @escaping @Sendable (any LedgerStore) async throws -> Void
  ) async throws -> Downloader {
    let isTaken = Watched(false)
    let taken = TakenLedger(base: ledger) { own in
      try await take(own)
      isTaken.update { $0 = true }
    }
    let (source, storage) = (FakeSource(everyURL: .init(bytes)), storage)
    let downloader = try await Downloader(options: options) {
      source
      FakeRetryPolicy(.giveUp)
      storage
      taken
      if isPlacedByAStep { Placing(storage: storage) }
    }
    try await downloader.add(DownloadRequest(url, id: "a"))
    await isTaken.wait { $0 }
    while await downloader.engine.state.slots.hasRuns { await Task.yield() }
    return downloader
  }

  @Test(
    "A run removes the file that it has published if another owner has finished with another one, and only then",
    arguments: [
      ("other.bin", nil, false), ("file.bin", "there", false), ("file.bin", nil, true), ("file.bin", "here", true),
      ("/shared/file.bin", "there", true),
    ] as [(String, String?, Bool)])
  func finishedElsewhere(path: String, place: String?, isKept: Bool) async throws {
    let other = try await ledger.open()
    let downloader = try await run { own in
      let leased = try await takeOver(from: own, by: other)
      try await finish(leased, by: other, at: path, in: place)
    }
    #expect(storage.published == (isKept ? ["file.bin": bytes] : [:]))
    #expect(try await other.record("a")?.steps.artifact?.path == path)
    await downloader.shutdown()
    try await other.close()
  }

  @Test(
    "The file stays while another owner holds the download, which may find it there, and is removed when that has finished",
    arguments: [true, false])
  func heldElsewhere(isShutDown: Bool) async throws {
    let other = try await ledger.open()
    let held = Watched<DownloadRecord?>(nil)
    let downloader = try await run { own in
      let leased = try await takeOver(from: own, by: other)
      held.update { $0 = leased }
    }
    #expect(storage.published == ["file.bin": bytes])
    try await finish(try #require(held.value), by: other, at: "other.bin")
    if isShutDown {
      await downloader.shutdown()
    } else {
      while !storage.published.isEmpty {
        await time.advanceToNextSleeper()
        await Task.yield()
      }
    }
    #expect(storage.published.isEmpty)
    await downloader.shutdown()
    try await other.close()
  }

  @Test("A file that a step has put in its place is removed like one that the storage has")
  func placed() async throws {
    let other = try await ledger.open()
    let held = Watched<DownloadRecord?>(nil)
    let downloader = try await run(isPlacedByAStep: true) { own in
      let leased = try await takeOver(from: own, by: other)
      held.update { $0 = leased }
    }
    #expect(storage.published == ["placed.bin": bytes])
    try await finish(try #require(held.value), by: other, at: "other.bin")
    await downloader.shutdown()
    #expect(storage.published.isEmpty)
    try await other.close()
  }

  @Test("The file of another owner that has the path by then stays")
  func replaced() async throws {
    let other = try await ledger.open()
    let theirs = DownloadFixtures.pattern(size: bytes.count, seed: 2)
    let downloader = try await run { own in
      let leased = try await takeOver(from: own, by: other)
      let context = ProcessingContext(request: leased.request, workspace: nil)
      _ = try await storage.publish(
        Artifact(location: .memory(theirs), name: "file.bin"), of: nil, at: DownloadRequest.Destination(), in: context)
      try await finish(leased, by: other, at: "other.bin")
    }
    #expect(storage.published == ["file.bin": theirs])
    await downloader.shutdown()
    try await other.close()
  }

  @Test("The file stays if another download has finished with it meanwhile")
  func claimedByAnother() async throws {
    let other = try await ledger.open()
    let downloader = try await run { own in
      let leased = try await takeOver(from: own, by: other)
      try await finish(leased, by: other, at: "other.bin")
      _ = try await other.add([LedgerAddition(request: DownloadRequest(url, id: "b"), arrival: 2)], at: time.date)
      let lease = LeaseRequest(now: time.date, until: time.date.addingTimeInterval(60)) { _ in .take }
      try await finish(try #require(try await other.lease(lease).first), by: other, at: "file.bin", in: "here")
    }
    await downloader.shutdown()
    #expect(storage.published == ["file.bin": bytes])
    try await other.close()
  }

  @Test("The file of a download that was removed stays: its outcome may have been saved before")
  func removed() async throws {
    let downloader = try await run { own in
      let removed = try await own.remove(.ids(["a"]))
      #expect(removed.count == 1)
    }
    await downloader.shutdown()
    #expect(storage.published == ["file.bin": bytes])
  }

  @Test("The file stays if only the answer of the ledger was lost")
  func lostAnswer() async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 1_000))
    let downloader = try await downloader(source, ledger: faulty)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    let next = faulty.calls.count { $0 == .exchange } + 1
    faulty.fail(.exchange, at: next, .after, with: DownloadError(.ledger, "the answer was lost"))
    source.release()
    try await advancing { try await downloader.waitUntilIdle() }
    await downloader.shutdown()
    #expect(storage.published == ["file.bin": bytes])
  }
}
