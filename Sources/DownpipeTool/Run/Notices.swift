import Downpipe

/// Shows what the engine reports in an event alone, and what changes the file: coded bytes that are published because
/// nothing here decodes them.
struct Notices: Observer {
  let monitor: RunMonitor

  func observe(_ events: AsyncStream<DownloadEvent>) async {
    for await event in events {
      guard case .refused(let error) = event.kind, error.code == .keptContentCoding else { continue }
      // An output that cannot be written ends the command elsewhere.
      try? await monitor.show(DownloadNotice(id: event.id, url: event.request.shownURL, error: error))
    }
  }
}
