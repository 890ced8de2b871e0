import DownpipeTesting
import Foundation
import HangLimit
import NIOCore
import NIOPosix
import Testing

@testable import Benchmark

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The network that the benchmark imitates, over real sockets.
@Suite(.endsHangs)
struct NetworkProxyTests {
  private let group = MultiThreadedEventLoopGroup.singleton

  private func fetch(_ port: Int) async throws -> (bytes: Data, time: Duration) {
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    guard let url = URL(string: "http://127.0.0.1:\(port)/a") else { return (Data(), .zero) }
    let clock = ContinuousClock()
    let start = clock.now
    let bytes = try await session.data(from: url).0
    return (bytes, clock.now - start)
  }

  @Test func bytesPassInOrder() async throws {
    let content = ScriptedContent.pattern(size: 3_000_000)
    try await withScriptedServer {
      .file(content, for: $0)
    } _: { server in
      let passed = NetworkProxy.PassedBytes()
      let proxy = try await NetworkProxy(to: server.port, .init(delay: .milliseconds(5)), counting: passed, group)
      let bytes = try await fetch(proxy.port).bytes
      #expect(Array(bytes) == content.bytes(in: 0..<3_000_000))
      #expect(passed.value > 3_000_000 && passed.value < 3_002_000)
      proxy.stop()
    }
  }

  /// A round trip for the handshake and one for the request.
  @Test func aDelayIsTwoRoundTripsForAFirstReply() async throws {
    try await withScriptedServer {
      .file(.pattern(size: 10), for: $0)
    } _: { server in
      let proxy = try await NetworkProxy(
        to: server.port, .init(delay: .milliseconds(100)), counting: NetworkProxy.PassedBytes(), group)
      let time = try await fetch(proxy.port).time
      #expect(time >= .milliseconds(400))
      proxy.stop()
    }
  }

  @Test func oneConnectionIsSlow() async throws {
    let rules = NetworkProxy.Rules(slow: (2, 60_000))
    #expect((1...3).map(rules.bytesPerSecond) == [nil, 60_000, nil])
    try await withScriptedServer {
      .file(.pattern(size: 30_000), for: $0)
    } _: { server in
      let proxy = try await NetworkProxy(to: server.port, rules, counting: NetworkProxy.PassedBytes(), group)
      // Each session has a connection of its own.
      _ = try await fetch(proxy.port)
      #expect(try await fetch(proxy.port).time >= .milliseconds(450))
      proxy.stop()
    }
  }

  @Test func aMirrorDies() async throws {
    try await withScriptedServer {
      .file(.pattern(size: 30_000_000), for: $0)
    } _: { server in
      let passed = NetworkProxy.PassedBytes()
      let dying = try await NetworkProxy(to: server.port, .init(lifetime: 10_000), counting: passed, group)
      let other = try await NetworkProxy(to: server.port, .init(), counting: passed, group)
      let port = dying.port
      await #expect(throws: (any Error).self) { try await fetch(port) }
      // It refuses new connections, and the other one goes on.
      await #expect(throws: (any Error).self) { try await fetch(port) }
      #expect(try await fetch(other.port).bytes.count == 30_000_000)
      other.stop()
    }
  }
}
