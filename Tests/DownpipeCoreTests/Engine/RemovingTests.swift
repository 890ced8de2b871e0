import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Removing downloads whose ids are added again meanwhile.
@Suite(.endsHangs)
struct RemovingTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test("A download that is added again while the old files are deleted keeps its file", arguments: [true, false])
  func addedAgainMeanwhile(isForAll: Bool) async throws {
    let probe = ProbeStorage(storage)
    let observer = RecordingObserver()
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      AnyStorage(probe)
      ledger
      observer
    }
    var some = requests(2)
    for index in some.indices { some[index].destination.name = some[index].id.rawValue }
    let old = try await downloader.add(contentsOf: some)
    try await downloader.waitUntilIdle()
    var oldEvents = old[0].events.makeAsyncIterator()
    _ = await oldEvents.next(isolation: #isolation)
    probe.hold(.removePartial)
    let command = Task {
      if isForAll { return try await downloader.removeAll(deletingFiles: true) == 2 }
      return try await downloader.remove("d0", deletingFile: true)
    }
    await probe.held(.removePartial)
    let adding = Task { [some] in try await downloader.add(some[0]) }
    // One that is removed by itself is added when that is done; of many, its run waits for that.
    try await settle(downloader)
    probe.release()
    #expect(try await command.value)
    let again = try await adding.value
    _ = try await again.value
    #expect(Set(storage.published.keys) == (isForAll ? ["d0"] : ["d0", "d1"]))
    #expect(try await again.status.state.phase == .finished)
    await downloader.shutdown()
    let kinds = observer.events(of: "d0")
    let removed = try #require(kinds.lastIndex(of: .removed))
    let finished = try #require(kinds.lastIndex { if case .state(.finished) = $0 { true } else { false } })
    #expect(removed < finished, "the new download was not removed")
  }

  /// A server that does not answer at first.
  private struct SilentSource: Source, SourceSession {
    let base: FakeSource
    let asked = Watched(0)
    let answers = Watched(true)

    func accepts(_ url: URL) -> Bool { true }
    func open(_ request: SourceRequest) async throws -> SourceReply {
      asked.update { $0 += 1 }
      await answers.wait { $0 }
      try Task.checkCancellation()
      return try await base.open(request)
    }
  }

  /// A storage that finds each file in its place already.
  private struct ReusingStorage: StorageWrapper {
    let base: any Storage

    func publish(
      _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
      in context: ProcessingContext
    ) async throws -> Artifact {
      var artifact = try await base.publish(artifact, of: partial, at: destination, in: context)
      artifact.isReused = true
      return artifact
    }
  }

  @Test(
    "A file that was there before the download stays, also if it is removed while the server is asked about it",
    arguments: [true, false])
  func reusedFileStays(isForAll: Bool) async throws {
    let source = SilentSource(base: FakeSource(everyURL: .init(bytes)))
    let downloader = try await Downloader(options: options) {
      source
      ReusingStorage(base: storage)
      ledger
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(artifact.isReused)
    let asked = source.asked.value
    source.answers.update { $0 = false }
    #expect(try await downloader.refresh("a"))
    await source.asked.wait { $0 > asked }
    if isForAll {
      #expect(try await downloader.removeAll(deletingFiles: true) == 1)
    } else {
      #expect(try await downloader.remove("a", deletingFile: true))
    }
    #expect(Set(storage.published.keys) == ["file.bin"])
    await downloader.shutdown()
  }

  // MARK: Many

  @Test("Commands for very many tell each individual watcher", arguments: ["pause", "update", "cancel"])
  func individualWatchersOfMany(command: String) async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)))
    await downloader.setSuspended(true)
    let downloads = try await downloader.add(contentsOf: requests(20_000))
    // A result has 10,000 ids: of twenty downloads, some are probably not among them.
    var watched = stride(from: 0, to: 20_000, by: 1_000).map { downloads[$0].events.makeAsyncIterator() }
    for index in watched.indices { _ = await watched[index].next(isolation: #isolation) }
    let count =
      switch command {
      case "pause": try await downloader.pauseAll()
      case "cancel": try await downloader.cancelAll()
      default: try await downloader.updateAll { $0.priority = .high }
      }
    #expect(count == 20_000)
    await downloader.shutdown()
    for index in watched.indices {
      let event = await watched[index].next(isolation: #isolation)
      switch command {
      case "pause": #expect(event?.kind == .state(.paused))
      case "cancel": #expect(event?.kind == .state(.cancelled))
      default: #expect(event?.request.priority == .high)
      }
      #expect(await watched[index].next(isolation: #isolation) == nil, "a watcher is told once")
    }
  }

  @Test("Each partial of very many cancelled downloads is removed, although others are restarted meanwhile")
  func partialsOfManyCancelledDownloads() async throws {
    let sweep = SweptStorage(storage)
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      AnyStorage(sweep)
      ledger
    }
    await downloader.setSuspended(true)
    var some = requests(20_000)
    for index in 0..<1_000 { some[index].tags = ["early"] }
    try await downloader.add(contentsOf: some)
    // The first 10,000 are those of the result; the next ones are read from the ledger.
    let restart = Watched<Task<Int, any Error>?>(nil)
    sweep.afterRemoval(10_500) {
      restart.update { $0 = Task { try await downloader.restartAll(.tag("early")) } }
      try? await settle(downloader)
    }
    #expect(try await downloader.cancelAll() == 20_000)
    #expect(try await restart.value?.value == 1_000)
    let removed = Set(storage.calls.compactMap { $0.operation == .removePartial ? $0.key?.id : nil })
    #expect(some.count { !removed.contains($0.id) && $0.tags.isEmpty } == 0)
    await downloader.shutdown()
  }
}

/// A storage that does something after a number of removals of partials.
private final class SweptStorage: StorageWrapper {
  private struct State: Sendable {
    var removals = 0
    var number: Int?
    var action: (@Sendable () async -> Void)?
  }

  let base: any Storage
  private let state = Watched(State())

  init(_ base: FakeStorage) { self.base = base }

  func afterRemoval(_ number: Int, _ action: @escaping @Sendable () async -> Void) {
    state.update { ($0.number, $0.action) = (number, action) }
  }

  func removePartial(_ key: PartialKey) async throws {
    try await base.removePartial(key)
    let action = state.update { state -> (@Sendable () async -> Void)? in
      state.removals += 1
      return state.removals == state.number ? state.action : nil
    }
    await action?()
  }
}
