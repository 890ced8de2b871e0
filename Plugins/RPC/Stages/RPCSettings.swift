public import DownpipeCore

/// The options that clients have changed for all downloads (`aria2.changeGlobalOption`). The ledger keeps them.
///
/// A downloader is created with them, and builds its limits from them:
///
/// ```swift
/// let downloader = try await Downloader(settings: RPCSettings()) { settings in
///   HTTPSource()
///   QueueOrder()
///   Limits(concurrent: settings.concurrentDownloads ?? 5)
///   DownloadOptions(settings)
///   if let rate = settings.overallRate { RateLimit(rate) }
///   FileStore("~/Downloads")
///   SQLiteLedger("~/Downloads/.downpipe/ledger.sqlite")
/// }
/// ```
public struct RPCSettings: Codable, Sendable, Hashable {
  /// The values by the names of aria2's options, as a client reads them.
  public var options: [String: String]

  /// Creates settings.
  public init(options: [String: String] = [:]) { self.options = options }

  /// The value of `max-concurrent-downloads`; `nil` if no client has set it.
  public var concurrentDownloads: Int? { options["max-concurrent-downloads"].flatMap { Int($0) } }

  /// The value of `max-overall-download-limit`; `nil` if no client has set it, and for 0, which means no limit.
  public var overallRate: ByteRate? { Self.rate(options["max-overall-download-limit"]) }

  /// The value of `max-download-limit`, which is for each download; `nil` if no client has set it, and for 0.
  public var downloadRate: ByteRate? { Self.rate(options["max-download-limit"]) }

  static func rate(_ text: String?) -> ByteRate? {
    text.flatMap { Int64($0) }.flatMap { $0 > 0 ? ByteRate.bytesPerSecond($0) : nil }
  }
}
