#if os(Linux)
  import Downpipe
  import DownpipeTesting
  import Foundation
  import Testing

  extension EndToEnd {
    /// `--wifi-only` in a real network namespace: the default route moves between Ethernet, Wi-Fi and none.
    @Suite(.serialized, .enabled(if: RootAccess.isExpected, Comment(rawValue: RootAccess.absence)))
    struct GateNetworkTests {
      private static let content = ScriptedContent.pattern(size: 16 << 20, seed: 23)
      private static let before: Int64 = 3 << 20

      private static let ethernet = "WiFiOnly: the default route is over eth0"
      private static let nothing = "WiFiOnly: there is no route to the address"

      /// Opens a gate when a download waits for a reason, or has ended.
      private static func notice(_ reason: String, _ gate: ServerGate) -> @Sendable (String, Int32) -> Void {
        { line, _ in
          guard let line = ToolLine(line) else { return }
          if line.reason == reason || line.event == "failed" || line.event == "finished" { gate.open() }
        }
      }

      @Test func aDownloadWaitsForWiFiAndListSaysWhy() async throws {
        try await GateNetworks.with { networks in
          let server = try await ScriptedHTTPServer.start(host: networks.serverAddress) { request in
            .file(.pattern(size: 1000), etag: "\"v1\"", for: request)
          }
          let folder = try TemporaryFolder()
          try await networks.route(over: .eth0)
          let waits = ServerGate()
          let tool = try Command.downpipe(
            ["get", "\(server.url("/film"))", "-d", folder.path, "--wifi-only", "--json"], by: networks.launcher)
          async let running = tool.run(onLine: Self.notice(Self.ethernet, waits))
          await waits.wait()
          let list = try Command.downpipe(
            ["list", "-d", folder.path, "--wifi-only", "--json"], by: networks.launcher)
          #expect(try await list.run().toolLines.map(\.reason) == [Self.ethernet])
          #expect(server.requests.isEmpty)

          try await networks.route(over: .wlan0)
          let outcome = try await running
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(outcome.results.last?.attempts == 1, "\(outcome.everything)")
          #expect(server.requests.count == 1)
          await server.shutdown()
        }
      }

      @Test func aRunningDownloadIsSuspendedAndResumesFromItsBytes() async throws {
        try await GateNetworks.with { networks in
          let held = ServerGate()
          let server = try await ScriptedHTTPServer.start(host: networks.serverAddress) { request in
            let reply = ScriptedReply.file(Self.content, etag: "\"v1\"", for: request)
            return request.number == 1 ? reply.held(at: held, after: Self.before) : reply
          }
          let folder = try TemporaryFolder()
          try await networks.route(over: .wlan0)
          let (arrived, onEthernet, offline) = (ServerGate(), ServerGate(), ServerGate())
          let tool = try Command.downpipe(
            ["get", "\(server.url("/film"))", "-d", folder.path, "--wifi-only", "--json"], by: networks.launcher)
          async let running = tool.run { line, process in
            if ToolLine(line)?.bytes == Self.before { arrived.open() }
            Self.notice(Self.ethernet, onEthernet)(line, process)
            Self.notice(Self.nothing, offline)(line, process)
          }
          await arrived.wait()
          try await networks.route(over: .eth0)
          await onEthernet.wait()
          try await networks.route(over: nil)
          await offline.wait()
          #expect(server.requests.count == 1)
          try await networks.route(over: .wlan0)

          let outcome = try await running
          held.open()
          #expect(outcome.status == 0, "\(outcome.everything)")
          let result = try #require(outcome.results.last)
          #expect(result.resumedFrom == Self.before)
          #expect(result.bytesFetched == Self.content.size + Checkpoints.compared)
          #expect(server.requests.map(\.range?.start) == [nil, Checkpoints.start(behind: Self.before)])
          let isIdentical = try folder.read("film") == Self.content.allBytes
          #expect(isIdentical)
          await server.shutdown()
        }
      }
    }
  }
#endif
