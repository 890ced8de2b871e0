@_spi(Ledger) import DownpipeCore
@_spi(Ledger) @testable import DownpipeTesting
import HangLimit
import Testing

/// The rules for machines whose clocks differ.
@Suite(.endsHangs)
struct LedgerClockTests {
  @Test("a ledger with a clock of its own keeps the rules")
  func ledgerClock() async throws {
    try await LedgerConformance(openingAhead: { ledger, ahead in
      try await ClockedLedger(ledger, ahead: ahead / .seconds(1)).open()
    }) {
      MemoryLedger()
    }.run()
  }

  @Test("a ledger that keeps due times by the clocks of its machines is found")
  func machineClocks() async throws {
    let failure = await #expect(throws: ConformanceFailure.self) {
      try await LedgerConformance(openingAhead: { ledger, _ in try await ledger.open() }) { MemoryLedger() }.run()
    }
    #expect(failure?.brokenRules.map(\.rule) == ["clocks-nothing-early", "clocks-nothing-late"])
  }
}
