#if Postgres
  @_spi(Ledger) import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipePostgres

  /// What operators see of the workers.
  @Suite(.endsHangs)
  struct FleetStatusTests {
    @Test("The status names what each worker has failed, and what its machine lacks until it is mended")
    func conditions() async throws {
      let ledger = try TestLedger()
      let (broken, well) = (try await ledger.open(), try await ledger.open())
      let fleet = PostgresLedger(ledger.address, schema: ledger.schema)
      try await well.fill(["a", "b", "c"])
      var records = try await broken.leaseAll()
      let errors = [
        DownloadError(.timedOut, ""), DownloadError(.httpStatus, "", httpStatus: 404), DownloadError(.timedOut, ""),
      ]
      for (index, error) in errors.enumerated() { (records[index].phase, records[index].error) = (.failed, error) }
      _ = try await broken.save(records[0], [.state, .checkpoint, .steps], at: Date())
      _ = try await broken.exchange(
        records.dropFirst().map { LedgerSave($0, [.state, .checkpoint, .steps]) }, leasing: nil, at: Date())
      broken.note(machineFault: DownloadError(.noSpace, "the disk is full", scope: .machine))

      /// The workers, once one of them is shown as wanted.
      func workers(_ isShown: (FleetStatus.Worker) -> Bool) async throws -> [FleetStatus.Worker] {
        while true {
          let status = try await fleet.status(observing: .milliseconds(100))
          if status.workers.contains(where: isShown) { return status.workers }
        }
      }
      let before = try await workers { $0.fault != nil }
      #expect(before.compactMap(\.fault) == ["the disk is full"])
      #expect(before.filter { $0.fault == nil }.map(\.failures) == [[:]])
      #expect(before.first { $0.fault != nil }?.failures == ["timedOut": 2, "httpStatus 404": 1])
      broken.note(machineFault: nil)
      let after = try await workers { $0.fault == nil && !$0.failures.isEmpty }
      #expect(after.allSatisfy { $0.fault == nil })
      for store in [broken, well] { try await store.close() }
    }

    @Test("Tables without the column, or with a damaged text in it, show no condition")
    func damaged() async throws {
      let ledger = try TestLedger()
      let store = try await ledger.open()
      let fleet = PostgresLedger(ledger.address, schema: ledger.schema)
      _ = try ledger.connect().run("UPDATE opening SET condition = '{'")
      #expect(try await fleet.status(observing: .zero).workers.map(\.failures) == [[:]])
      _ = try ledger.connect().run("ALTER TABLE opening RENAME COLUMN condition TO other")
      #expect(try await fleet.status(observing: .zero).workers.map(\.fault) == [nil])
      _ = try ledger.connect().run("ALTER TABLE opening RENAME COLUMN other TO condition")
      try await store.close()
    }
  }
#endif
