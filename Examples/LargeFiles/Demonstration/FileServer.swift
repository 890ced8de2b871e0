import Downpipe
import DownpipeTesting
import Foundation

/// A local server of large files that sends a megabyte per second for each.
struct FileServer: Sendable {
  static let names = ["a.img", "b.img", "c.img"]

  let server: ScriptedHTTPServer

  static func start() async throws -> FileServer {
    let server = try await ScriptedHTTPServer.start { request in
      .file(content(of: String(request.path.dropFirst())), etag: "\"1\"", for: request)
        .after(.throttle(bytesPerSecond: 1_000_000))
    }
    return FileServer(server: server)
  }

  static func content(of name: String) -> ScriptedContent {
    .pattern(size: 6_000_000, seed: name.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) })
  }

  func url(_ name: String) -> URL { server.url("/\(name)") }
}
