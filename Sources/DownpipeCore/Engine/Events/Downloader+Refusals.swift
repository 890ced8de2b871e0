extension Downloader {
  /// Returns the events ``DownloadEvent/Kind/refused(_:)`` of all downloads from now on, until the downloader shuts down. An
  /// observer would get every event of every download, each of which has a cost.
  package func refusals() -> AsyncStream<DownloadEvent> { engine.hub.refusals() }
}
