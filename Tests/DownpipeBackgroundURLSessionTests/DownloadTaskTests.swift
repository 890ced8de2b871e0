import DownpipeCore
import DownpipeTesting
import DownpipeURLSession
import Foundation
import HangLimit
import Testing

@testable import DownpipeBackgroundURLSession

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Foundation's own download tasks in an ephemeral session: everything except what only the system does.
@Suite(.serialized, .endsHangs)
struct DownloadTaskTests {
  private let content = ScriptedContent.pattern(size: 1 << 20)

  private func withBackgroundSession(
    _ body: (BackgroundSession, DownloadTaskSession, TemporaryFolder) async throws -> Void
  ) async throws {
    let folder = try TemporaryFolder()
    let configuration = URLSessionSource.Configuration.background("a")
    let tasks = DownloadTaskSession {
      let foundation = URLSessionConfiguration.ephemeral
      configuration.tuneBackground(foundation, connectionsPerHost: 4)
      return foundation
    }
    let sessions = BackgroundSessions()
    let channel = try await sessions.attach("a") {
      (try BackgroundChannel(inbox: BackgroundInbox(folder.path), tasks: tasks), tasks)
    }
    defer { tasks.invalidate() }
    try await body(
      BackgroundSession(identifier: "a", sessions: sessions, channel: channel, configuration: configuration), tasks,
      folder)
  }

  @Test func filesArriveWhole() async throws {
    let content = content
    try await withScriptedServer { request in
      switch request.path {
      case "/file": .file(content, etag: "\"v1\"", for: request)
      case "/redirect": ScriptedReply(302, ["Location": "/file"])
      default: .status(404)
      }
    } _: { server in
      try await withBackgroundSession { source, _, folder in
        for path in ["/file", "/redirect"] {
          let reply = try await source.open(SourceRequest(url: server.url(path), id: "a"))
          #expect(reply.coverage == .whole && reply.length == .known(content.size))
          #expect(reply.finalURL == server.url("/file"))
          let check = BodyCheck(content)
          try await reply.body.forEachChunk(check.sink)
          #expect(check.end == content.size)
        }
        let part = try await source.open(
          SourceRequest(
            url: server.url("/file"), id: "a", range: RequestedRange(from: 1000, to: 5000),
            validator: Validator(entityTag: EntityTag("v1"))))
        #expect(part.coverage == .range(1000..<5000, total: .known(content.size)))
        #expect(try await part.bytes() == content.bytes(in: 1000..<5000))
        let missing = try await source.open(SourceRequest(url: server.url("/missing"), id: "a"))
        #expect(missing.coverage == .none(.status(404)))
        #expect(try await missing.bytes().isEmpty)
      }
      #expect(server.requests.contains { $0.headers["If-Range"] == "\"v1\"" && $0.headers["Range"] != nil })
    }
  }

  @Test func aRunningTaskIsFoundAgain() async throws {
    let (content, gate) = (content, ServerGate())
    try await withScriptedServer { request in
      .file(content, etag: "\"v1\"", for: request).held(at: gate, after: 1000)
    } _: { server in
      try await withBackgroundSession { source, _, _ in
        let request = SourceRequest(url: server.url("/file"), id: "a")
        let first = Task { try await source.open(request) }
        try await server.until { $0.requests.count == 1 }
        await source.stop()
        _ = await first.result
        let channel = try await source.sessions.attach("a") { throw CancellationError() }
        #expect(channel === source.channel)
        async let second = source.open(request)
        gate.open()
        let check = BodyCheck(content)
        try await second.body.forEachChunk(check.sink)
        #expect(check.end == content.size)
      }
      #expect(server.requests.count == 1)
    }
  }

  @Test func failuresAndCancelling() async throws {
    let (content, gate) = (content, ServerGate())
    try await withScriptedServer { request in
      request.path == "/broken"
        ? ScriptedReply([.head(200, ["Content-Length": "1000"]), .send("abc"), .close])
        : .file(content, for: request).held(at: gate, after: 1000)
    } _: { server in
      try await withBackgroundSession { source, _, folder in
        let broken = await downloadError {
          _ = try await source.open(SourceRequest(url: server.url("/broken"), id: "a"))
        }
        #expect(broken?.code == .network)
        let opening = Task { try await source.open(SourceRequest(url: server.url("/file"), id: "a")) }
        try await server.until { $0.requests.count == 2 }
        opening.cancel()
        await #expect(throws: CancellationError.self) { _ = try await opening.value }
        try await server.until { $0.openConnections == 0 }
        #expect(try folder.contents().isEmpty)
      }
      gate.open()
    }
  }
}
