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
  /// `--window` and `--min-free`.
  @Suite struct GateOptionTests {
    private static func server() async throws -> ScriptedHTTPServer {
      try await .start { .file(.pattern(size: 1000), etag: "\"v1\"", for: $0) }
    }

    /// A window that begins some hours from now, and lasts two.
    private static func window(in hours: Int) -> (text: String, start: String) {
      let hour = Calendar.current.component(.hour, from: Date()) + hours + 24
      func text(_ hour: Int) -> String { (hour % 24 < 10 ? "0" : "") + "\(hour % 24):00" }
      return ("\(text(hour))-\(text(hour + 2))", text(hour))
    }

    @Test func aDownloadThatAnotherCommandTookOverAndLeftIsTakenBack() async throws {
      let held = ServerGate()
      let server = try await ScriptedHTTPServer.start { request in
        let reply = ScriptedReply.file(.pattern(size: 10_000), etag: "\"v1\"", for: request)
        return request.path == "/first" ? reply.held(at: held, after: 1000) : reply
      }
      let folder = try TemporaryFolder()
      let get = ["get", "-d", folder.path("out"), "-j", "1", "--json"]
      async let first = try Command.downpipe(get + ["/first", "/second"].map { "\(server.url($0))" }).run()
      try await server.until { $0.requestCount == 1 }
      let second = try await Command.downpipe(
        get + ["\(server.url("/second"))", "--window", Self.window(in: 3).text]
      ).run { line, process in
        if ToolLine(line)?.reason?.hasPrefix("TimeWindow: ") == true { kill(process, SIGINT) }
      }
      #expect(second.status == 130, "\(second.everything)")
      held.open()
      let outcome = try await first
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(outcome.results.filter { $0.event == "finished" }.count == 2, "\(outcome.everything)")
      #expect(server.requests.map(\.path) == ["/first", "/second"])
      await server.shutdown()
    }

    @Test(arguments: ["--window", "--min-free"])
    func aClosedGateHoldsTheDownloadAndSaysWhy(option: String) async throws {
      let server = try await Self.server()
      let folder = try TemporaryFolder()
      let window = Self.window(in: 3)
      let value = option == "--window" ? window.text : "3EiB"
      let start = option == "--window" ? "TimeWindow: opens at \(window.start)" : "DiskSpace: "
      let get = ["get", "\(server.url("/film"))", "-d", folder.path("out"), "--json"]
      let outcome = try await Command.downpipe(get + [option, value]).run { line, process in
        if ToolLine(line)?.reason?.hasPrefix(start) == true { kill(process, SIGTERM) }
      }
      #expect(outcome.status == 130, "\(outcome.everything)")
      #expect(server.requests.isEmpty)
      let listed = try await Command.downpipe(["list", "-d", folder.path("out"), "--json", option, value]).run()
      let line = try #require(listed.toolLines.first, "\(listed.everything)")
      #expect(line.state == "waiting")
      #expect(line.reason?.hasPrefix(start) == true, "\(listed.everything)")
      let table = try await Command.downpipe(["list", "-d", folder.path("out"), option, value]).run()
      #expect(table.output.contains("(\(start)"), "\(table.everything)")

      // The ledger does not remember the gate.
      let resumed = try await Command.downpipe(["resume", "-d", folder.path("out"), "--json"]).run()
      #expect(resumed.status == 0, "\(resumed.everything)")
      await server.shutdown()
    }

    @Test func openGatesHoldNothing() async throws {
      let server = try await Self.server()
      let folder = try TemporaryFolder()
      let outcome = try await Command.downpipe([
        "get", "\(server.url("/film"))", "-d", folder.path("out"), "--json", "--min-free", "1", "--window",
        Self.window(in: -1).text,
      ]).run()
      #expect(outcome.status == 0, "\(outcome.everything)")
      await server.shutdown()
    }

    #if os(Linux)
      @Test(.enabled(if: RootAccess.isExpected, Comment(rawValue: RootAccess.absence)))
      func aFileThatDoesNotFitAboveTheReserveWaitsBeforeItStarts() async throws {
        let content = ScriptedContent.pattern(size: 8 << 20, seed: 29)
        let server = try await ScriptedHTTPServer.start { .file(content, etag: "\"v1\"", for: $0) }
        let disk = try await SmallDisk(megabytes: 48)
        let other = disk.path("other")
        try Data(count: 20 << 20).write(to: URL(filePath: other))
        let get = try Command.downpipe([
          "get", "\(server.url("/film"))", "-d", disk.path, "--min-free", "24M", "--json",
        ])
        let outcome = try await get.run { line, _ in
          guard let line = ToolLine(line), line.state == "waiting" else { return }
          if line.reason?.hasPrefix("waiting for disk space: the download needs 8.00 MiB, and ") == true {
            try? FileManager.default.removeItem(atPath: other)
          }
        }
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(!FileManager.default.fileExists(atPath: other), "\(outcome.everything)")
        #expect(server.requests.map(\.range) == [nil, nil], "not a byte was kept")
        let isIdentical = try disk.read("film") == content.allBytes
        #expect(isIdentical)
        await server.shutdown()
      }

      @Test(.enabled(if: RootAccess.isExpected, Comment(rawValue: RootAccess.absence)))
      func aDiskThatFillsUpSuspendsTheDownload() async throws {
        let content = ScriptedContent.pattern(size: 8 << 20, seed: 29)
        let before: Int64 = 2 << 20
        let held = ServerGate()
        let server = try await ScriptedHTTPServer.start { request in
          let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
          return request.number == 1 ? reply.held(at: held, after: before) : reply
        }
        let disk = try await SmallDisk(megabytes: 48)
        let (arrived, waits) = (ServerGate(), ServerGate())
        let get = try Command.downpipe([
          "get", "\(server.url("/film"))", "-d", disk.path, "--min-free", "24M", "--json",
        ])
        async let running = get.run { line, _ in
          guard let line = ToolLine(line) else { return }
          if line.bytes == before { arrived.open() }
          if line.reason?.hasPrefix("DiskSpace: ") == true || line.event == "failed" { waits.open() }
        }
        await arrived.wait()
        let other = disk.path("other")
        try Data(count: 30 << 20).write(to: URL(filePath: other))
        await waits.wait()
        #expect(server.requests.count == 1)
        try FileManager.default.removeItem(atPath: other)
        let outcome = try await running
        held.open()
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(outcome.results.last?.resumedFrom == before, "\(outcome.everything)")
        let isIdentical = try disk.read("film") == content.allBytes
        #expect(isIdentical)
        await server.shutdown()
      }
    #endif
  }
}
