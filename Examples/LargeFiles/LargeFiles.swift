import Downpipe
import DownpipeBackgroundURLSession
import DownpipeURLSession

/// Large files, with settings that take effect on running transfers and are kept across restarts.
struct LargeFiles: Sendable {
  let downloader: Downloader

  /// Opens a folder of files and continues its transfers with the settings that were kept.
  ///
  /// - Parameters:
  ///   - root: The folder.
  ///   - source: The source of the bytes: `HTTPSource()`, `URLSessionSource(.default)` or `URLSessionSource(.ephemeral)`.
  ///   - network: The gate that is closed while there is no network.
  ///   - cellular: The gate that is closed while the network is a mobile one. It applies unless the user allows these.
  ///   - time: The clock; a test replaces it.
  init(
    _ root: String, source: some Source = HTTPSource(), network: some Gate = Online(),
    cellular: some Gate = Interfaces(deny: .cellular), time: any TimeSource = SystemTime()
  ) async throws {
    // After a killed process at most a megabyte is transferred again.
    let options = DownloaderOptions(time: time, checkpoints: CheckpointPolicy(bytes: 1 << 20))
    downloader = try await Downloader(settings: Settings(), options: options) { settings in
      source
      network
      if !settings.allowsCellular { cellular }
      FIFO()
      Limits(concurrent: settings.atOnce)
      Retry(.exponential(attempts: 5))
      FileStore(root)
      #if SQLite
        SQLiteLedger("\(root)/.downpipe/ledger.sqlite")
      #endif
    }
  }

  /// Opens files whose transfers the system continues while the app is not running (Apple platforms, experimental). The
  /// app delegate calls `URLSessionSource.handleBackgroundEvents(identifier:completion:)`, and the completion handler is
  /// called when all events were handled.
  static func inBackground(_ root: String, session: String) async throws -> LargeFiles {
    try await LargeFiles(root, source: URLSessionSource(.background(session, inbox: "\(root)/.downpipe/inbox")))
  }

  /// The settings.
  var settings: Settings { get async throws { try downloader.settings(Settings.self).value } }

  /// Changes the settings, keeps them, and applies them to running transfers.
  ///
  /// - Parameter excess: Whether transfers beyond a lower number wait at once, or run to their end.
  func set(excess: Excess = .stops, _ change: @escaping @Sendable (inout Settings) -> Void) async throws {
    try await downloader.settings(Settings.self).update(excess: excess, change)
  }

  /// Stops all transfers at a checkpoint. The next start continues them.
  func close() async { await downloader.shutdown() }
}
