import Downpipe

// How far it is.
extension Library {
  /// Every film that has changed, with its progress and its speed, once a second.
  func changes(every interval: Duration = .seconds(1)) -> AsyncStream<DownloadChanges> {
    downloader.changes(every: interval)
  }

  /// A line such as `Metropolis.mp4  1.5 MB of 4.0 MB  38 %  812.0 KB/s`.
  static func line(_ status: DownloadStatus) -> String {
    let progress = status.progress
    // A file that was there already has made no progress.
    var parts = [status.name ?? status.id.rawValue, text(status.artifact?.size.bytes ?? progress.received)]
    if let total = progress.total.bytes { parts[1] += " of \(text(total))" }
    if let fraction = progress.fraction { parts.append("\(Int(fraction * 100)) %") }
    if let speed = progress.bytesPerSecond { parts.append("\(text(Int64(speed)))/s") }
    return parts.joined(separator: "  ")
  }

  /// Bytes in B, KB or MB, of 1,024 each.
  static func text(_ bytes: Int64) -> String {
    if bytes < 1024 { return "\(bytes) B" }
    let (unit, name) = bytes < 1 << 20 ? (Int64(1024), "KB") : (1 << 20, "MB")
    let tenths = bytes * 10 / unit
    return "\(tenths / 10).\(tenths % 10) \(name)"
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
