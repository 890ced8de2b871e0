#if SQLite
  import DownpipeCore
  import Foundation
  import Synchronization

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// The ledgers that are open in this process, so that the stores of one ledger are notified of each other's changes.
  enum OpenLedgers {
    /// Identifies a file independently of the path by which it was opened.
    private struct FileIdentity: Hashable {
      var device: UInt64
      var number: UInt64
    }

    private struct Entry {
      weak var watchers: LedgerWatchers?
    }

    private static let entries = Mutex<[FileIdentity: Entry]>([:])

    /// The watchers that all stores of a file share.
    static func watchers(of path: String) -> LedgerWatchers {
      var status = stat()
      guard stat(path, &status) == 0 else { return LedgerWatchers() }
      let file = FileIdentity(device: UInt64(status.st_dev), number: UInt64(status.st_ino))
      return entries.withLock { entries in
        if let known = entries[file]?.watchers { return known }
        entries = entries.filter { $0.value.watchers != nil }
        let new = LedgerWatchers()
        entries[file] = Entry(watchers: new)
        return new
      }
    }
  }
#endif
