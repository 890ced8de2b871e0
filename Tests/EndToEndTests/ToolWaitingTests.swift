import DownpipeCore
import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension EndToEnd {
  /// What the tool waits for, and what it does not wait for.
  @Suite struct ToolWaitingTests {
    @Test func aWaitIsReportedAndARepeatedCommandTriesAtOnce() async throws {
      let server = try await ScriptedHTTPServer.start { request in
        request.number == 1
          ? .status(503, retryAfter: .seconds(1800)) : .file(.bytes([1, 2, 3]), etag: "\"v1\"", for: request)
      }
      let folder = try TemporaryFolder()
      let get = ["get", "\(server.url("/film"))", "-d", folder.path("out"), "--json"]
      let first = try await Command.downpipe(get).run { line, process in
        if line.contains("\"state\":\"waiting\""), line.contains("503") { kill(process, SIGTERM) }
      }
      #expect(first.status == 130, "\(first.everything)")
      let waits = first.toolLines.filter { $0.state == "waiting" && $0.until != nil }
      #expect(waits.count == 1, "\(first.everything)")

      let second = try await Command.downpipe(get).run { line, process in
        // A tool that waits again does so for half an hour.
        if line.contains("\"state\":\"waiting\"") { kill(process, SIGTERM) }
      }
      #expect(second.status == 0, "\(second.everything)")
      #expect(server.requests.count == 2)
      await server.shutdown()
    }

    /// A finished file that was truncated since does not match the ledger.
    @Test func aFileOfAnotherSizeIsFetchedAgain() async throws {
      let content = ScriptedContent.pattern(size: 1000)
      let server = try await ScriptedHTTPServer.start { .file(content, etag: "\"v1\"", for: $0) }
      let folder = try TemporaryFolder()
      let get = try Command.downpipe(["get", "\(server.url("/film"))", "-d", folder.path("out"), "--json"])
      #expect(try await get.run().status == 0)
      #expect(try await get.run().results.last?.path == folder.path("out/film"))
      #expect(server.requests.count == 1)

      _ = try folder.write([1, 2, 3], to: "out/film")
      let again = try await get.run()
      #expect(again.status == 0, "\(again.everything)")
      #expect(server.requests.count == 2)
      let path = try #require(again.results.last?.path, "\(again.everything)")
      let isIdentical = try [UInt8](Data(contentsOf: URL(filePath: path))) == content.allBytes
      #expect(isIdentical)
      #expect(try folder.read("out/film") == [1, 2, 3], "what is there now may be the user's own")
      await server.shutdown()
    }

    /// The soft limit of a shell does not limit downloads.
    @Test func theSoftLimitOfDescriptorsIsRaised() async throws {
      let held = ServerGate()
      let count = 40
      let server = try await ScriptedHTTPServer.start { request in
        .file(.pattern(size: 10_000), etag: "\"v1\"", for: request).held(at: held, after: 1000)
      }
      let folder = try TemporaryFolder()
      let command = try Command.downpipe(
        ["get", "-d", folder.path("out"), "-j", "\(count)", "--retry", "0", "--json"]
          + (0..<count).map { "\(server.url("/\($0)"))" },
        by: ["sh", "-c", "ulimit -Sn 64; exec \"$@\"", "sh"])
      async let running = command.run { line, _ in
        // A download that has failed sends no request; the others need not wait for it.
        if line.contains("\"event\":\"failed\"") { held.open() }
      }
      Task { if (try? await server.until { $0.requestCount == count }) != nil { held.open() } }
      let outcome = try await running
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(outcome.results.count == count)
      await server.shutdown()
    }
  }
}
