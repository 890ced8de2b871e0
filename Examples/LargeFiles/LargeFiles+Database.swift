import Downpipe
import Foundation

// The records of the files.
extension LargeFiles {
  /// Adds a file.
  @discardableResult
  func add(_ url: URL) async throws -> Download {
    try await downloader.add(DownloadRequest(url, id: DownloadID(url.lastPathComponent)))
  }

  /// All files, the first added first: their states, sizes, progress and speed, and when each of them last changed.
  func files() async throws -> [DownloadStatus] { try await downloader.statuses(DownloadQuery(order: .arrival)) }

  /// A line such as `a.img  transferring  1.91 MiB of 5.72 MiB  33%  977 KiB/s  09:41:07`, and another line for the reason of a
  /// waiting file.
  static func line(_ file: DownloadStatus) -> String {
    let size = file.artifact?.size ?? file.progress.total
    let received = file.artifact == nil ? .known(file.progress.received) : size
    let share = file.artifact == nil ? file.progress.fraction ?? 0 : 1
    let columns = [
      (file.id.rawValue, 9), (file.state.phase.rawValue, 14), ("\(received.formatted()) of \(size.formatted())", 22),
      (ProgressFormat.percent(share), 6), (ByteFormat.binary.speed(file.progress.bytesPerSecond), 12),
      (file.updatedAt.formatted(Date.ISO8601FormatStyle().time(includingFractionalSeconds: false)), 0),
    ]
    let line = columns.map { text, width in text + String(repeating: " ", count: max(0, width - text.count)) }.joined()
    guard case .waiting(let reason) = file.state else { return line }
    return line + "\n" + String(repeating: " ", count: 9) + "\(reason)"
  }

  /// Waits until a file meets a condition, or until its events end.
  @discardableResult
  func wait(
    for id: DownloadID, until condition: (DownloadStatus) async throws -> Bool
  ) async throws -> DownloadStatus? {
    guard let file = try await downloader.download(id) else { return nil }
    for await _ in file.events {
      let status = try await file.status
      if try await condition(status) { return status }
    }
    return try await downloader.status(of: id)
  }
}
