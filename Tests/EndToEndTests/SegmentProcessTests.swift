import Downpipe
import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension EndToEnd {
  /// Segments and what processes and disks do to them.
  @Suite(.serialized) struct SegmentProcessTests {
    private static let content = ScriptedContent.pattern(size: 24 << 20, seed: 31)
    private static let options = ["-s", "8", "--json"]

    /// The first bytes of the file, which come at once: more than one checkpoint has, however few connections there are.
    private static let free: Int64 = 6 << 20

    /// Holds each reply to the process with this name: behind the first bytes of the file, and after a part of what comes later.
    private func serve(holding name: String, at gate: ServerGate) async throws -> ScriptedHTTPServer {
      try await .start { request in
        let reply = ScriptedReply.file(Self.content, etag: "\"1\"", for: request)
        guard request.headers["User-Agent"] == name else { return reply }
        return reply.held(at: gate, after: max(256 << 10, Self.free - (request.range?.start ?? 0)))
      }
    }

    private func get(
      _ server: ScriptedHTTPServer, _ folder: TemporaryFolder, name: String, ledger: String, _ more: [String] = []
    ) throws -> Command {
      try Command.downpipe(
        [
          "get", "\(server.url("/film"))", "-d", folder.path("out"), "--ledger", folder.path(ledger), "-A", name,
        ] + Self.options + more)
    }

    private func isIdentical(_ folder: TemporaryFolder) -> Bool {
      (try? folder.read("out/film")) == Self.content.allBytes
    }

    /// The number of bytes that the ledger has.
    private func bytesKept(_ folder: TemporaryFolder) async throws -> Int64 {
      let list = ["list", "-d", folder.path("out"), "--ledger", folder.path("ledger"), "--json"]
      return try #require(try await Command.downpipe(list).run().toolLines.first?.bytes)
    }

    @Test("another process does not touch the segments of a running one")
    func inUse() async throws {
      let held = ServerGate()
      let server = try await serve(holding: "first", at: held)
      let folder = try TemporaryFolder()
      let first = try get(server, folder, name: "first", ledger: "first")
      async let running = first.run()
      try await Checkpoints.committed(folder.path("first"), of: folder.path("out"))

      let second = try await get(server, folder, name: "second", ledger: "second", ["--retry", "0"]).run()
      #expect(second.status == 1, "\(second.everything)")
      #expect(second.results.last?.error?.code == "inUse", "\(second.everything)")
      held.open()
      let outcome = try await running
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(isIdentical(folder))
      await server.shutdown()
    }

    @Test("a killed process: the next one continues all segments", arguments: ["8", "1", "3"])
    func killed(segments: String) async throws {
      let held = ServerGate()
      let server = try await serve(holding: "first", at: held)
      let folder = try TemporaryFolder()
      let tool = Watched<Int32>(0)
      let first = try get(server, folder, name: "first", ledger: "ledger")
      async let running = first.run(onStart: { process in tool.update { $0 = process } })
      try await Checkpoints.committed(folder.path("ledger"), of: folder.path("out"))
      kill(tool.value, SIGKILL)
      let ended = try await running
      #expect(ended.status == 128 + SIGKILL, "\(ended.everything)")

      let kept = try await bytesKept(folder)
      let second = try await get(server, folder, name: "second", ledger: "ledger", ["-s", segments]).run()
      #expect(second.status == 0, "\(second.everything)")
      let result = try #require(second.results.last)
      #expect(kept >= Checkpoints.bytes && result.resumedFrom ?? 0 > 0, "\(second.everything)")
      // Both runs together: the bytes since the last checkpoint, and those that are compared at the ends of ranges.
      let fetched = try #require(result.bytesFetched)
      let bound = Self.content.size + Checkpoints.bytes + 32 * Checkpoints.compared
      #expect(fetched <= bound, "\(fetched) bytes, of which \(kept) were kept")
      #expect(isIdentical(folder))
      held.open()
      await server.shutdown()
    }

    @Test("an interrupted process: the next one continues, and list shows what is on disk")
    func interrupted() async throws {
      let held = ServerGate()
      let server = try await serve(holding: "first", at: held)
      let folder = try TemporaryFolder()
      let first = try await get(server, folder, name: "first", ledger: "ledger").run { line, process in
        if let bytes = ToolLine(line)?.bytes, bytes >= 5 << 20 { kill(process, SIGINT) }
      }
      #expect(first.status == 130, "\(first.everything)")
      held.open()
      let kept = try await bytesKept(folder)
      #expect(kept >= 5 << 20, "\(kept)")
      let resumed = try await Command.downpipe(
        ["resume", "-d", folder.path("out"), "--ledger", folder.path("ledger")] + Self.options
      ).run()
      #expect(resumed.status == 0, "\(resumed.everything)")
      let fetched = try #require(resumed.results.last?.bytesFetched)
      let bound = Self.content.size + 32 * Checkpoints.compared + 8 * Checkpoints.beyond
      #expect(fetched <= bound, "\(fetched) bytes, of which \(kept) were kept")
      #expect(isIdentical(folder))
      await server.shutdown()
    }

    #if os(Linux)
      @Test(
        "a full disk keeps the segments, and the next command continues them",
        .enabled(if: RootAccess.isExpected, Comment(rawValue: RootAccess.absence)))
      func fullDisk() async throws {
        let server = try await ScriptedHTTPServer.start { request in
          .file(Self.content, etag: "\"1\"", for: request).after(.throttle(bytesPerSecond: 4 << 20))
        }
        let folder = try TemporaryFolder()
        let disk = try await SmallDisk(megabytes: 64)
        let filler = disk.path("filler")
        let get = try Command.downpipe(
          [
            "get", "\(server.url("/film"))", "-d", disk.path, "--ledger", folder.path("ledger"), "-s", "4", "--json",
          ], by: ["timeout", "-k", "1", "\(Command.hangLimit)"])
        let full = try await get.run { line, _ in
          // Another program needs the space that was free when the download began.
          guard ToolLine(line)?.bytes ?? 0 > 0, !FileManager.default.fileExists(atPath: filler) else { return }
          try? Data(count: 56 << 20).write(to: URL(filePath: filler, directoryHint: .notDirectory))
        }
        #expect(full.status == 1, "\(full.everything)")
        let failed = try #require(full.results.last, "\(full.everything)")
        #expect(failed.error?.code == "noSpace", "\(full.everything)")
        let kept = try #require(failed.bytes)
        #expect(kept >= 4 << 20, "\(full.everything)")

        try FileManager.default.removeItem(atPath: filler)
        let second = try await get.run()
        #expect(second.status == 0, "\(second.everything)")
        let fetched = try #require(second.results.last?.bytesFetched)
        #expect(
          fetched <= Self.content.size + 32 * Checkpoints.compared, "\(fetched) bytes, of which \(kept) were kept")
        let isIdentical = try disk.read("film") == Self.content.allBytes
        #expect(isIdentical)
        #expect(try disk.partials().isEmpty)
        await server.shutdown()
      }
    #endif
  }
}
