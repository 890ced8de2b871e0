import Downpipe
import Foundation

/// An entry of the library.
struct Film: Sendable, Hashable {
  /// The id of the entry, which stays the same when its link changes.
  var id: DownloadID
  /// The link to the film.
  var url: URL
  /// The name that the user gave the film.
  var name: String
  /// The extension of the file.
  var type: String

  /// The name of the file. The library decides its folder.
  var fileName: String { "\(name).\(type)" }

  /// The request for the download of the film.
  var request: DownloadRequest {
    DownloadRequest(
      url, id: id, destination: .init(name: fileName)
    ).with(\.metadata, ["name": name, "type": type])
  }
}

extension Film {
  /// Makes the entry of a download.
  init(_ request: DownloadRequest) {
    self.init(
      id: request.id, url: request.url, name: request.metadata["name"] ?? "", type: request.metadata["type"] ?? "")
  }
}
