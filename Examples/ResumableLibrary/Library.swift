import Downpipe
import DownpipeURLSession

/// A folder of films that are downloaded, whatever comes between: pauses, lost networks, the end of the process.
///
/// All of it is one pipeline; the extensions are what an app calls.
struct Library: Sendable {
  /// What everything else is done with.
  let downloader: Downloader

  /// Opens a library, and goes on with what it has unfinished.
  ///
  /// - Parameters:
  ///   - root: the folder; it may be elsewhere at the next start.
  ///   - slots: how many films are transferred at once.
  ///   - network: the gate that is closed while there is no network.
  ///   - source: who transfers.
  init(
    _ root: String, slots: Int = 2, network: some Gate = Online(), source: some Source = HTTPSource()
  ) async throws {
    // At most a megabyte is fetched again after the process was killed.
    let options = DownloaderOptions(checkpoints: CheckpointPolicy(bytes: 1 << 20))
    downloader = try await Downloader(options: options) {
      source
      network
      PriorityQueue()
      Limits(concurrent: slots)
      Retry(.exponential(attempts: 5, base: .milliseconds(200)))
      FileStore(root)
      SQLiteLedger("\(root)/.downpipe/ledger.sqlite")
    }
  }

  /// Opens a library whose transfers the system carries on while the app is not running; on Apple's systems only.
  /// When the system starts the app for them, it calls `URLSessionSource.handleBackgroundEvents`.
  static func inBackground(_ root: String, session: String) async throws -> Library {
    try await Library(root, source: URLSessionSource(.background(session, inbox: "\(root)/.downpipe/inbox")))
  }

  /// Ends all transfers at a checkpoint. The next one who opens the library goes on with them.
  func close() async { await downloader.shutdown() }
}
