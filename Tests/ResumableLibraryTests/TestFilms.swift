import Downpipe
import DownpipeTesting
import Foundation

@testable import ResumableLibrary

/// Films of a million bytes on a server that holds the first transfer of each film after 300,000 bytes until the gate
/// opens.
final class TestFilms: Sendable {
  static let size: Int64 = 1_000_000
  static let held: Int64 = 300_000
  /// The number of bytes that are transferred again and compared when a film resumes.
  static let compared: Int64 = 65_536
  /// The first byte of the request that resumes a held film.
  static let goesOnAt = held - compared

  let gate = ServerGate()
  let folder: TemporaryFolder
  let server: ScriptedHTTPServer

  init(
    _ answer: @escaping @Sendable (ScriptedRequest, ScriptedReply) -> ScriptedReply = { _, reply in reply }
  ) async throws {
    let gate = gate
    folder = try TemporaryFolder()
    server = try await ScriptedHTTPServer.start { request in
      let reply = ScriptedReply.file(
        Self.content(of: request.path), etag: "\"\(request.path.dropFirst())\"", mediaType: "video/mp4", for: request)
      return answer(request, request.number == 1 ? reply.held(at: gate, after: Self.held) : reply)
    }
  }

  var root: String { folder.path("films") }

  static func content(of path: String) -> ScriptedContent {
    .pattern(size: size, seed: path.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) })
  }

  /// An entry `a.mp4` for the film `/a`.
  func film(_ name: String) -> Film {
    Film(id: DownloadID(name), url: server.url("/\(name)"), name: name, type: "mp4")
  }

  /// The first bytes of the requests for a film.
  func starts(of name: String) -> [Int64?] {
    server.requests.filter { $0.path == "/\(name)" }.map { $0.range?.start }
  }

  /// Calls `body` with an open library, then closes the library.
  func open<Result>(
    slots: Int = 2, network: some Gate = ManualGate("Network"), source: some Source = HTTPSource(),
    at root: String? = nil, _ body: (Library) async throws -> Result
  ) async throws -> Result {
    let library = try await Library(root ?? self.root, slots: slots, network: network, source: source)
    do {
      let result = try await body(library)
      await library.close()
      return result
    } catch {
      await library.close()
      throw error
    }
  }

  func shutdown() async {
    gate.open()
    await server.shutdown()
    folder.close()
  }
}

extension Library {
  /// Waits until the held bytes of a film have arrived.
  func waitForHeldBytes(of id: DownloadID) async throws {
    try await wait(for: id) { $0.progress.received >= TestFilms.held && $0.state.phase == .transferring }
  }

  /// Waits until the download of a film ends.
  func finish(_ id: DownloadID) async throws -> DownloadStatus? { try await wait(for: id) { _ in false } }
}
