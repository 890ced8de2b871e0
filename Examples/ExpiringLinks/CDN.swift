import Downpipe
import DownpipeTesting
import Foundation

/// A host of a content delivery network. It serves a film to requests with a valid link, until the link expires.
struct CDN: Sendable {
  /// The answer to a request with an expired link.
  enum Refusal: Sendable {
    /// Status 403.
    case forbidden
    /// A redirect to a log-in page (`text/html`) with status 200.
    case logInPage
  }

  private static let path = "/film.mkv"

  /// The name of the host, for messages.
  let name: String
  /// The server, on its own port.
  let server: ScriptedHTTPServer
  private let signer: LinkSigner

  /// Starts a host that sends `speed` bytes per second and closes the connection when the link expires.
  static func start(
    _ name: String, film: ScriptedContent, etag: String?, speed: Int, refusal: Refusal, time: ServerTime
  ) async throws -> CDN {
    let signer = LinkSigner()
    let server = try await ScriptedHTTPServer.start { request in
      if request.path == "/login" {
        return ScriptedReply(200, ["Content-Type": "text/html"], body: .text("<p>Who are you?</p>"))
      }
      let life = signer.expiry(of: request.target)?.timeIntervalSince(time.now()) ?? 0
      guard life > 0 else { return refusal == .forbidden ? .status(403) : .redirect(to: "/login") }
      let reply = ScriptedReply.file(film, etag: etag, mediaType: "video/x-matroska", for: request)
      let bytes = min(Int64(life * Double(speed)), film.size - (request.range?.start ?? 0))
      return time.send(reply.truncated(after: bytes), bytes, speed)
    }
    return CDN(name: name, server: server, signer: signer)
  }

  /// Makes a link to the film at this host.
  func link(until expiry: Date, _ form: LinkSigner.Form) -> URL {
    server.url(signer.sign(Self.path, until: expiry, form))
  }
}
