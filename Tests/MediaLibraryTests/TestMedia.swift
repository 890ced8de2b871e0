import Downpipe
import DownpipeTesting
import Foundation

@testable import MediaLibrary

/// Media of a million bytes on a server that holds the first transfer of each until its gate opens.
final class TestMedia: Sendable {
  static let size: Int64 = 1_000_000
  static let held: Int64 = 300_000
  /// The first byte of the request that resumes a held item: the last 64 KiB are compared.
  static let goesOnAt = held - 65_536

  let folder: TemporaryFolder
  let server: ScriptedHTTPServer
  let gate = ServerGate()
  let notices = Watched<[String]>([])

  init() async throws {
    folder = try TemporaryFolder()
    let gate = gate
    server = try await ScriptedHTTPServer.start { request in
      if request.path == "/broken" { return .status(503) }
      let reply = ScriptedReply.file(
        .pattern(size: Self.size), etag: "\"1\"", name: "Film of \(request.path.dropFirst()).mp4", for: request)
      return request.number == 1 ? reply.held(at: gate, after: Self.held) : reply
    }
  }

  var root: String { folder.path("media") }

  func item(_ key: String, of user: String = "anna", path: String? = nil) -> Item {
    Item(key: key, url: server.url("/\(path ?? key)"), user: user)
  }

  /// The first bytes of the requests for an item.
  func starts(of name: String) -> [Int64?] {
    server.requests.filter { $0.path == "/\(name)" }.map { $0.range?.start }
  }

  /// Calls `body` with an open library, then closes it.
  func open(
    user: String? = "anna", timing: some Gate = ManualGate("Timing"),
    options: DownloaderOptions = DownloaderOptions(), _ body: (MediaLibrary) async throws -> Void
  ) async throws {
    let notices = notices
    let library = try await MediaLibrary(root, timing: timing, options: options) { key, info, error in
      notices.update { $0.append("\(key) (\(info["title"] ?? "")): \(error.message)") }
    }
    if let user { library.logIn(user) }
    try await withCleanup {
      await library.close()
    } _: {
      try await body(library)
    }
  }

  func shutdown() async {
    gate.open()
    await server.shutdown()
    folder.close()
  }
}

extension MediaLibrary {
  /// Waits until an item meets a condition, or until its events end.
  @discardableResult
  func wait(for key: String, until condition: (DownloadStatus) -> Bool) async throws -> DownloadStatus? {
    guard let item = try await downloader.download(DownloadID(key)) else { return nil }
    for await _ in item.events {
      let status = try await item.status
      if condition(status) { return status }
    }
    return try await item.status
  }

  /// Waits until the held bytes of an item have arrived.
  func waitForHeldBytes(of key: String) async throws {
    try await wait(for: key) { $0.progress.received >= TestMedia.held && $0.state.phase == .transferring }
  }
}
