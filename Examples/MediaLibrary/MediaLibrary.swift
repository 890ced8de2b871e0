import Downpipe

/// The media of the users of a device. A user's items are transferred, one after the other, while the user is logged in.
struct MediaLibrary: Sendable {
  let downloader: Downloader
  private let sessions = SessionGate(tagPrefix: Self.tag(of: ""))

  /// Opens a library. Its items wait until their users log in.
  ///
  /// - Parameters:
  ///   - root: The folder of all files.
  ///   - timing: The gate for discretionary items: by default mains power, or the night.
  ///   - source: The source of the bytes.
  ///   - options: The clock; a test replaces it.
  ///   - failed: Receives each item that has failed three times.
  init(
    _ root: String, timing: some Gate = PowerGate().or(TimeWindow(from: .init(hour: 23), to: .init(hour: 6))),
    source: some Source = HTTPSource(), options: DownloaderOptions = DownloaderOptions(),
    failed: @escaping FailureNotice.Callback = { _, _, _ in }
  ) async throws {
    downloader = try await Downloader(options: options) { [sessions] in
      source
      sessions
      timing.unless(.userInitiated)
      FIFO()
      Limits(concurrent: 1)
      Retry(.constant(.seconds(1), attempts: 3))
      FileStore(root)
      FailureNotice(callback: failed)
      #if SQLite
        SQLiteLedger("\(root)/.downpipe/ledger.sqlite")
      #endif
    }
  }

  /// The tag of a user's items.
  static func tag(of user: String) -> String { "user:\(user)" }

  /// Lets the items of a user go on.
  func logIn(_ user: String) { sessions.logIn(Self.tag(of: user)) }

  /// Stops the items of a user. Their bytes are kept.
  func logOut(_ user: String) { sessions.logOut(Self.tag(of: user)) }

  /// Stops all transfers at a checkpoint. The next start continues them.
  func close() async { await downloader.shutdown() }
}
