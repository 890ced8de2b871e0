#if Postgres
  import DownpipeCore
  import Synchronization

  /// The ledgers that are open in this process, so that the stores of one ledger hear of each other's changes at once.
  enum OpenLedgers {
    private struct Entry {
      weak var watchers: LedgerWatchers?
    }

    private static let entries = Mutex<[String: Entry]>([:])

    /// The watchers that all stores of a ledger share.
    /// - Parameter ledger: The random name that a ledger gets with its tables.
    static func watchers(of ledger: String) -> LedgerWatchers {
      entries.withLock { entries in
        if let known = entries[ledger]?.watchers { return known }
        entries = entries.filter { $0.value.watchers != nil }
        let new = LedgerWatchers()
        entries[ledger] = Entry(watchers: new)
        return new
      }
    }
  }
#endif
