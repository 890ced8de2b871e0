@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// A disk that does not answer holds up its own download only.
@Suite(.endsHangs)
struct HangingDiskTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 10_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// What is done with a download whose disk does not answer.
  enum Command: CaseIterable {
    case remove, removeAll, discard, rename, cancel, cancelAll

    var operation: FakeStorage.Operation {
      switch self {
      case .remove, .removeAll, .discard: .remove
      case .rename: .publish
      case .cancel, .cancelAll: .removePartial
      }
    }

    func callAsFunction(_ downloader: Downloader) async throws -> Bool {
      switch self {
      case .remove: try await downloader.remove("hung", deletingFile: true)
      case .removeAll: try await downloader.removeAll(.tag("hung"), deletingFiles: true) == 1
      case .discard: try await downloader.discard("hung")
      case .rename: try await downloader.rename("hung", to: "renamed").name == "renamed"
      case .cancel: try await downloader.cancel("hung")
      case .cancelAll: try await downloader.cancelAll(.tag("hung")) == 1
      }
    }
  }

  /// Does not answer for one download, while it hangs.
  private final class HangingStorage: StorageWrapper {
    let base: any Storage
    let operation: FakeStorage.Operation
    let state = Watched((isHanging: false, waiting: 0))

    init(_ base: any Storage, _ operation: FakeStorage.Operation) { (self.base, self.operation) = (base, operation) }

    private func wait(for operation: FakeStorage.Operation, _ isIts: Bool) async {
      guard operation == self.operation, isIts, state.value.isHanging else { return }
      state.update { $0.waiting += 1 }
      await state.wait { !$0.isHanging }
    }

    func removePartial(_ key: PartialKey) async throws {
      await wait(for: .removePartial, key.id == "hung")
      try await base.removePartial(key)
    }

    func publish(
      _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
      in context: ProcessingContext
    ) async throws -> Artifact {
      await wait(for: .publish, destination.name == "renamed")
      return try await base.publish(artifact, of: partial, at: destination, in: context)
    }

    func remove(_ artifact: Artifact) async throws {
      await wait(for: .remove, artifact.name == "hung.bin")
      try await base.remove(artifact)
    }
  }

  private func downloader(
    _ storage: any Storage, _ gate: FakeGate = FakeGate(), startsSuspended: Bool = false
  ) async throws -> Downloader {
    var options = options
    options.startsSuspended = startsSuspended
    return try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      gate
      storage
      AnyLedger(ledger)
      FakeAdmissionPolicy(maximumConcurrent: 2)
    }
  }

  private func request(_ id: DownloadID) -> DownloadRequest {
    DownloadRequest(url, id: id, tags: ["\(id)"], destination: .init(name: "\(id).bin"))
  }

  /// A downloader whose disk does not answer to a command.
  private func hang(_ command: Command, _ hanging: HangingStorage, _ gate: FakeGate) async throws -> (
    downloader: Downloader, command: Task<Bool, any Error>
  ) {
    let downloader = try await downloader(hanging, gate)
    let download = try await downloader.add(request("hung"))
    switch command {
    case .cancel, .cancelAll: try await download.pause()
    default: _ = try await download.value
    }
    hanging.state.update { $0.isHanging = true }
    let task = Task { try await command(downloader) }
    await hanging.state.wait { $0.waiting == 1 }
    return (downloader, task)
  }

  @Test("everything else goes on, and so does what waits for the disk when it answers", arguments: Command.allCases)
  func nothingElseWaits(_ command: Command) async throws {
    let (hanging, gate) = (HangingStorage(storage, command.operation), FakeGate())
    let (downloader, task) = try await hang(command, hanging, gate)
    // It may be added again; its run waits.
    let late = Task { try await downloader.add(request("hung")) }
    try await settle(downloader)
    // Additions, leases, outcomes, and commands for one and for all.
    let other = try await downloader.add(request("other"))
    #expect(try await other.value.name == "other.bin")
    #expect(try await downloader.remove("other", deletingFile: true))
    await downloader.setSuspended(true)
    let third = try await downloader.add(request("third"))
    let waiting = [.remove, .removeAll].contains(command) ? 2 : 1
    #expect(try await downloader.pauseAll() == waiting)
    #expect(try await downloader.resumeAll() == waiting)
    // A gate.
    gate.publish(.closed("no network"))
    await downloader.setSuspended(false)
    #expect(try await third.status.state == .waiting(.gate(id: gate.id, text: "no network")))
    gate.open()
    _ = try await third.value
    hanging.state.update { $0.isHanging = false }
    #expect(try await task.value)
    _ = try await late.value
    try await downloader.waitUntilIdle()
    let names = storage.published.keys.sorted()
    switch command {
    // Added again.
    case .remove, .removeAll: #expect(names == ["hung.bin", "third.bin"])
    case .discard, .cancel, .cancelAll: #expect(names == ["third.bin"])
    case .rename: #expect(names == ["renamed", "third.bin"])
    }
    #expect(await downloader.bookkeeping["errands"] == 0)
    #expect(await downloader.shutdown(waitingAtMost: nil).isComplete)
  }

  @Test("the shutdown names the storage; the next start does what was left", arguments: Command.allCases)
  func shutdown(_ command: Command) async throws {
    let hanging = HangingStorage(storage, command.operation)
    let (downloader, task) = try await hang(command, hanging, FakeGate())
    async let report = downloader.shutdown(waitingAtMost: .seconds(7))
    await time.sleeper(dueIn: .seconds(7))
    time.advance(by: .seconds(7))
    #expect(await report.unended == [.init(stage: storage.name, download: nil)])
    await #expect { try await task.value } throws: { ($0 as? DownloadError)?.code == .shutDown }
    // The disk never answers to the first one.
    let next = try await self.downloader(storage)
    try await settle(next)
    while await next.bookkeeping["errands"] != 0 { await Task.yield() }
    let names = storage.published.keys.sorted()
    switch command {
    case .remove, .removeAll: #expect(names.isEmpty)
    // The record says that the file was deleted: what a disk has not done of it is lost.
    case .discard: #expect(names == ["hung.bin"])
    case .cancel, .cancelAll: #expect(names.isEmpty)
    case .rename: #expect(names == ["renamed"])
    }
    await next.shutdown()
    hanging.state.update { $0.isHanging = false }
  }

  @Test("a removal of all that is called during a rename comes after it, and deletes the renamed file")
  func removalDuringARename() async throws {
    let hanging = HangingStorage(storage, .publish)
    let (downloader, task) = try await hang(.rename, hanging, FakeGate())
    _ = try await downloader.add(request("other")).value
    let removal = Task { try await downloader.removeAll(deletingFiles: true) }
    try await settle(downloader)
    #expect(try await downloader.counts() == [.finished: 1], "only the other one is removed")
    hanging.state.update { $0.isHanging = false }
    #expect(try await task.value)
    #expect(try await removal.value == 2)
    #expect(storage.published.isEmpty)
    await downloader.shutdown()
  }

  @Test("a download that is fetched again during a rename has the renamed file before")
  func refreshDuringARename() async throws {
    let hanging = HangingStorage(storage, .publish)
    let (downloader, task) = try await hang(.rename, hanging, FakeGate())
    #expect(try await downloader.restartAll(.tag("hung")) == 1)
    try await settle(downloader)
    hanging.state.update { $0.isHanging = false }
    _ = try? await task.value
    try await downloader.waitUntilIdle()
    #expect(storage.published.count == 1, "the file is replaced, and not fetched beside the renamed one")
    let name = try #require(try await downloader.status(of: "hung")?.name)
    #expect(storage.published.keys.sorted() == [name])
    await downloader.shutdown()
  }

  @Test("what a disk refuses to delete is deleted by the next start")
  func refusedDeletion() async throws {
    let first = try await downloader(storage)
    _ = try await first.add(request("a")).value
    storage.fail(.remove, with: DownloadError(.permission, "read-only"))
    await #expect { try await first.remove("a", deletingFile: true) } throws: {
      ($0 as? DownloadError)?.code == .permission
    }
    #expect(try await first.counts().isEmpty)
    await first.shutdown()
    #expect(storage.published.keys.sorted() == ["a.bin"])
    let second = try await downloader(storage)
    try await settle(second)
    while await second.bookkeeping["errands"] != 0 { await Task.yield() }
    #expect(storage.published.isEmpty)
    await second.shutdown()
  }

  @Test("a downloader that only lists deletes nothing")
  func suspendedStart() async throws {
    let first = try await downloader(storage)
    _ = try await first.add(request("a")).value
    storage.fail(.remove, with: DownloadError(.permission, "read-only"))
    _ = try? await first.remove("a", deletingFile: true)
    await first.shutdown()
    let second = try await downloader(storage, startsSuspended: true)
    try await settle(second)
    #expect(storage.published.keys.sorted() == ["a.bin"])
    await second.setSuspended(false)
    while await second.bookkeeping["errands"] != 0 { await Task.yield() }
    #expect(storage.published.isEmpty)
    await second.shutdown()
  }

  @Test("a run that waits for a disk is paused at once")
  func pausedWhileItWaits() async throws {
    let hanging = HangingStorage(storage, .remove)
    let (downloader, task) = try await hang(.remove, hanging, FakeGate())
    let download = try await downloader.add(request("hung"))
    try await settle(downloader)
    #expect(try await download.pause())
    #expect(try await download.status.state == .paused)
    hanging.state.update { $0.isHanging = false }
    #expect(try await task.value)
    #expect(storage.published.isEmpty)
    #expect(try await download.resume())
    #expect(try await download.value.name == "hung.bin")
    await downloader.shutdown()
  }

  @Test("a file that another download has by now is not deleted by a late deletion")
  func claimedFile() async throws {
    let hanging = HangingStorage(storage, .remove)
    let (downloader, task) = try await hang(.remove, hanging, FakeGate())
    async let report = downloader.shutdown(waitingAtMost: .seconds(7))
    await time.sleeper(dueIn: .seconds(7))
    time.advance(by: .seconds(7))
    _ = await report
    _ = try? await task.value
    // The next program keeps the file for a download of its own.
    let store = try await ledger.open()
    var request = request("other")
    request.destination = .init(name: "hung.bin")
    var record = DownloadRecord(request: request, generation: 50, arrival: 9, rank: Rank(), createdAt: time.date)
    record.phase = .finished
    record.steps.artifact = StoredArtifact(
      kind: .file, path: "hung.bin", name: "hung.bin", size: 10_000, mediaType: nil)
    #expect(try await store.restore([record], at: time.date) == [true])
    try await store.close()
    let next = try await self.downloader(storage)
    try await settle(next)
    while await next.bookkeeping["errands"] != 0 { await Task.yield() }
    #expect(storage.published.keys.sorted() == ["hung.bin"])
    await next.shutdown()
    hanging.state.update { $0.isHanging = false }
  }

  @Test("orphans that are named twice are removed once")
  func orphansNamedTwice() async throws {
    let downloader = try await downloader(storage)
    let key = PartialKey(id: "gone", generation: 7)
    let partial = try await storage.openPartial(key, isNew: false)
    try partial.write(bytes.span.bytes, at: 0)
    try partial.close()
    let orphan = StoredPartial(key: key, size: 10_000, isInUse: false)
    #expect(try await downloader.removeOrphans([orphan, orphan]) >= 1)
    #expect(storage.partials.isEmpty)
    await downloader.shutdown()
  }

  @Test("a caller that is cancelled does not wait for the disk; what it has begun is completed")
  func cancelledCaller() async throws {
    let hanging = HangingStorage(storage, .remove)
    let (downloader, task) = try await hang(.remove, hanging, FakeGate())
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    hanging.state.update { $0.isHanging = false }
    while await downloader.bookkeeping["errands"] != 0 { await Task.yield() }
    #expect(storage.published.isEmpty)
    await downloader.shutdown()
  }

  @Test(
    "a file that another download has found meanwhile at the place of a removed one stays; removed with it, it goes")
  func foundMeanwhile() async throws {
    let storage = FakeStorage(onConflict: .reuse)
    let hanging = HangingStorage(storage, .remove)
    let downloader = try await downloader(hanging)
    for id in ["hung", "found", "gone"] as [DownloadID] { _ = try await downloader.add(request(id)).value }
    hanging.state.update { $0.isHanging = true }
    let removal = Task { try await downloader.removeAll(deletingFiles: true) }
    await hanging.state.wait { $0.waiting == 1 }
    for name in ["found", "gone"] {
      let again = try await downloader.add(
        DownloadRequest(url, id: "\(name) again", destination: .init(name: "\(name).bin")))
      #expect(try await again.value.name == "\(name).bin")
    }
    let second = Task { try await downloader.remove("gone again", deletingFile: true) }
    while try await downloader.status(of: "gone again") != nil { await Task.yield() }
    hanging.state.update { $0.isHanging = false }
    #expect(try await removal.value == 3)
    #expect(try await second.value)
    #expect(storage.published.keys.sorted() == ["found.bin"])
    await downloader.shutdown()
  }

  @Test("a file that another user of the ledger has found for an id that was removed and added again stays")
  func foundByAnother() async throws {
    let storage = FakeStorage(onConflict: .reuse)
    let hanging = HangingStorage(storage, .remove)
    let first = try await downloader(hanging)
    for id in ["hung", "found"] as [DownloadID] { _ = try await first.add(request(id)).value }
    hanging.state.update { $0.isHanging = true }
    let removal = Task { try await first.removeAll(deletingFiles: true) }
    await hanging.state.wait { $0.waiting == 1 }
    await first.setSuspended(true)
    let second = try await downloader(storage)
    _ = try await second.add(request("found")).value
    hanging.state.update { $0.isHanging = false }
    #expect(try await removal.value == 2)
    #expect(storage.published.keys.sorted() == ["found.bin"])
    await first.shutdown()
    await second.shutdown()
  }
}
