/// A stage that receives the events of every download of a pipeline: for logs, metrics, progress bars.
///
/// An observer runs in its own task and reads from a bounded buffer. When it falls behind, the oldest events are
/// dropped. An observer never delays a download.
public protocol Observer: Stage {
  /// Reads events until the sequence ends, which happens when the downloader shuts down.
  ///
  /// It is called once for each downloader whose pipeline contains the observer.
  func observe(_ events: AsyncStream<DownloadEvent>) async
}

extension Observer {
  /// Adds the observer to the pipeline's observers.
  public func contribute(to parts: inout PipelineParts) { parts.observers.append(self) }
}
