import Downpipe
import DownpipeTesting
import Foundation

@testable import AssetManager

/// A server of small files, each of which waits at a gate of its own, and the assets that come from it.
final class TestAssets: Sendable {
  static let content = ScriptedContent.pattern(size: 10_000)

  let folder: TemporaryFolder
  let server: ScriptedHTTPServer
  private let gates: [String: ServerGate]

  init(held names: [String] = []) async throws {
    folder = try TemporaryFolder()
    let gates = Dictionary(uniqueKeysWithValues: names.map { ("/\($0)", ServerGate()) })
    self.gates = gates
    server = try await ScriptedHTTPServer.start { request in
      let reply = ScriptedReply.file(Self.content, etag: "\"1\"", for: request)
      guard let gate = gates[request.path] else { return reply }
      return reply.held(at: gate, after: 1000)
    }
  }

  var root: String { folder.path("assets") }

  func asset(_ name: String, _ intent: Intent = .userInitiated) -> Asset {
    Asset(url: server.url("/\(name)"), intent: intent)
  }

  /// The names of the requested files, in order.
  var requested: [String] { server.requests.map { String($0.path.dropFirst()) } }

  /// Waits until a number of files have been requested.
  func requests(_ count: Int) async throws { try await server.until { $0.requestCount >= count } }

  /// Sends the rest of a file.
  func send(_ name: String) { gates["/\(name)"]?.open() }

  /// Calls `body` with open assets, then closes them.
  func open(_ body: (Assets) async throws -> Void) async throws {
    let assets = try await Assets(root)
    try await withCleanup {
      await assets.close()
    } _: {
      try await body(assets)
    }
  }

  func shutdown() async {
    for gate in gates.values { gate.open() }
    await server.shutdown()
    folder.close()
  }
}

/// The events that a callback has received.
final class Received: Sendable {
  private let events = Watched<[DownloadEvent]>([])

  var callback: Assets.Callback { { event in self.events.update { $0.append(event) } } }
  var count: Int { events.value.count }
  var phases: [DownloadState.Phase] { events.value.compactMap(Self.phase) }

  func wait(for phase: DownloadState.Phase) async {
    await events.wait { $0.contains { Self.phase($0) == phase } }
  }

  private static func phase(_ event: DownloadEvent) -> DownloadState.Phase? {
    if case .state(let state) = event.kind { state.phase } else { nil }
  }
}
