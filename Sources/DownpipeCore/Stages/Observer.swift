/// Watches every download of a pipeline: logs, metrics, progress bars.
///
/// An observer runs in a task of its own and reads from a bounded buffer; when it falls behind, the
/// oldest events are dropped and the flow never waits.
public protocol Observer: Stage {
  /// Reads events until the sequence ends, which it does when the downloader shuts down. Called once for each
  /// downloader whose pipeline the observer is part of.
  func observe(_ events: AsyncStream<DownloadEvent>) async
}

extension Observer {
  /// Adds the observer.
  public func contribute(to parts: inout PipelineParts) { parts.observers.append(self) }
}
