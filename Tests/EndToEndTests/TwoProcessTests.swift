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
  /// Two processes of the tool in one folder: no byte is fetched twice, no file is a mix, and the partials of a killed
  /// process are taken over.
  @Suite(.serialized) struct TwoProcessTests {
    static let content = ScriptedContent.pattern(size: 8 << 20, seed: 23)
    /// How many bytes the first process has when the second one starts: its partial has a name by then, and a lock.
    static let before = Checkpoints.passed

    /// A server whose first reply sends its first bytes, and the rest when the gate is open.
    func serve(_ held: ServerGate) async throws -> ScriptedHTTPServer {
      try await .start { request in
        let reply = ScriptedReply.file(Self.content, etag: "\"v1\"", for: request)
        return request.number == 1 && request.path != "/small" ? reply.held(at: held, after: Self.before) : reply
      }
    }

    /// Runs a command. The line that the test waits for opens the gate, and so does the end.
    func run(
      _ command: Command, _ gate: ServerGate, when isWanted: @escaping @Sendable (ToolLine, Int32) -> Bool
    ) async throws -> Command.Outcome {
      defer { gate.open() }
      return try await command.run { line, process in
        if let line = ToolLine(line), isWanted(line, process) { gate.open() }
      }
    }

    @Sendable static func hasArrived(_ line: ToolLine, _ process: Int32) -> Bool { line.bytes == before }

    /// Runs a command, and kills it when the ledger has a checkpoint.
    func runKilled(_ command: Command, in folder: TemporaryFolder, ledger: String) async throws {
      let arrived = ServerGate()
      let tool = Watched<Int32>(0)
      async let running = run(command, arrived) { line, process in
        tool.update { $0 = process }
        return Self.hasArrived(line, process)
      }
      await arrived.wait()
      try await Checkpoints.committed(folder.path(ledger), of: folder.path("out"))
      try #require(tool.value > 1)
      kill(tool.value, SIGKILL)
      let outcome = try await running
      #expect(outcome.status == 128 + SIGKILL, "\(outcome.everything)")
      #expect(try removals(in: folder).contains { $0.hasSuffix(".part.owner") }, "it did not hold it")
    }

    func get(
      _ server: ScriptedHTTPServer, into folder: TemporaryFolder, ledger: String, _ more: [String] = []
    ) throws -> Command {
      try Command.downpipe(
        ["get", "\(server.url("/film"))", "-d", folder.path("out"), "--ledger", folder.path(ledger), "--json"] + more)
    }

    /// Returns the files in the folder of partials; none after a success.
    func removals(in folder: TemporaryFolder) throws -> [String] {
      try folder.contents().filter { $0.hasPrefix("out/.downpipe/partials/") || $0.hasPrefix("out/.downpipe/work/") }
    }

    // MARK: One ledger

    @Test func oneLedgerIsShared() async throws {
      let held = ServerGate()
      let count = 24
      func content(_ path: String) -> ScriptedContent {
        .pattern(size: 300_000, seed: UInt64(path.dropFirst()) ?? 0)
      }
      let server = try await ScriptedHTTPServer.start { request in
        .file(
          .pattern(size: 300_000, seed: UInt64(request.path.dropFirst()) ?? 0), etag: "\"\(request.path)\"",
          for: request
        ).held(at: held, after: 1000)
      }
      let folder = try TemporaryFolder()
      let command = try Command.downpipe(
        ["get", "-d", folder.path("out"), "-j", "5", "--json"] + (0..<count).map { "\(server.url("/\($0)"))" })
      async let one = command.run()
      async let other = command.run()
      // As many as one process may run. The other one runs as many, unless both have added everything before the first
      // starts: then the last of them runs the waiting downloads.
      try await server.until { $0.requestCount >= 5 }
      held.open()
      for outcome in [try await one, try await other] {
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(outcome.results.count == count)
        #expect(outcome.results.allSatisfy { $0.event == "finished" }, "\(outcome.everything)")
      }
      #expect(Set(server.requests.map(\.path)).count == count)
      #expect(server.requests.count == count, "each file is fetched once")
      for index in 0..<count {
        let isIdentical = try folder.read("out/\(index)") == content("/\(index)").allBytes
        #expect(isIdentical, "\(index)")
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("out")).count == count + 1)
      #expect(try removals(in: folder).isEmpty)
      await server.shutdown()
    }

    // MARK: Two ledgers

    @Test func aPartialInUseIsNotTouched() async throws {
      let held = ServerGate()
      let server = try await serve(held)
      let folder = try TemporaryFolder()
      let arrived = ServerGate()
      let first = try get(server, into: folder, ledger: "first")
      async let running = run(first, arrived, when: Self.hasArrived)
      await arrived.wait()
      try await Checkpoints.committed(folder.path("first"), of: folder.path("out"))

      // A new partial has no name and no lock: the conflict is noticed at its first checkpoint.
      let second = try await get(server, into: folder, ledger: "second", ["--retry", "0"]).run()
      #expect(second.status == 1, "\(second.everything)")
      let failed = second.results.last
      #expect(failed?.error?.code == "inUse", "\(second.everything)")
      #expect(failed?.error?.message.contains("process") == true, "\(second.everything)")
      #expect(failed?.bytes == 0, "a partial without a name is not kept")
      #expect(server.requests.count == 2)
      #expect(!FileManager.default.fileExists(atPath: folder.path("out/film")))

      // The partial can neither be removed nor listed as an orphan.
      let path = try #require(try removals(in: folder).first { $0.hasSuffix(".part") })
      let remove = try await Command.downpipe([
        "remove", "--all", "-d", folder.path("out"), "--ledger", folder.path("second"),
      ]).run()
      #expect(remove.status == 1, "\(remove.everything)")
      #expect(FileManager.default.fileExists(atPath: folder.path(path)))

      held.open()
      let outcome = try await running
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(outcome.results.last?.bytesFetched == Self.content.size)
      #expect(server.requests.count == 2)
      let isIdentical = try folder.read("out/film") == Self.content.allBytes
      #expect(isIdentical)
      await server.shutdown()
    }

    @Test func theOtherLedgerContinuesAfterwards() async throws {
      let held = ServerGate()
      let server = try await serve(held)
      let folder = try TemporaryFolder()
      let arrived = ServerGate()
      let refused = ServerGate()
      let first = try get(server, into: folder, ledger: "first")
      let second = try get(server, into: folder, ledger: "second", ["--retry", "50"])
      async let running = run(first, arrived, when: Self.hasArrived)
      await arrived.wait()
      try await Checkpoints.committed(folder.path("first"), of: folder.path("out"))
      async let waiting = run(second, refused) { line, _ in line.error?.code == "inUse" }
      await refused.wait()
      held.open()
      let (one, other) = (try await running, try await waiting)
      for outcome in [one, other] {
        #expect(outcome.status == 0, "\(outcome.everything)")
        let path = try #require(outcome.results.last?.path, "\(outcome.everything)")
        let bytes = [UInt8](try Data(contentsOf: URL(filePath: path, directoryHint: .notDirectory)))
        let isIdentical = bytes == Self.content.allBytes
        #expect(isIdentical, "\(path)")
      }
      // The second process started from the beginning: its ledger does not know the bytes of the first one. After the
      // refusal it sends no request before it has the name.
      #expect(server.requests.map(\.range?.start) == [nil, nil, nil])
      #expect(one.results.last?.path != other.results.last?.path)
      #expect(try removals(in: folder).isEmpty)
      await server.shutdown()
    }

    /// The bytes are complete, and a step of the first process is running: no other process may write there yet.
    @Test func aFileInAStepIsNotTouched() async throws {
      let server = try await ScriptedHTTPServer.start { .file(Self.content, etag: "\"v1\"", for: $0) }
      let folder = try TemporaryFolder()
      // The id that the tool gives the URL.
      let probe = try await Command.downpipe(["get", "\(server.url("/film"))", "-d", folder.path("else"), "--json"])
        .run()
      let id = DownloadID(try #require(probe.results.last?.id, "\(probe.everything)"))

      let stepMayEnd = ServerGate()
      let step = FakePostProcessor<File, File>(name: "Look") { file, _ in
        await stepMayEnd.wait()
        return file
      }
      let downloader = try await Downloader {
        HTTPSource()
        FileStore(folder.path("out"))
        #if SQLite
          SQLiteLedger(folder.path("first"))
        #endif
        step
      }
      let download = try await downloader.add(DownloadRequest(server.url("/film"), id: id))
      await step.calls(atLeast: 1)
      let second = try await get(server, into: folder, ledger: "second", ["--retry", "0"]).run()
      #expect(second.status == 1, "\(second.everything)")
      #expect(second.results.last?.error?.code == "inUse", "\(second.everything)")
      stepMayEnd.open()

      _ = try? await download.value
      let state = try await download.status.state
      #expect(state.phase == .finished, "\(state)")
      let isIdentical = (try? folder.read("out/film")) == Self.content.allBytes
      #expect(isIdentical, "the finished file differs from the one of the server")
      await downloader.shutdown()
      await server.shutdown()
    }

    // MARK: A killed process

    @Test(arguments: ["same", "other"])
    func thePartialOfAKilledProcessIsTakenOver(ledger: String) async throws {
      let held = ServerGate()
      let server = try await serve(held)
      let folder = try TemporaryFolder()
      try await runKilled(get(server, into: folder, ledger: "same"), in: folder, ledger: "same")

      let second = try await get(server, into: folder, ledger: ledger, ["--retry", "0"]).run()
      #expect(second.status == 0, "\(second.everything)")
      let word = try #require(second.results.last)
      let start = try #require(word.resumedFrom)
      if ledger == "same" {
        // A checkpoint is written after each second or 4 MiB; the last one may be missing.
        #expect(start >= Checkpoints.bytes)
        #expect(server.requests.map { $0.range?.start ?? 0 } == [0, Checkpoints.start(behind: start)])
      } else {
        #expect(start == 0)
        #expect(server.requests.map(\.range?.start) == [nil, nil])
      }
      let isIdentical = try folder.read("out/film") == Self.content.allBytes
      #expect(isIdentical)
      #expect(try removals(in: folder).isEmpty)
      held.open()
      await server.shutdown()
    }

    /// The parent has not waited for the killed process: it is still in the table of processes, as in a container whose
    /// first process is not an init.
    @Test func aZombieHoldsNoLock() async throws {
      let held = ServerGate()
      let server = try await serve(held)
      let folder = try TemporaryFolder()
      let tool = try Command.downpipe(
        ["get", "\(server.url("/film"))", "-d", folder.path("out"), "--ledger", folder.path("ledger"), "--json"],
        by: ["bash", "-c", "\"$0\" \"$@\" & echo \"tool $!\"; exec sleep 600"])
      let (lines, continuation) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingNewest(100))
      async let parent = tool.run { line, process in
        if line.hasPrefix("tool ") { continuation.yield("parent \(process)") }
        continuation.yield(line)
      }
      var parentID: Int32 = 0
      var child: Int32 = 0
      for await line in lines {
        if line.hasPrefix("parent ") { parentID = Int32(line.dropFirst(7)) ?? 0 }
        if line.hasPrefix("tool ") { child = Int32(line.dropFirst(5)) ?? 0 }
        if ToolLine(line)?.bytes == Self.before { break }
      }
      try #require(child > 1 && parentID > 1)
      try await Checkpoints.committed(folder.path("ledger"), of: folder.path("out"))
      kill(child, SIGKILL)
      #expect(try removals(in: folder).contains { $0.hasSuffix(".part.owner") }, "it did not hold it")
      let second = try await get(server, into: folder, ledger: "ledger", ["--retry", "0"]).run()
      kill(parentID, SIGKILL)
      _ = try await parent
      #expect(second.status == 0, "\(second.everything)")
      #expect((second.results.last?.resumedFrom ?? 0) >= Checkpoints.bytes, "\(second.everything)")
      let isIdentical = (try? folder.read("out/film")) == Self.content.allBytes
      #expect(isIdentical)
      held.open()
      await server.shutdown()
    }
  }
}
