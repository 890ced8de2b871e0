public import DownpipeCore
import DownpipeTimeline
public import Logging

/// Logs the events of all downloads, one line an event.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("~/Downloads")
///   LogObserver(Logger(label: "downloads"))
/// }
/// ```
/// The message of a line is constant for its kind of event. The values are in the metadata: `id`, `host`, and, where
/// the event has them, `state`, `reason`, `step`, `attempt`, `bytes`, `total`, `code`, `status`, `stage`, `error`, `url`
/// and `name`. Sizes are in bytes.
///
/// Secrets in URLs are hidden, also in texts and ids that contain URLs; header fields, tags and the metadata of the
/// request are not logged. Control characters are escaped.
public struct LogObserver: Observer {
  private let logger: Logger
  private let levels: Levels

  /// Creates an observer.
  /// - Parameters:
  ///   - logger: The logger. Its level decides, as usual, which lines are written.
  ///   - levels: The level of each kind of event.
  public init(_ logger: Logger, levels: Levels = Levels()) {
    self.logger = logger
    self.levels = levels
  }

  /// Logs until the sequence ends.
  public func observe(_ events: AsyncStream<DownloadEvent>) async {
    for await event in events {
      guard let level = levels.level(of: event.kind), level >= logger.logLevel else { continue }
      let line = LogLine(event)
      logger.log(level: level, line.message, metadata: line.metadata)
    }
  }
}
