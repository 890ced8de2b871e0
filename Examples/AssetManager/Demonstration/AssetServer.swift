import Downpipe
import DownpipeTesting

/// A local server of assets of a megabyte. Some of its files fail.
struct AssetServer: Sendable {
  let server: ScriptedHTTPServer

  static func start() async throws -> AssetServer {
    let server = try await ScriptedHTTPServer.start { request in
      switch (request.path, request.number) {
      case ("/slow.pak", ...3): .status(504)
      case ("/shaky.pak", 1): .status(500)
      case ("/broken.pak", _): .status(500)
      default:
        ScriptedReply.file(.pattern(size: 1_000_000), etag: "\"1\"", for: request)
          .after(.throttle(bytesPerSecond: 2_000_000))
      }
    }
    return AssetServer(server: server)
  }

  /// An asset of the server.
  func asset(_ name: String, _ intent: Intent) -> Asset { Asset(url: server.url("/\(name)"), intent: intent) }

  /// The names of the requested files, in order.
  var requested: [String] { server.requests.map { String($0.path.dropFirst()) } }
}
