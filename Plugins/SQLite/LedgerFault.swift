#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import GRDB

  /// Translates SQLite's errors into ledger errors that say what to do.
  enum LedgerFault {
    static let stage = "SQLiteLedger"

    static func error(_ message: String, cause: (any Error)? = nil) -> DownloadError {
      DownloadError(.ledger, message, stage: stage, cause: cause)
    }

    static var closed: DownloadError {
      error("the ledger has been closed: open it again")
    }

    static func translate(_ failure: any Error, path: String) -> any Error {
      if failure is DownloadError || failure is RefusedChange { return failure }
      if let damaged = failure as? DamagedRow {
        return error("the ledger's record of “\(damaged.id.rawValue.prefix(300))” is damaged: \(damaged.reason)")
      }
      guard let failure = failure as? DatabaseError else {
        return error("the ledger “\(path)” failed: \(failure)", cause: failure)
      }
      let message =
        switch failure.resultCode {
        case .SQLITE_NOTADB:
          "“\(path)” is not a SQLite database: give the ledger another path, or move that file away"
        case .SQLITE_CORRUPT:
          "the ledger “\(path)” is damaged: move it away together with its -wal and -shm files, and add the "
            + "downloads again"
        case .SQLITE_BUSY, .SQLITE_LOCKED:
          "the ledger “\(path)” is locked by another program: close it, or raise the lock timeout"
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
          "the ledger “\(path)” is not writable: change its permissions and those of its folder, or choose "
            + "another path"
        case .SQLITE_CANTOPEN:
          "the ledger “\(path)” cannot be opened: check that its folder exists and is writable"
        case .SQLITE_FULL:
          "the disk with the ledger “\(path)” is full: free some space and try again"
        case .SQLITE_IOERR:
          "the disk with the ledger “\(path)” cannot be read or written: check it, then try again"
        case .SQLITE_TOOBIG:
          "a download is too large for the ledger: shorten its metadata"
        case .SQLITE_MISUSE:
          "the ledger has been closed: open it again"
        default:
          "the ledger “\(path)” failed: \(failure.message ?? "SQLite error \(failure.extendedResultCode)")"
        }
      return error(message, cause: failure)
    }
  }
#endif
