#if Postgres
  @_spi(Ledger) import DownpipeCore
  import Foundation

  // Due times: the table has them by the server's clock, and records by this machine's, as all times that callers give and
  // get. Dates of a request, such as its deadline, are the user's: they are stored as they are.
  extension LedgerTables {
    /// A time of this machine's clock as one of the server's clock.
    func byServer(_ time: Date) -> Date { time.addingTimeInterval(clockDifference) }

    /// A time of the server's clock as one of this machine's clock.
    func byMachine(_ time: Date) -> Date { time.addingTimeInterval(-clockDifference) }

    /// The record as the table has it.
    func byServer(_ record: DownloadRecord) -> DownloadRecord {
      guard clockDifference != 0, let due = record.notBefore else { return record }
      var record = record
      record.notBefore = byServer(due)
      return record
    }
  }
#endif
