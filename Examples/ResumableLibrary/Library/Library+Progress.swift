import Downpipe

// How far it is.
extension Library {
  /// Every film that has changed, with its progress and its speed, once a second.
  func changes(every interval: Duration = .seconds(1)) -> AsyncStream<DownloadChanges> {
    downloader.changes(every: interval)
  }

  /// Bytes in B, KB or MB, of 1,024 each.
  static let bytes = ByteFormat(.kilobytes1024, largest: .mega, precision: .oneDecimal)

  /// A line such as `Metropolis.mp4  1.5 MB of 4.0 MB  38%  812.0 KB/s  0:04 left`.
  static func line(_ status: DownloadStatus) -> String {
    // A file that was there already has made no progress.
    let progress = status.artifact?.size.formatted(bytes) ?? status.progress.formatted(ProgressFormat(bytes: bytes))
    return "\(status.name ?? status.id.rawValue)  \(progress)"
  }

  /// Waits until a film's status meets a condition, or until nothing more happens to it by itself.
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
