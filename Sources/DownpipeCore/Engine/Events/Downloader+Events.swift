extension Downloader {
  /// Returns the events ``DownloadEvent/Kind/refused(_:)`` of all downloads from now on, until the downloader shuts down. An
  /// observer would get every event of every download, each of which has a cost.
  package func refusals() -> AsyncStream<DownloadEvent> { engine.hub.refusals() }

  /// Calls back for each ``DownloadEvent/Kind/refused(_:)``, before a later event of the same download can be seen anywhere.
  /// The callback must return at once.
  package func noteRefusals(_ note: @escaping @Sendable (DownloadEvent) -> Void) { engine.hub.noteRefusals(note) }

  /// Returns the events of all downloads from now on, until the downloader shuts down, as an ``Observer`` gets them: a slow
  /// reader misses some, and is told.
  package func allEvents() -> AsyncStream<DownloadEvent> {
    defer { engine.context.mailbox.wake() }
    return engine.hub.allEvents()
  }
}
