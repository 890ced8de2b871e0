@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// A list has what `statuses()` says, also when other users of the ledger have changed it.
@Suite(.endsHangs)
struct ListTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// A list that is kept as the documentation of `changes()` shows.
  private final class List: Sendable {
    let rows = Watched<[DownloadID: DownloadStatus]>([:])
    let snapshots = Watched(0)
    let reading: Task<Void, Never>

    init(_ downloader: Downloader, every interval: Duration = .zero) {
      let changes = downloader.changes(every: interval)
      reading = Task { [rows, snapshots] in
        for await batch in changes {
          rows.update { rows in
            if batch.isSnapshot { rows = [:] }
            for status in batch.statuses { rows[status.id] = status }
            for id in batch.removed { rows[id] = nil }
          }
          if batch.isSnapshot { snapshots.update { $0 += 1 } }
        }
      }
    }

    func wait(for phases: [DownloadID: DownloadState.Phase]) async {
      await rows.wait { $0.mapValues(\.state.phase) == phases }
    }
  }

  @Test("It begins with what is there, and follows runs, commands and removals")
  func everythingOfOneDownloader() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await Downloader(options: options) {
      source
      limit(1)
      storage
      ledger
    }
    try await downloader.add(contentsOf: requests(4))
    // The list has reasons as they were when it read them.
    await source.held(atLeast: 1)
    let list = List(downloader)
    await list.wait(for: ["d0": .transferring, "d1": .waiting, "d2": .waiting, "d3": .waiting])
    #expect(list.rows.value["d1"]?.state == .waiting(.limit(id: "FakeAdmissionPolicy", text: "1 of 1")))
    _ = try await downloader.pause("d1")
    _ = try await downloader.remove("d2")
    _ = try await downloader.cancel("d3")
    await list.wait(for: ["d0": .transferring, "d1": .paused, "d3": .cancelled])
    source.release()
    await list.wait(for: ["d0": .finished, "d1": .paused, "d3": .cancelled])
    _ = try await downloader.restartAll(.all)
    try await downloader.waitUntilIdle()
    await list.wait(for: ["d0": .finished, "d1": .finished, "d3": .finished])
    try await downloader.removeAll()
    await list.wait(for: [:])
    #expect(list.snapshots.value == 1, "everything else was told as changes")
    await downloader.shutdown()
    await list.reading.value
  }

  @Test("What another downloader does on the same ledger is in the list")
  func changesByOthers() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(FakeSource(), startsSuspended: true)
    let list = List(downloader)
    await list.snapshots.wait { $0 == 1 }
    let other = try await self.downloader(source)
    try await other.add(contentsOf: requests(3))
    try await advancing { await list.wait(for: ["d0": .waiting, "d1": .waiting, "d2": .waiting]) }
    await source.held(atLeast: 3)
    _ = try await other.pause("d0")
    _ = try await other.remove("d1")
    source.release()
    try await other.waitUntilIdle()
    try await advancing { await list.wait(for: ["d0": .paused, "d2": .finished]) }
    await other.shutdown()
    await downloader.shutdown()
    await list.reading.value
  }

  @Test("A command whose answer was lost is in the list, once it has taken effect")
  func lostAnswers() async throws {
    let faulty = FaultyLedger(ledger)
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), ledger: faulty, startsSuspended: true)
    try await downloader.add(contentsOf: requests(2))
    let list = List(downloader)
    await list.wait(for: ["d0": .waiting, "d1": .waiting])
    let failure = DownloadError(.ledger, "the ledger fails")
    // Each is made again under its number.
    faulty.fail(.transition, times: 2, .after, with: failure)
    faulty.fail(.remove, times: 2, .after, with: failure)
    await #expect { try await downloader.pauseAll() } throws: { code($0) == .ledger }
    await #expect { try await downloader.remove("d1") } throws: { code($0) == .ledger }
    try await advancing { await list.wait(for: ["d0": .paused]) }
    await downloader.shutdown()
    await list.reading.value
  }

  @Test("What cannot be read is told when the ledger answers again")
  func failingLedger() async throws {
    let faulty = FaultyLedger(ledger)
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), ledger: faulty, startsSuspended: true)
    try await downloader.add(contentsOf: requests(2))
    let list = List(downloader)
    await list.wait(for: ["d0": .waiting, "d1": .waiting])
    let failed = faulty.calls.count { $0 == .records }
    faulty.fail(.records, at: failed + 1, times: 3, with: DownloadError(.ledger, "away"))
    _ = try await downloader.pause("d0")
    try await advancing { await list.wait(for: ["d0": .paused, "d1": .waiting]) }
    #expect(faulty.calls.count { $0 == .records } > failed + 3)
    await downloader.shutdown()
    await list.reading.value
  }

  @Test("A list that is shown again is complete again")
  func aSecondList() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), startsSuspended: true)
    for round in 0..<3 {
      let list = List(downloader)
      await list.snapshots.wait { $0 == 1 }
      #expect(list.rows.value.count == round)
      try await downloader.add(DownloadRequest(url, id: DownloadID("\(round)")))
      await list.rows.wait { $0.count == round + 1 }
      list.reading.cancel()
      await list.reading.value
    }
    await downloader.shutdown()
  }
}
