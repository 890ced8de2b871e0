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
    let saving = Watched(Reading.usual)

    func open() async throws -> any LedgerStore {
      Store(base: try await base.open(), reading: reading, saving: saving)
    }

    struct Store: LedgerStoreWrapper {
      let base: any LedgerStore
      let reading: Watched<Reading>
      let saving: Watched<Reading>

      func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
        let records = try await base.records(of: ids)
        await hold(reading)
        return records
      }

      func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
        let isSaved = try await base.save(record, fields, at: now)
        await hold(saving)
        return isSaved
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
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), gates: [gate], ledger: late)
    var changes = downloader.changes(every: .zero).makeAsyncIterator()
    try await downloader.add(DownloadRequest(url, id: "a"))
    late.reading.update { $0 = .nextIsHeld }
    let publishing = Task { await downloader.engine.publishStates(of: ["a"]) }
    await late.reading.wait { $0 == .held }
    gate.open()
    try await downloader.waitUntilIdle()
    late.reading.update { $0 = .released }
    await publishing.value
    await downloader.shutdown()
    var last: DownloadState.Phase?
    while let batch = await changes.next() { last = batch.statuses.last?.state.phase ?? last }
    #expect(last == .finished)
  }
  @Test("An earlier failure is not told after the download was started again", arguments: ["add", "resume", "restart"])
  func aFailureIsNotToldAgain(_ command: String) async throws {
    let (late, gate) = (LateLedger(base: ledger), FakeGate())
    let source = FakeSource([url: [.status(404), .init(bytes)]])
    let downloader = try await downloader(source, gates: [gate], ledger: late)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect(throws: DownloadError.self) { try await download.value }
    // Another reading, such as that of the reasons, finds the failure.
    late.reading.update { $0 = .nextIsHeld }
    let publishing = Task { await downloader.engine.publishStates(of: ["a"]) }
    await late.reading.wait { $0 == .held }
    gate.close("not yet")
    switch command {
    case "add": try await downloader.add(DownloadRequest(url, id: "a"))
    case "resume": #expect(try await download.resume())
    default: #expect(try await download.restart())
    }
    var events = download.events.makeAsyncIterator()
    var told: [DownloadState.Phase] = []
    if case .state(let state)? = await events.next()?.kind { told.append(state.phase) }
    late.reading.update { $0 = .released }
    await publishing.value
    gate.open()
    while let event = await events.next() { if case .state(let state) = event.kind { told.append(state.phase) } }
    #expect(told.first == .waiting && told.last == .finished && !told.contains(.failed), "\(told)")
    await downloader.shutdown()
  }

  @Test("A failure that was saved is not told if the download was added again before")
  func aSavedFailureIsNotTold() async throws {
    let late = LateLedger(base: ledger)
    late.saving.update { $0 = .nextIsHeld }
    let downloader = try await downloader(FakeSource([url: [.status(404), .init(bytes)]]), ledger: late)
    try await downloader.add(DownloadRequest(url, id: "a"))
    await late.saving.wait { $0 == .held }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    var events = download.events.makeAsyncIterator()
    var told: [DownloadState.Phase] = []
    if case .state(let state)? = await events.next()?.kind { told.append(state.phase) }
    late.saving.update { $0 = .released }
    while let event = await events.next() { if case .state(let state) = event.kind { told.append(state.phase) } }
    #expect(told.last == .finished && !told.contains(.failed), "\(told)")
    await downloader.shutdown()
  }

  @Test("A change during a reading is noticed by each reader")
  func eachReaderNotices() {
    var slots = Slots()
    slots.beginReading(["a"])
    slots.noteChange(of: ["a", "b"])
    let second = slots.changes
    slots.beginReading(["a"])
    #expect(slots.hasChanged("a", since: 0) && !slots.hasChanged("a", since: second))
    slots.noteChange(of: ["a"])
    #expect(slots.hasChanged("a", since: second))
    slots.endReading(["a"])
    #expect(slots.hasChanged("a", since: second))
    let third = slots.changes
    slots.noteChangeOfAll()
    #expect(slots.hasChanged("a", since: third) && !slots.hasChanged("b", since: 0))
    slots.endReading(["a"])
    #expect(!slots.hasChanged("a", since: 0))
  }
}
