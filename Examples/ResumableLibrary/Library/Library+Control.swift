import Downpipe

// Who is transferred, and when.
extension Library {
  /// Pauses a film. Its slot is free at once, its bytes stay, and nobody but ``resume(_:)`` and ``start(_:)`` starts
  /// it again.
  func pause(_ id: DownloadID) async throws { try await downloader.pause(id) }

  /// Lets a film wait for its turn again; it goes on from the byte where it was.
  func resume(_ id: DownloadID) async throws { try await downloader.resume(id) }

  /// Starts a film now. When no slot is free, the one that was started first of those that run goes back to waiting.
  func start(_ id: DownloadID) async throws { try await downloader.start(id, preempting: .oldest) }

  /// Changes how many films are transferred at once. Those that are too many go back to waiting.
  func setSlots(_ count: Int) async { await downloader.replace(Limits(concurrent: count)) }

  /// How many films are transferred at once.
  var slots: Int {
    get async { await downloader.pipeline.admission.compactMap(\.maximumConcurrent).min() ?? 1 }
  }
}
