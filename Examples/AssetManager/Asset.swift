import Downpipe
import Foundation

/// A file that the app needs.
struct Asset: Sendable, Hashable {
  /// The link, which identifies the asset.
  var url: URL
  /// Why the app needs the file: `.silent`, `.prefetch` or `.userInitiated`. Only the last one permits mobile data, so it
  /// must be stated, unlike in a `DownloadRequest`.
  var intent: Intent = .prefetch
  /// Its place among the waiting assets; `nil` if the intent decides.
  var priority: Priority?
  /// The folder of the file, below that of all assets.
  var folder: String?
  /// The directory to which the finished file is moved, anywhere on the disk; `nil` if it stays.
  var movesTo: String?

  /// The id of the download: the same link is the same download.
  var id: DownloadID { DownloadID(url.absoluteString) }

  /// The request for the download.
  var request: DownloadRequest {
    let order: [Intent: Priority] = [.userInitiated: .high, .prefetch: .normal, .silent: .low]
    return DownloadRequest(
      url, id: id, priority: priority ?? order[intent] ?? .normal, intent: intent, destination: .init(directory: folder)
    ).with(\.metadata, movesTo.map { ["movesTo": $0] } ?? [:])
  }
}
