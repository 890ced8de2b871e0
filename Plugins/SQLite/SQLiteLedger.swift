#if SQLite
  @_spi(Ledger) public import DownpipeCore
  import DownpipePOSIX
  import Foundation

  /// A ledger in a SQLite file, so that downloads survive the end of the process.
  ///
  /// ```swift
  /// SQLiteLedger("~/Downloads/.downpipe/ledger.sqlite")
  /// SQLiteLedger("/var/lib/fetcher/ledger.sqlite", durability: .power)
  /// ```
  /// Ten million waiting downloads use disk space, not memory; the next download is found with an index. Concurrent
  /// changes are committed together.
  ///
  /// Several processes on one machine can share the file. Each download is leased to one of them, and the downloads of
  /// a process that has died are leased again. What another process changes is noticed within a second. The file must be on a local disk, because SQLite's write-ahead log does
  /// not work on network file systems.
  ///
  /// The ledger stores requests as clear text, including URLs and header fields such as `Authorization`, because a
  /// download needs them after a restart. The file, its log and a new folder are therefore private to the user (modes
  /// 0600 and 0700).
  public struct SQLiteLedger: Ledger {
    /// The path of the file, as passed to the initializer.
    public let path: String
    /// Whether a committed change survives the end of the process only, or also power loss.
    public let durability: Durability
    /// How long to wait for another program that has locked the file.
    public let lockTimeout: Duration

    /// Creates a description of a ledger. The file is not opened before the downloader starts.
    ///
    /// - Parameters:
    ///   - path: The path of the file; `~` is the home folder. The file and its folder are created if they do not
    ///     exist.
    ///   - durability: With `.process`, a committed change survives the end of the process. A power failure does not
    ///     damage the file, but the last changes may be lost. With `.power`, each commit is flushed to the disk.
    ///   - lockTimeout: How long to wait for another program that has locked the file, before a call fails.
    public init(_ path: String, durability: Durability = .process, lockTimeout: Duration = .seconds(10)) {
      self.path = path
      self.durability = durability
      self.lockTimeout = lockTimeout
    }

    /// The path and the durability, as the pipeline prints them.
    public var summary: String { durability == .power ? "\(path), survives power loss" : path }

    /// Opens the file, creates it if it does not exist, and migrates its tables to the current version.
    ///
    /// - Throws: `DownloadError` with `.ledger`, whose message says why the file cannot be used and what to do.
    @_spi(Ledger) public func open() async throws -> any LedgerStore {
      let file = LedgerFile(path: path, durability: durability, lockTimeout: lockTimeout)
      // Opening may wait for the disk and for the locks of other programs.
      let pool = try await BlockingThreads.run(.urgent) { _ in try file.open() }
      return SQLiteLedgerStore(pool: pool, path: file.path)
    }
  }
#endif
