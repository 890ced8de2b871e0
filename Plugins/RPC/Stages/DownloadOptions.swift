public import DownpipeCore
public import DownpipeScheduling

/// The stages that give options of clients their effect: `max-download-limit`, `split`, `max-connection-per-server`,
/// `min-split-size`, `max-tries` and `retry-wait`, of one download and of all.
///
/// ```swift
/// let downloader = try await Downloader(settings: RPCSettings()) { settings in
///   HTTPSource()
///   QueueOrder()
///   Limits(concurrent: settings.concurrentDownloads ?? 5)
///   DownloadOptions(settings, retry: Retry(.exponential(attempts: 5)), segments: Segmented())
///   FileStore("~/Downloads")
///   SQLiteLedger("~/Downloads/.downpipe/ledger.sqlite")
/// }
/// ```
/// Downloads for which clients have set nothing are treated by the given policies. A speed limit takes effect at once, the number of
/// connections with the next transfer, and the number of attempts with the next failure.
public struct DownloadOptions: StageGroup {
  private let settings: RPCSettings
  private let retry: Retry
  private let segments: Segmented?
  private let mostConnections: Int

  /// Creates the stages.
  ///
  /// - Parameters:
  ///   - settings: The options for all downloads.
  ///   - retry: What happens after failures where clients have set nothing.
  ///   - segments: Over how many connections a file comes where clients have set nothing; `nil` for one.
  ///   - mostConnections: The most connections to one file that clients get, and that `segments` opens. Each needs a descriptor;
  ///     `Limits(perHost:)` holds as well.
  public init(
    _ settings: RPCSettings = RPCSettings(), retry: Retry = Retry(), segments: Segmented? = Segmented(),
    mostConnections: Int = 16
  ) {
    self.mostConnections = mostConnections
    self.settings = settings
    self.retry = retry
    self.segments = segments
  }

  /// The stages.
  public var body: some Stage {
    OptionRetry(base: retry, settings: settings)
    OptionSegments(base: segments, settings: settings, most: mostConnections)
    RequestedRate(OptionKey.of("max-download-limit"), otherwise: settings.downloadRate)
  }
}

/// The keys of options among the metadata of a request.
enum OptionKey {
  /// The options that stages read.
  static let all: Set<String> = [
    "max-download-limit", "split", "max-connection-per-server", "min-split-size", "max-tries", "retry-wait",
  ]

  static func of(_ option: String) -> String { "rpc.option." + option }

  /// The value of an option that has a number: that of the download, or else that for all.
  static func number(_ option: String, _ metadata: [String: String], _ settings: RPCSettings) -> Int? {
    (metadata[of(option)] ?? settings.options[option]).flatMap { Int($0) }
  }
}
