import DownpipeTesting
import Foundation
import Testing

@testable import DownpipeCore

/// What the engine reads from the ledger may be old when it arrives.
@Suite(.timeLimit(.minutes(1)))
struct LateReadingTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// A ledger that hands over records some time after it has read them.
  private struct LateLedger: Ledger {
    let base: any Ledger
    let isLate = Watched(false)
    let readings = Watched(0)

    func open() async throws -> any LedgerStore {
      Store(base: try await base.open(), isLate: isLate, readings: readings)
    }

    struct Store: LedgerStoreWrapper {
      let base: any LedgerStore
      let isLate: Watched<Bool>
      let readings: Watched<Int>

      func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
        let records = try await base.records(of: ids)
        readings.update { $0 += 1 }
        await isLate.wait { !$0 }
        return records
      }
    }
  }

  @Test("The state of a download that has run meanwhile is not published over its end")
  func anEndIsNotTakenBack() async throws {
    let (late, gate) = (LateLedger(base: ledger), FakeGate(.closed("not yet")))
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), gates: [gate], ledger: late)
    var changes = downloader.changes(every: .zero).makeAsyncIterator()
    try await downloader.add(DownloadRequest(url, id: "a"))
    late.isLate.update { $0 = true }
    let before = late.readings.value
    let publishing = Task { await downloader.engine.publishStates(of: ["a"]) }
    await late.readings.wait { $0 > before }
    gate.open()
    try await downloader.waitUntilIdle()
    late.isLate.update { $0 = false }
    await publishing.value
    await downloader.shutdown()
    var last: DownloadState.Phase?
    while let batch = await changes.next() { last = batch.statuses.last?.state.phase ?? last }
    #expect(last == .finished)
  }
}
