#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeTesting
  import Foundation

  /// A ledger that reports each saved checkpoint to the ``Pace`` of the run.
  struct PacedLedger: Ledger {
    let base: any Ledger
    let pace: Pace

    var name: String { base.name }

    func open() async throws -> any LedgerStore { Store(base: try await base.open(), pace: pace) }

    private struct Store: LedgerStoreWrapper {
      let base: any LedgerStore
      let pace: Pace

      func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
        defer { if fields.contains(.checkpoint) { pace.saved(record.checkpoint.ranges.prefixLength) } }
        return try await base.save(record, fields, at: now)
      }

      func exchange(
        _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
      ) async throws -> LedgerExchange {
        defer {
          for save in saves where save.fields.contains(.checkpoint) {
            pace.saved(save.record.checkpoint.ranges.prefixLength)
          }
        }
        return try await base.exchange(saves, leasing: request, at: now, number: number)
      }
    }
  }
#endif
