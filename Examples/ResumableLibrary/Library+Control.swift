import Downpipe

// Who is transferred, and when.
extension Library {
  /// Pauses a film. Its slot is free at once, its bytes stay, and nobody but ``resume(_:)`` and ``start(_:)`` starts
  /// it again.
  func pause(_ id: DownloadID) async throws { try await downloader.pause(id) }

  /// Lets a film wait for its turn again; it goes on from the byte where it was.
  func resume(_ id: DownloadID) async throws { try await downloader.resume(id) }

  /// Starts a film now. When no slot is free, the one that was added first of those that run goes back to waiting.
  func start(_ id: DownloadID) async throws {
    guard let film = try await downloader.status(of: id), film.state.phase != .finished, !film.state.phase.isActive
    else { return }
    try await setPriority(.high, of: film)
    try await downloader.resume(id)
    let running = try await downloader.statuses(DownloadQuery(phases: [.transferring, .processing], order: .arrival))
    let others = running.filter { $0.id != id }
    guard let oldest = others.first, others.count >= (await slots) else { return }
    // What was started by hand before goes to the others now, or it would be the next one again.
    try await setPriority(.normal, of: oldest)
    try await downloader.pause(oldest.id)
    try await wait(for: id) { $0.state.phase.isActive || $0.state.phase.isFinal }
    try await downloader.resume(oldest.id)
  }

  /// Changes how many films are transferred at once. Those that are too many go back to waiting.
  func setSlots(_ count: Int) async { await downloader.replace(Limits(concurrent: count)) }

  /// How many films are transferred at once.
  var slots: Int {
    get async { await downloader.pipeline.admission.compactMap(\.maximumConcurrent).min() ?? 1 }
  }

  private func setPriority(_ priority: Priority, of film: DownloadStatus) async throws {
    var request = film.request
    request.priority = priority
    try await downloader.add(request)
  }
}
