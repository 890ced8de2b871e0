import Downpipe

// Pausing, starting and the number of transfers.
extension Library {
  /// Pauses a film. Its slot becomes free immediately, its bytes stay, and only ``resume(_:)`` and ``start(_:)`` start
  /// it again.
  func pause(_ id: DownloadID) async throws { try await downloader.pause(id) }

  /// Puts a paused film back into the queue. It resumes at the byte where it stopped.
  func resume(_ id: DownloadID) async throws { try await downloader.resume(id) }

  /// Starts a film now. When no slot is free, the oldest running film goes back to waiting.
  func start(_ id: DownloadID) async throws { try await downloader.start(id, preempting: .oldest) }

  /// Sets the number of films that are transferred at the same time. Excess transfers go back to waiting.
  func setSlots(_ count: Int) async { await downloader.replace(Limits(concurrent: count)) }

  /// The number of films that are transferred at the same time.
  var slots: Int {
    get async { await downloader.pipeline.admission.compactMap(\.maximumConcurrent).min() ?? 1 }
  }
}
