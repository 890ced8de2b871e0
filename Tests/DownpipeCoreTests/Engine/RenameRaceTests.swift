@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// Downloads that are added while their files are renamed.
@Suite(.endsHangs)
struct RenameRaceTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// A rename that waits for the ledger, which does not know yet that the file has moved, and an addition of the same
  /// download that began before it.
  private struct Race {
    let downloader: Downloader
    let source: FakeSource
    let adding: FaultyLedger
    let moving: FaultyLedger
    let addition: Task<[Download], any Error>
    let rename: Task<DownloadStatus, any Error>

    /// Lets the addition go on as far as it can, and then the rename.
    func end() async throws {
      adding.release()
      for _ in 0..<50 {
        _ = try await downloader.status(of: "no such download")
        await Task.yield()
      }
      moving.release()
      #expect(try await rename.value.name == "new")
      _ = try await addition.value
      try await downloader.waitUntilIdle()
    }
  }

  /// - Parameter held: The answer of the ledger that reaches the addition after the file has moved.
  private func race(_ requests: [DownloadRequest], holding held: FaultyLedger.Operation) async throws -> Race {
    let moving = FaultyLedger(ledger)
    let adding = FaultyLedger(moving)
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(source, ledger: adding)
    _ = try await downloader.add(requests[0]).value
    adding.hold(held, at: adding.calls.count { $0 == held } + 1, .after)
    let addition = Task { try await downloader.add(contentsOf: requests) }
    await adding.held(atLeast: 1)
    // Two updates note what is about to be moved, and the third one that it has been moved.
    moving.hold(.update, at: moving.calls.count { $0 == .update } + 3)
    let rename = Task { try await downloader.rename("a", to: "new") }
    await moving.held(atLeast: 1)
    #expect(storage.published.keys.sorted() == ["new"])
    return Race(
      downloader: downloader, source: source, adding: adding, moving: moving, addition: addition, rename: rename)
  }

  @Test("Another file that is asked for during a rename takes the place of the renamed one", arguments: 1...3)
  func anotherFile(update: Int) async throws {
    let other = try #require(URL(string: "https://example.org/other.bin"))
    let otherBytes = DownloadFixtures.pattern(size: 50_000)
    let source = FakeSource([url: [.init(bytes)], other: [.init(otherBytes)]])
    let faulty = FaultyLedger(ledger)
    let downloader = try await downloader(source, ledger: faulty)
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    // Two updates note what is about to be moved, and the third one that it has been moved.
    faulty.hold(.update, at: faulty.calls.count { $0 == .update } + update)
    let rename = Task { try await downloader.rename("a", to: "new") }
    await faulty.held(atLeast: 1)
    let addition = Task { try await downloader.add(DownloadRequest(other, id: "a")) }
    try await settle(downloader)
    faulty.release()
    _ = try await (rename.value, addition.value)
    try await downloader.waitUntilIdle()
    #expect(storage.published == ["new": otherBytes])
    #expect(try await downloader.status(of: "a")?.name == "new")
    await downloader.shutdown()
  }

  /// A storage that can be held before it looks for a file.
  private final class HeldLook: StorageWrapper {
    enum Looking { case usual, nextIsHeld, held, released }
    let base: any Storage
    let looking = Watched(Looking.usual)
    init(_ base: any Storage) { self.base = base }

    func contains(_ artifact: Artifact) async -> Bool {
      let isHeld = looking.update { state in
        guard state == .nextIsHeld else { return false }
        state = .held
        return true
      }
      if isHeld { await looking.wait { $0 == .released } }
      return await base.contains(artifact)
    }
  }

  @Test("A file that is being renamed is not downloaded again")
  func addedAgain() async throws {
    let (moving, held) = (FaultyLedger(ledger), HeldLook(storage))
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await Downloader(options: options) {
      source
      held
      moving
    }
    _ = try await downloader.add(DownloadRequest(url, id: "a")).value
    held.looking.update { $0 = .nextIsHeld }
    let addition = Task { [url] in try await downloader.add(DownloadRequest(url, id: "a")) }
    await held.looking.wait { $0 == .held }
    // Two updates note what is about to be moved, and the third one that it has been moved.
    moving.hold(.update, at: moving.calls.count { $0 == .update } + 3)
    let rename = Task { try await downloader.rename("a", to: "new") }
    await moving.held(atLeast: 1)
    #expect(storage.published.keys.sorted() == ["new"])
    held.looking.update { $0 = .released }
    try await settle(downloader)
    moving.release()
    #expect(try await rename.value.name == "new")
    #expect(try await !addition.value.isNew)
    try await downloader.waitUntilIdle()
    let status = try await downloader.status(of: "a")
    #expect(status?.name == "new" && status?.state.phase == .finished)
    #expect(source.requests.count == 1)
    #expect(storage.published == ["new": bytes])
    await downloader.shutdown()
  }

  /// The file of a download that is added together with one that waits for it is looked at before the addition.
  @Test("The file of a dependency that is being renamed is not downloaded again")
  func dependency() async throws {
    let second = DownloadRequest(url.appending(path: "b"), id: "b").with(\.after, ["a"])
    let race = try await race([DownloadRequest(url, id: "a"), second], holding: .records)
    try await race.end()
    #expect(try await race.addition.value.map(\.isNew) == [false, true])
    #expect(race.source.requests.count == 2)
    #expect(storage.published.keys.sorted() == ["b", "new"])
    #expect(try await race.downloader.status(of: "a")?.name == "new")
    await race.downloader.shutdown()
  }

  @Test("A file that is missing is downloaded again, also when a rename has failed for that reason")
  func missing() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(source)
    let first = try await downloader.add(DownloadRequest(url, id: "a"))
    try await storage.remove(try await first.value)
    await #expect(throws: DownloadError.self) { try await downloader.rename("a", to: "new") }
    let again = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(again.isNew)
    #expect(storage.bytes(of: try await again.value) == bytes)
    #expect(try await downloader.rename("a", to: "new").name == "new")
    await downloader.shutdown()
  }
}
