#if SQLite
  public import DownpipeCore
  import Foundation

  /// A ledger in a SQLite file: downloads survive the end of the process.
  ///
  /// ```swift
  /// SQLiteLedger("~/Downloads/.downpipe/ledger.sqlite")
  /// SQLiteLedger("/var/lib/fetcher/ledger.sqlite", durability: .power)
  /// ```
  /// Ten million waiting downloads cost disk and not memory; the next one is found by an index. Changes that
  /// are made at the same time are committed together. Several processes of one machine may share the
  /// file: a download is handed out once, and what a dead process held is given back. The file must be on
  /// a local disk, because SQLite's write-ahead log does not work over a network.
  ///
  /// The file, its log and a folder that is made for it are private to the user (modes 0600 and 0700): to go on after a
  /// restart it must keep what a download is asked for with, URLs and header fields such as `Authorization` included,
  /// in clear.
  public struct SQLiteLedger: Ledger {
    /// The file, as it was given.
    public let path: String
    /// What a finished change survives.
    public let durability: Durability
    /// How long to wait for another program that has locked the file.
    public let lockTimeout: Duration

    /// Describes a ledger; nothing is opened yet.
    ///
    /// - Parameters:
    ///   - path: The file; `~` stands for the home folder. File and folder are made if they are missing.
    ///   - durability: With `.process`, a change survives the death of the process, and the file stays whole
    ///     when the power fails, but the last changes may be lost then; with `.power`, each commit is flushed
    ///     to the disk.
    ///   - lockTimeout: How long to wait for another program that has locked the file, before failing.
    public init(_ path: String, durability: Durability = .process, lockTimeout: Duration = .seconds(10)) {
      self.path = path
      self.durability = durability
      self.lockTimeout = lockTimeout
    }

    /// The file, and what changes survive.
    public var summary: String { durability == .power ? "\(path), survives loss of power" : path }

    /// Opens the file, makes it if it is missing, and brings its tables up to date.
    ///
    /// - Throws: ``DownloadError`` with `.ledger` that says why the file cannot be used, and what to do.
    public func open() async throws -> any LedgerStore {
      let file = LedgerFile(path: path, durability: durability, lockTimeout: lockTimeout)
      // Opening blocks on the disk and on other programs' locks.
      let pool = try await onBlockingThread { try file.open() }
      return SQLiteLedgerStore(pool: pool, path: file.path)
    }
  }
#endif
