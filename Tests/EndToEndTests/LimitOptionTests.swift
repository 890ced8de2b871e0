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
  /// `--limit-rate`, `--jobs` and `--priority`, and what `list` says about downloads that they hold back.
  @Suite struct LimitOptionTests {
    private static func server() async throws -> ScriptedHTTPServer {
      try await .start { .file(.pattern(size: 4 << 20), etag: "\"v1\"", for: $0) }
    }

    @Test func aLimitedDownloadGoesOnAndTheNextOneWaitsForItsTurn() async throws {
      let server = try await Self.server()
      let folder = try TemporaryFolder()
      let out = ["-d", folder.path("out")]
      let (arrived, process) = (ServerGate(), Watched<pid_t?>(nil))
      let get = try Command.downpipe(
        ["get", "\(server.url("/a"))", "\(server.url("/b"))", "-j", "1", "--limit-rate", "1", "--priority", "low"]
          + ["--json"] + out)
      // One byte for each second: no file ends before the signal.
      async let running = get.run { line, id in
        guard let line = ToolLine(line), line.event == "progress", line.bytes ?? 0 > 0 else { return }
        process.update { $0 = id }
        arrived.open()
      }
      await arrived.wait()
      let list = try await Command.downpipe(["list", "--json"] + out).run()
      #expect(list.toolLines.map(\.state) == ["transferring", "waiting"], "\(list.everything)")
      #expect(list.toolLines.map(\.priority) == [-100, -100], "\(list.everything)")
      #expect(
        list.toolLines.last?.reason == "waiting for its turn: 1 download is running, 1 from its host",
        "\(list.everything)")
      if let id = process.value { kill(id, SIGTERM) }
      let outcome = try await running
      #expect(outcome.status == 130, "\(outcome.everything)")

      let table = try await Command.downpipe(["list"] + out).run()
      #expect(table.output.contains("(no download is running)"), "\(table.everything)")
      let resumed = try await Command.downpipe(["resume", "--json", "--priority", "high"] + out).run()
      #expect(resumed.status == 0, "\(resumed.everything)")
      let after = try await Command.downpipe(["list", "--json"] + out).run()
      #expect(after.toolLines.map(\.priority) == [100, 100], "\(after.everything)")
      await server.shutdown()
    }

    @Test func outsideItsHoursTheLimitDoesNotApply() async throws {
      let server = try await Self.server()
      let folder = try TemporaryFolder()
      let hour = Calendar.current.component(.hour, from: Date())
      let hours = "\((hour + 3) % 24):00-\((hour + 5) % 24):00"
      // With the limit it would take weeks.
      let outcome = try await Command.downpipe([
        "get", "\(server.url("/a"))", "-d", folder.path("out"), "--limit-rate", "1", "--limit-rate-during", hours,
      ]).run()
      #expect(outcome.status == 0, "\(outcome.everything)")
      await server.shutdown()
    }
  }
}
