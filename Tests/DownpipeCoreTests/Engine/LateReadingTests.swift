import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// What the engine reads from the ledger may be old when it arrives.
@Suite(.endsHangs)
struct LateReadingTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// A ledger that can hand over records some time after it has read them.
  private struct LateLedger: Ledger {
    enum Reading { case usual, nextIsHeld, held, released }
    let base: any Ledger
    let reading = Watched(Reading.usual)

    func open() async throws -> any LedgerStore {
      Store(base: try await base.open(), reading: reading)
    }

    struct Store: LedgerStoreWrapper {
      let base: any LedgerStore
      let reading: Watched<Reading>

      func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
        let records = try await base.records(of: ids)
        await hold(reading)
        return records
      }

      private func hold(_ call: Watched<Reading>) async {
        let isHeld = call.update { state in
          guard state == .nextIsHeld else { return false }
          state = .held
          return true
        }
        if isHeld { await call.wait { $0 == .released } }
      }
    }
  }

  @Test("The state of a download that has run meanwhile is not published over its end")
  func anEndIsNotTakenBack() async throws {
    let (late, gate) = (LateLedger(base: ledger), FakeGate(.closed("not yet")))
    let observer = RecordingObserver()
    let downloader = try await downloader(
      FakeSource(everyURL: .init(bytes)), gates: [gate], observers: [observer], ledger: late)
    try await downloader.add(DownloadRequest(url, id: "a"))
    late.reading.update { $0 = .nextIsHeld }
    let publishing = Task { try await downloader.update("a") { $0.priority = .high } }
    await late.reading.wait { $0 == .held }
    gate.open()
    late.reading.update { $0 = .released }
    _ = try await publishing.value
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
    let states = observer.events.compactMap { if case .state(let state) = $0.kind { state.phase } else { nil } }
    #expect(states.last == .finished, "\(states)")
  }
}
