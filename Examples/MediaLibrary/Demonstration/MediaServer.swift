import Downpipe
import DownpipeTesting
import Foundation

/// A local server of media that sends a megabyte per second and names its files. It has no song.
struct MediaServer: Sendable {
  private static let media: [String: (name: String, title: String)] = [
    "/1": ("Nosferatu.mp4", "Nosferatu"), "/2": ("Metropolis.mp4", "Metropolis"), "/3": ("", "Faust"),
    "/4": ("Sunrise.epub", "Sunrise"),
  ]

  let server: ScriptedHTTPServer

  static func start() async throws -> MediaServer {
    let server = try await ScriptedHTTPServer.start { request in
      guard let name = media[request.path]?.name, !name.isEmpty else { return .status(503) }
      return ScriptedReply.file(.pattern(size: 1_500_000), etag: "\"1\"", name: name, for: request)
        .after(.throttle(bytesPerSecond: 1_000_000))
    }
    return MediaServer(server: server)
  }

  /// An item of the server.
  func item(_ path: String, _ key: String, of user: String, _ folder: String) -> Item {
    Item(
      key: key, url: server.url("\(path)?session=8f2e"), user: user, info: ["title": Self.media[path]?.title ?? ""],
      folder: folder)
  }
}
