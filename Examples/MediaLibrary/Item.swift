import Downpipe
import Foundation

/// A film, a song or a book of a user.
struct Item: Sendable, Hashable {
  /// Identifies the item. The link may change.
  var key: String
  /// The link to the file.
  var url: URL
  /// The user of the item.
  var user: String
  /// What the app wants to know about the item.
  var info: [String: String] = [:]
  /// The wanted folder below the root, such as `Documents/Films` or `Caches`.
  var folder: String?
  /// Whether the system chooses the time of the transfer.
  var isDiscretionary = false

  /// The request for the download. The key is its id, and the server names the file.
  var request: DownloadRequest {
    DownloadRequest(
      url, id: DownloadID(key), intent: isDiscretionary ? .silent : .userInitiated,
      tags: [MediaLibrary.tag(of: user)], destination: .init(directory: folder)
    ).with(\.metadata, info)
  }
}
