import Downpipe

/// Calls back when an item has failed for good.
struct FailureNotice: Observer {
  /// Receives the key of the item, its info and the error.
  typealias Callback = @Sendable (_ key: String, _ info: [String: String], _ error: DownloadError) -> Void

  let callback: Callback

  func observe(_ events: AsyncStream<DownloadEvent>) async {
    for await event in events {
      if case .state(.failed(let error)) = event.kind { callback(event.id.rawValue, event.request.metadata, error) }
    }
  }
}
