#if SQLite
  import DownpipeCore
  @_spi(Ledger) import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeSQLite

  @Suite(.endsHangs)
  struct SQLiteLedgerTests {
    @Test(arguments: [Durability.process, .power])
    func keepsTheContract(_ durability: Durability) async throws {
      try await withFolder { folder in
        try await LedgerConformance(
          damaging: { try await damage($0, $1, "url = 'http://[', ranges = 'none'") },
          { SQLiteLedger("\(folder)/\(DownloadID()).sqlite", durability: durability) }
        ).run()
      }
    }
  }
#endif
