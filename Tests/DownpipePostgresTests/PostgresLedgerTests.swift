#if Postgres
  @_spi(Ledger) import DownpipeCore
  @_spi(Ledger) import DownpipeTesting
  import Foundation
  import HangLimit
  import PostgresCluster
  import Testing

  @testable import DownpipePostgres

  @Suite(.endsHangs)
  struct PostgresLedgerTests {
    @Test func keepsTheContract() async throws {
      let address = try PostgresCluster.shared.get().address
      try await LedgerConformance(
        damaging: { ledger, id in
          let ledger = try #require(ledger as? PostgresLedger)
          let connection = try PostgresConnection.open(
            .init(address: ledger.address, schema: ledger.schema), interruptedBy: Interruption())
          _ = try connection.run(
            "UPDATE download SET url = 'http://[', ranges = 'none' WHERE id = $1", [.text(id.rawValue)])
        },
        openingAhead: { ledger, ahead in
          var ledger = try #require(ledger as? PostgresLedger)
          let seconds: Double = ahead / .seconds(1)
          ledger.clock = { Date() + seconds }
          return try await ledger.open()
        }
      ) {
        var ledger = PostgresLedger(address, schema: "\(DownloadID())")
        // On a busy machine a notification may come long after its change, which this process has told its stores itself.
        // Those of other processes are the concern of AnnouncementTests.
        ledger.wakes = false
        return ledger
      }.run()
    }
  }
#endif
