import Downpipe
import Foundation

/// An entry of the library, as its user knows it.
struct Film: Sendable, Hashable {
  /// The entry's own name, which outlives its links.
  var id: DownloadID
  /// Where the film is.
  var url: URL
  /// What the user calls it.
  var name: String
  /// Its type: the extension of its file.
  var type: String

  /// The file's name; its folder is the library's business.
  var fileName: String { "\(name).\(type)" }

  /// The film as a download.
  var request: DownloadRequest {
    DownloadRequest(
      url, id: id, metadata: ["name": name, "type": type], destination: .init(name: fileName))
  }
}

extension Film {
  /// The film that a download is of.
  init(_ request: DownloadRequest) {
    self.init(
      id: request.id, url: request.url, name: request.metadata["name"] ?? "", type: request.metadata["type"] ?? "")
  }
}
