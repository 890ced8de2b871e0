import DownpipeCore
import DownpipeTesting
import Foundation

/// The demo's server: loopback only, slow on purpose, and faulty as its files say.
struct DemoServer: Sendable {
  private let server: ScriptedHTTPServer

  /// Starts it on a free port.
  static func start(_ files: [DemoFile]) async throws -> DemoServer {
    let byPath = Dictionary(files.map { (path(of: $0), $0) }, uniquingKeysWith: { first, _ in first })
    let server = try await ScriptedHTTPServer.start { request in
      guard let file = byPath[request.path] else { return .status(404) }
      return reply(to: request, with: file)
    }
    return DemoServer(server: server)
  }

  /// Where a file is.
  func url(of file: DemoFile) -> URL { server.url(Self.path(of: file)) }

  /// Ends it.
  func shutdown() async { await server.shutdown() }

  private static func path(of file: DemoFile) -> String {
    "/" + (file.name.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? file.name)
  }

  private static func reply(to request: ScriptedRequest, with file: DemoFile) -> ScriptedReply {
    let isFirst = request.number == 1
    if file.fault == .busy, isFirst { return .status(503, retryAfter: .seconds(1)) }
    let reply = ScriptedReply.file(file.content, etag: "\"\(file.name.utf8.count)-1\"", for: request)
      .after(.throttle(bytesPerSecond: file.speed))
    if case .cut(let count) = file.fault, isFirst { return reply.truncated(after: count, reset: true) }
    return reply
  }
}
