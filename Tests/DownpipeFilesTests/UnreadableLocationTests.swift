import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore
@testable import DownpipeFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Stores whose folder can be neither read nor made, such as on a disk that is not mounted: the downloads of other
/// folders in the same ledger are not theirs.
@Suite(.endsHangs)
struct UnreadableLocationTests {
  private let bytes = DownloadFixtures.pattern(size: 5_000)
  private let time = VirtualTime()
  private let ledger = MemoryLedger()

  /// - Parameter source: A source with which the downloader starts downloads; `nil` for one that is suspended.
  private func downloader(_ root: String, _ source: FakeSource? = nil) async throws -> Downloader {
    var options = DownloaderOptions(time: time, random: { 0.5 })
    options.minimumSpeed = nil
    options.startsSuspended = source == nil
    return try await Downloader(options: options) {
      source ?? FakeSource(everyURL: .init(bytes))
      FakeRetryPolicy(.giveUp)
      FileStore(root)
      ledger
    }
  }

  private func request(_ id: DownloadID, _ priority: Priority = .normal) throws -> DownloadRequest {
    try DownloadRequest("https://example.org/file.bin", id: id, priority: priority)
  }

  private func isRefused(_ error: any Error) -> Bool { (error as? DownloadError)?.code == .permission }

  /// Runs work while the clock advances from one due time to the next.
  private func advancing<Value: Sendable>(_ work: @Sendable () async throws -> Value) async throws -> Value {
    let clock = Task {
      while !Task.isCancelled {
        await time.advanceToNextSleeper()
        await Task.yield()
      }
    }
    defer { clock.cancel() }
    return try await work()
  }

  // MARK: Two folders in one ledger

  @Test func downloadsOfOtherFoldersAreNotStarted() async throws {
    let folder = try TemporaryFolder()
    try folder.write([], to: "file")
    let other = try await downloader(folder.path("other"))
    try await other.add(request("theirs"))

    let source = FakeSource(everyURL: .init(bytes))
    let unmounted = try await downloader(folder.path("file/root"), source)
    await #expect {
      try await advancing { try await unmounted.waitUntilIdle() }
    } throws: {
      isRefused($0)
    }
    #expect(source.requests.isEmpty)
    #expect(try await other.status(of: "theirs")?.state.phase == .waiting)
    // Looking up is possible: the user sees what waits for the disk.
    #expect(try await unmounted.status(of: "theirs")?.state.phase == .waiting)
    #expect(try await unmounted.statuses().map(\.id) == ["theirs"])
    await unmounted.shutdown()

