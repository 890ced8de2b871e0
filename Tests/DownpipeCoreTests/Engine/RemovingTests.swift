import DownpipeCore
import DownpipeTesting
import Foundation
import Testing

/// Removing downloads whose ids are added again meanwhile.
@Suite(.timeLimit(.minutes(1)))
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
    let again = try await downloader.add(some[0])
    _ = try await again.value
    probe.release()
    #expect(try await command.value)
    #expect(Set(storage.published.keys) == (isForAll ? ["d0"] : ["d0", "d1"]))
    #expect(try await again.status.state.phase == .finished)
    await downloader.shutdown()
    let kinds = observer.events(of: "d0")
    let removed = try #require(kinds.lastIndex(of: .removed))
    let finished = try #require(kinds.lastIndex { if case .state(.finished) = $0 { true } else { false } })
    #expect(removed < finished, "the new download was not removed")
  }
}
