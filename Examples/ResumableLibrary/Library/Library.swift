import Downpipe
import DownpipeBackgroundURLSession
import DownpipeURLSession

/// A folder of films whose downloads survive pauses, lost networks and the end of the process.
///
/// One pipeline does all of it; the extensions are the functions that an app calls.
struct Library: Sendable {
  let downloader: Downloader

  /// Opens a library and continues its unfinished downloads.
  ///
  /// - Parameters:
  ///   - root: The folder of the films. It may have moved since the last start.
  ///   - slots: The number of films that are transferred at the same time.
  ///   - network: The gate that is closed while there is no network.
  ///   - source: The source of the bytes.
  init(
    _ root: String, slots: Int = 2, network: some Gate = Online(), source: some Source = HTTPSource()
  ) async throws {
    // After a killed process at most a megabyte is transferred again.
    let options = DownloaderOptions(checkpoints: CheckpointPolicy(bytes: 1 << 20))
    downloader = try await Downloader(options: options) {
      source
      network
      PriorityQueue()
      Limits(concurrent: slots)
      Retry(.exponential(attempts: 5, base: .milliseconds(200)))
      FileStore(root)
      #if SQLite
        SQLiteLedger("\(root)/.downpipe/ledger.sqlite")
      #endif
    }
  }

  /// Opens a library whose transfers the system continues while the app is not running (Apple platforms, experimental).
  /// The app calls `URLSessionSource.handleBackgroundEvents` when the system launches it for them.
  static func inBackground(_ root: String, session: String) async throws -> Library {
    try await Library(root, source: URLSessionSource(.background(session, inbox: "\(root)/.downpipe/inbox")))
  }

  /// Stops all transfers at a checkpoint. The next start continues them.
  func close() async { await downloader.shutdown() }
}
