import Downpipe

/// Shows what one should know of a file and is in no status of its download: coded bytes that are published because nothing
/// here decodes them, and files whose end is unconfirmed.
struct Notices {
  let monitor: RunMonitor
  let codes: Set<DownloadError.Code>

  /// Shows notices until the downloader shuts down.
  func show(_ refusals: AsyncStream<DownloadEvent>) async {
    for await event in refusals {
      guard case .refused(let error) = event.kind, codes.contains(error.code) else { continue }
      // An output that cannot be written ends the command elsewhere.
      try? await monitor.show(DownloadNotice(id: event.id, url: event.request.givenURL, error: error))
    }
  }
}
