import Downpipe
import DownpipeGates
import DownpipeTesting
import Foundation

@testable import LargeFiles

/// Files of a million bytes on a server that holds the first transfer of each until its gate opens.
final class TestFiles: Sendable {
  static let size: Int64 = 1_000_000
  static let held: Int64 = 300_000
  /// The first byte of the request that resumes a held file: the last 64 KiB are compared.
  static let goesOnAt = held - 65_536
  static let content = ScriptedContent.pattern(size: size)

  let folder: TemporaryFolder
  let server: ScriptedHTTPServer
  let gate = ServerGate()

  init() async throws {
    folder = try TemporaryFolder()
    let gate = gate
    server = try await ScriptedHTTPServer.start { request in
      let reply = ScriptedReply.file(Self.content, etag: "\"1\"", for: request)
      return request.number == 1 ? reply.held(at: gate, after: Self.held) : reply
    }
  }

  var root: String { folder.path("files") }
  func url(_ name: String) -> URL { server.url("/\(name)") }

  /// The first bytes of the requests for a file.
  func starts(of name: String) -> [Int64?] {
    server.requests.filter { $0.path == "/\(name)" }.map { $0.range?.start }
  }

  /// Calls `body` with open files, then closes them.
  func open<Result>(
    source: some Source = HTTPSource(), network: some Gate = ManualGate("Network"),
    cellular: some Gate = ManualGate("Cellular"), _ body: (LargeFiles) async throws -> Result
  ) async throws -> Result {
    let files = try await LargeFiles(root, source: source, network: network, cellular: cellular)
    return try await withCleanup {
      await files.close()
    } _: {
      try await body(files)
    }
  }

  func shutdown() async {
    gate.open()
    await server.shutdown()
    folder.close()
  }
}

extension LargeFiles {
  /// Waits until the held bytes of a file have arrived.
  func waitForHeldBytes(of id: DownloadID) async throws {
    try await wait(for: id) { $0.progress.received >= TestFiles.held && $0.state.phase == .transferring }
  }

  func wait(for id: DownloadID, toBe state: DownloadState) async throws -> DownloadStatus? {
    try await wait(for: id) { $0.state == state }
  }
}

/// Files over a fake source, and over routes that a test changes: gates let transfers from this machine pass.
struct FilesFromAfar {
  static let bytes = DownloadFixtures.pattern(size: 300_000)
  static let url = URL(string: "https://example.org/film")!

  let folder: TemporaryFolder
  let routes: Routes
  /// The clock of the gate.
  let time = VirtualTime()
  let source = FakeSource([url: [.init(bytes).holding(after: 200_000), .init(bytes)]])

  init(_ kind: InterfaceKind) throws {
    folder = try TemporaryFolder()
    routes = Routes(kind)
  }

  /// Moves the default route to an interface of another kind, or to none.
  func move(to kind: InterfaceKind?) async {
    routes.change(to: kind)
    await time.sleepers(atLeast: 1)
    time.advance(by: RouteWatch.settlingTime)
  }
}

/// A default route over an interface that a test changes.
final class Routes: RouteSource {
  private struct State {
    var kind: InterfaceKind?
    var watchers: [AsyncStream<Void>.Continuation] = []
  }

  private let state: Watched<State>

  init(_ kind: InterfaceKind) { state = Watched(State(kind: kind)) }

  func change(to kind: InterfaceKind?) {
    state.update { $0.kind = kind }
    for watcher in state.value.watchers { watcher.yield() }
  }

  func read() throws -> RouteTable {
    guard let kind = state.value.kind else { return RouteTable() }
    return RouteTable([Route(IPAddress(family: .v4, bits: 0), length: 0, interface: "if0")], kinds: ["if0": kind])
  }

  func changes() -> AsyncStream<Void>? {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    state.update { $0.watchers.append(continuation) }
    return stream
  }
}
