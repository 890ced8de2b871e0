public import DownpipeCore
public import Logging

extension LogObserver {
  /// The log levels of the kinds of events; `nil` means that the events are not logged.
  public struct Levels: Sendable, Hashable {
    /// The download waits, for a new reason. `debug` by default.
    public var waiting: Logger.Level?
    /// The download runs: it requests bytes, a reply has arrived, a step works or has finished. `debug` by default.
    public var running: Logger.Level?
    /// The progress of a transfer, several times a second. `nil` by default.
    public var progress: Logger.Level?
    /// The request was redirected, its link was refreshed, a reply was refused, or the transfer starts again at the
    /// first byte. `notice` by default.
    public var detour: Logger.Level?
    /// An attempt has failed, and the download may be tried again; or the logger was too slow, and events were dropped.
    /// `warning` by default.
    public var attemptFailed: Logger.Level?
    /// The download has finished. `info` by default.
    public var finished: Logger.Level?
    /// The download was paused, cancelled or removed. `info` by default.
    public var stopped: Logger.Level?
    /// The download has failed for good. `error` by default.
    public var failed: Logger.Level?

    /// Creates levels.
    public init(
      waiting: Logger.Level? = .debug, running: Logger.Level? = .debug, progress: Logger.Level? = nil,
      detour: Logger.Level? = .notice, attemptFailed: Logger.Level? = .warning, finished: Logger.Level? = .info,
      stopped: Logger.Level? = .info, failed: Logger.Level? = .error
    ) {
      self.waiting = waiting
      self.running = running
      self.progress = progress
      self.detour = detour
      self.attemptFailed = attemptFailed
      self.finished = finished
      self.stopped = stopped
      self.failed = failed
    }

    /// Returns the level of an event; `nil` if it is not logged.
    public func level(of event: DownloadEvent.Kind) -> Logger.Level? {
      switch event {
      case .state(.waiting): waiting
      case .state(.transferring), .state(.processing), .started, .verified, .stepFinished: running
      case .state(.finished): finished
      case .state(.failed): failed
      case .state(.paused), .state(.cancelled), .removed: stopped
      case .progress, .stepProgress: progress
      case .restarted, .refused, .redirected, .linkRefreshed: detour
      case .attemptFailed, .missed: attemptFailed
      }
    }
  }
}
