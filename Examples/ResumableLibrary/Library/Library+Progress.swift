import Downpipe

// Progress.
extension Library {
  /// All films, and then those that have changed, with progress and speed, once per interval.
  func changes(every interval: Duration = .seconds(1)) -> AsyncStream<DownloadChanges> {
    downloader.changes(every: interval)
  }

  /// Sizes in B, KB or MB; a KB has 1,024 bytes.
  static let bytes = ByteFormat(.kilobytes1024, largest: .mega, precision: .oneDecimal)

  /// A line such as `Metropolis.mp4  1.5 MB of 4.0 MB  38%  812.0 KB/s  0:04 left`.
  static func line(_ status: DownloadStatus) -> String {
    // A file that existed before has no progress.
    let progress = status.artifact?.size.formatted(bytes) ?? status.progress.formatted(ProgressFormat(bytes: bytes))
    return "\(status.name ?? status.id.rawValue)  \(progress)"
  }

  /// Waits until the status of a film meets a condition, or until its events end.
  @discardableResult
  func wait(
    for id: DownloadID, until condition: (DownloadStatus) async throws -> Bool
  ) async throws -> DownloadStatus? {
    guard let film = try await downloader.download(id) else { return nil }
    for await _ in film.events {
      let status = try await film.status
      if try await condition(status) { return status }
    }
    return try await downloader.status(of: id)
  }
}
