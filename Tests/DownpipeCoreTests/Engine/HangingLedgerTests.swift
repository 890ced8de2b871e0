@testable import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Decisions that do not wait for a ledger that hangs.
@Suite(.endsHangs)
struct HangingLedgerTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  enum Call: String, CaseIterable {
    case lease, pauseAll, remove, update, reading, tellingACancellation

    var operation: FaultyLedger.Operation {
      switch self {
      case .lease: .exchange
      case .pauseAll: .transition
      case .remove: .remove
      case .update: .update
      case .reading: .record
      case .tellingACancellation: .records
      }
    }

    func make(_ downloader: Downloader) async throws {
      switch self {
      case .lease: try await downloader.add("https://example.org/other.bin")
      case .pauseAll: try await downloader.pauseAll(.tag("none"))
      case .remove: try await downloader.removeAll(.tag("none"))
      case .update: try await downloader.update("paused") { $0.tags = ["changed"] }
      case .reading: try await downloader.resume("paused")
      case .tellingACancellation: try await downloader.updateAll(.ids(["paused"])) { $0.tags = ["changed"] }
      }
    }
  }

  @Test("A shutdown that waits for the ledger is not complete, and names it")
  func shutdownNamesTheLedger() async throws {
    let faulty = FaultyLedger(ledger)
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), ledger: faulty)
    try await settle(downloader)
    faulty.hold(.exchange, at: faulty.calls.count { $0 == .exchange } + 1)
    let adding = Task { try? await downloader.add(url) }
    await faulty.held(atLeast: 1)
    async let stopping = downloader.shutdown(waitingAtMost: .seconds(7))
    await time.sleeper(dueIn: .seconds(7))
    time.advance(by: .seconds(7))
    let report = await stopping
    #expect(!report.isComplete && report.unended.contains { $0.stage == downloader.engine.context.ledgerName })
    faulty.release()
    #expect(await downloader.shutdown(waitingAtMost: nil).isComplete)
    _ = await adding.value
  }

  @Test("A gate that closes stops transfers although the ledger does not answer", arguments: Call.allCases)
  func gateCloses(call: Call) async throws {
    let faulty = FaultyLedger(ledger)
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let gate = FakeGate()
    let downloader = try await downloader(source, gates: [gate], ledger: faulty)
    await downloader.setSuspended(true)
    try await downloader.add(DownloadRequest(url, id: "paused"))
    try await downloader.pause("paused")
    await downloader.setSuspended(false)
    try await downloader.add(DownloadRequest(url, id: "running"))
    await source.held(atLeast: 1)
    try await settle(downloader)
    faulty.hold(call.operation, at: faulty.calls.count { $0 == call.operation } + 1)
    let command = Task { try await call.make(downloader) }
    await faulty.held(atLeast: 1)
    gate.close("away")
    while source.readers > 0 { await Task.yield() }
    faulty.release()
    try await command.value
    while try await downloader.status(of: "running")?.state.phase != .waiting { await Task.yield() }
    let state = try await downloader.status(of: "running")?.state
    #expect(state == .waiting(.gate(id: "FakeGate", text: "FakeGate: away")))
    await downloader.shutdown()
  }
}