    await other.setSuspended(false)
    try await advancing { try await other.waitUntilIdle() }
    let isThere = (try? folder.read("other/file.bin")) == bytes
    #expect(isThere)
    await other.shutdown()
  }

  @Test("each of two folders shows and counts its own downloads")
  func twoFolders() async throws {
    let folder = try TemporaryFolder()
    let one = try await downloader(folder.path("one"), FakeSource(everyURL: .init(bytes)))
    _ = try await one.add(request("mine")).value
    let two = try await downloader(folder.path("two"))
    #expect(try await two.statuses().isEmpty)
    #expect(try await two.counts().isEmpty)
    #expect(try await two.totals() == DownloadTotals())
    #expect(try await two.download("mine") == nil)
    try await two.add(request("theirs"))
    for (downloader, id, phase) in [(one, "mine", .finished), (two, "theirs", .waiting)]
      as [(Downloader, DownloadID, DownloadState.Phase)]
    {
      #expect(try await downloader.statuses().map(\.id) == [id])
      #expect(try await downloader.counts() == [phase: 1])
      #expect(try await downloader.totals().counts == [phase: 1])
    }
    let elsewhere = try FileStore(folder.path("one")).location
    #expect(try await two.counts(DownloadFilter(location: elsewhere)) == [.finished: 1])
    await one.shutdown()
    await two.shutdown()
  }

  @Test func aRenameThatWasInterruptedDoesNotHideTheError() async throws {
    let folder = try TemporaryFolder()
    try folder.write([], to: "file")
    let other = try await downloader(folder.path("other"), FakeSource(everyURL: .init(bytes)))
    _ = try await other.add(request("renamed")).value
    await other.setSuspended(true)
    try await other.add(request("theirs"))
    let store = try await ledger.open()
    _ = try await store.update("renamed", at: time.date) { $0.steps.note = RenameNote(name: "later.bin").stored }
    #expect(try await store.unsettledMoves().map(\.id) == ["renamed"])

    let unmounted = try await downloader(folder.path("file/root"), FakeSource(everyURL: .init(bytes)))
    await #expect {
      try await advancing { try await unmounted.waitUntilIdle() }
    } throws: {
      isRefused($0)
    }
    await unmounted.shutdown()
    await other.shutdown()
    try await store.close()
  }

  @Test(
    "What is added fails with the error of the folder, and belongs to no other folder",
    arguments: ["new", "theirs"] as [DownloadID])
  func additions(id: DownloadID) async throws {
    let folder = try TemporaryFolder()
    try folder.write([], to: "file")
    let other = try await downloader(folder.path("other"))
    try await other.add(request("theirs"))
    let unmounted = try await downloader(folder.path("file/root"))
    let wanted = try request(id, .high)
    await #expect { try await unmounted.add(wanted) } throws: { isRefused($0) }
    #expect(try await other.counts() == [.waiting: 1])
    #expect(try await other.status(of: "theirs")?.request.priority == .normal)
    await unmounted.shutdown()
    await other.shutdown()
  }

  enum Command: CaseIterable { case removeAll, remove, updateAll, start }

  @Test("Commands fail, and leave the downloads of other folders as they are", arguments: Command.allCases)
  func commands(_ command: Command) async throws {
    let folder = try TemporaryFolder()
    try folder.write([], to: "file")
    let other = try await downloader(folder.path("other"))
    try await other.add(request("theirs"))
    let unmounted = try await downloader(folder.path("file/root"))
    await #expect {
      switch command {
      case .removeAll: _ = try await unmounted.removeAll()
      case .remove: _ = try await unmounted.remove("theirs")
      case .updateAll: _ = try await unmounted.updateAll { $0.priority = .high }
      case .start: _ = try await unmounted.start("theirs")
      }
    } throws: {
      isRefused($0)
    }
    let status = try await other.status(of: "theirs")
    #expect(status?.state.phase == .waiting && status?.request.priority == .normal)
    await unmounted.shutdown()
    await other.shutdown()
  }

  @Test("A disk that is mounted later: its downloads start without a command")
  func mountedLater() async throws {
    let folder = try TemporaryFolder()
    let before = try await downloader(folder.path("disk/root"))
    try await before.add(request("a"))
    await before.shutdown()
    try FileManager.default.moveItem(atPath: folder.path("disk"), toPath: folder.path("removed"))
    try folder.write([], to: "disk")

    let mounted = try await downloader(folder.path("disk/root"), FakeSource(everyURL: .init(bytes)))
    await #expect {
      try await advancing { try await mounted.waitUntilIdle() }
    } throws: {
      isRefused($0)
    }
    try FileManager.default.removeItem(atPath: folder.path("disk"))
    try FileManager.default.moveItem(atPath: folder.path("removed"), toPath: folder.path("disk"))
    _ = try await advancing { try await mounted.download("a")?.value }
    #expect(try await mounted.counts() == [.finished: 1])
    let isThere = (try? folder.read("disk/root/file.bin")) == bytes
    #expect(isThere)
    await mounted.shutdown()
  }

  // MARK: The name of a folder

  enum Obstacle: CaseIterable { case rootIsAFile, ownFolderIsAFile, nameIsAFolder }

  @Test(
    "A name that can be neither read nor made is an error: no name would stand for all folders",
    arguments: Obstacle.allCases)
  func names(_ obstacle: Obstacle) throws {
    let folder = try TemporaryFolder()
    switch obstacle {
    case .rootIsAFile: try folder.write([], to: "root")
    case .ownFolderIsAFile: try folder.write([], to: "root/.downpipe")
    case .nameIsAFolder: try folder.makeFolder("root/.downpipe/name")
    }
    let store = FileStore(folder.path("root"))
    #expect(throws: DownloadError.self) { _ = try store.location }
  }

  @Test("A folder on a file system without symbolic links, such as exFAT, has a name", arguments: [EPERM, EOPNOTSUPP])
  func withoutLinks(_ code: CInt) throws {
    let folder = try TemporaryFolder()
    let system = Calls.failing([.makeLink], with: code)
    let name = try #require(try FileStore(folder.path("root"), system: system).location)
    #expect(try FileStore(folder.path("root"), system: system).location == name, "the next opening")
    #expect(try FileStore(folder.path("other"), system: system).location != name)
  }
}
