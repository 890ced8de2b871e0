import Downpipe
import DownpipeTesting
import Foundation

/// A local server of films. It sends a megabyte per second and resets the first transfer of one film.
struct FilmServer: Sendable {
  static let films: [String: ScriptedContent] = [
    "metropolis": .pattern(size: 6_000_000, seed: 1), "nosferatu": .pattern(size: 5_000_000, seed: 2),
    "sunrise": .pattern(size: 4_000_000, seed: 3), "caligari": .pattern(size: 1_500_000, seed: 4),
  ]

  let server: ScriptedHTTPServer

  static func start() async throws -> FilmServer {
    let server = try await ScriptedHTTPServer.start { request in
      let name = String(request.path.dropFirst())
      guard let film = films[name] else { return .status(404) }
      let reply = ScriptedReply.file(film, etag: "\"\(name)-1\"", mediaType: "video/mp4", for: request)
        .after(.throttle(bytesPerSecond: 1_000_000))
      return name == "nosferatu" && request.number == 1 ? reply.truncated(after: 800_000, reset: true) : reply
    }
    return FilmServer(server: server)
  }

  /// A film of the server, as an entry of the library.
  func film(_ name: String) -> Film {
    Film(id: DownloadID(name), url: server.url("/\(name)"), name: name.capitalized, type: "mp4")
  }

  /// The number of bytes sent so far.
  var bytesSent: Int64 { server.activity.bytesSent }
}
