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
  /// Two processes of the tool in one folder: nothing is fetched twice, nothing is mixed, and whatever a process that
  /// was killed has left is taken over.
  @Suite(.serialized) struct TwoProcessTests {
    static let content = ScriptedContent.pattern(size: 8 << 20, seed: 23)
    /// What the first process has when the second one comes.
    static let before: Int64 = 3 << 20

    /// A server that sends the first request the first bytes, and the rest when the gate is open.
    private func serve(_ held: ServerGate) async throws -> ScriptedHTTPServer {
      try await .start { request in
        let reply = ScriptedReply.file(Self.content, etag: "\"v1\"", for: request)
        return request.number == 1 && request.path != "/small" ? reply.held(at: held, after: Self.before) : reply
      }
    }

    /// Runs a command, and opens the gate at the line that is waited for, or at the end.
    private func run(
      _ command: Command, _ gate: ServerGate, when isWanted: @escaping @Sendable (ToolLine, Int32) -> Bool
    ) async throws -> Command.Outcome {
      defer { gate.open() }
      return try await command.run { line, process in
        if let line = ToolLine(line), isWanted(line, process) { gate.open() }
      }
    }

    @Sendable private static func hasArrived(_ line: ToolLine, _ process: Int32) -> Bool { line.bytes == before }

    @Sendable private static func killsItself(_ line: ToolLine, _ process: Int32) -> Bool {
      guard hasArrived(line, process) else { return false }
      kill(process, SIGKILL)
      return true
    }

    private func get(
      _ server: ScriptedHTTPServer, into folder: TemporaryFolder, ledger: String, _ more: [String] = []
    ) throws -> Command {
      try Command.downpipe(
        ["get", "\(server.url("/film"))", "-d", folder.path("out"), "--ledger", folder.path(ledger), "--json"] + more)
    }

    /// What is in the folder of partials: nothing, when all is well.
    private func leftovers(in folder: TemporaryFolder) throws -> [String] {
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
      // More than one process may have under way.
      try await server.until { $0.requestCount == 10 }
      held.open()
      for outcome in [try await one, try await other] {
        #expect(outcome.status == 0, "\(outcome.everything)")
        #expect(outcome.lastWords.count == count)
        #expect(outcome.lastWords.allSatisfy { $0.event == "finished" }, "\(outcome.everything)")
      }
      #expect(Set(server.requests.map(\.path)).count == count)
      #expect(server.requests.count == count, "each file is fetched once")
      for index in 0..<count {
        let isIdentical = try folder.read("out/\(index)") == content("/\(index)").allBytes
        #expect(isIdentical, "\(index)")
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("out")).count == count + 1)
      #expect(try leftovers(in: folder).isEmpty)
      await server.shutdown()
    }

    // MARK: Two ledgers

    @Test func whatIsHeldIsNotTouched() async throws {
      let held = ServerGate()
      let server = try await serve(held)
      let folder = try TemporaryFolder()
      let arrived = ServerGate()
      let first = try get(server, into: folder, ledger: "first")
      async let running = run(first, arrived, when: Self.hasArrived)
      await arrived.wait()

      let second = try await get(server, into: folder, ledger: "second", ["--retry", "0"]).run()
      #expect(second.status == 1, "\(second.everything)")
      let failed = second.lastWords.last
      #expect(failed?.error?.code == "inUse", "\(second.everything)")
      #expect(failed?.error?.message.contains("the process ") == true, "\(second.everything)")
      #expect(failed?.error?.message.contains("wait until it is done") == true, "\(second.everything)")
      #expect(failed?.bytesFetched == 0)
      #expect(server.requests.count == 1)

      // Removing is refused as well, and so is calling it an orphan.
      let path = try #require(try leftovers(in: folder).first { $0.hasSuffix(".part") })
      let remove = try await Command.downpipe([
        "remove", "--all", "-d", folder.path("out"), "--ledger", folder.path("second"),
      ]).run()
      #expect(remove.status == 1, "\(remove.everything)")
      #expect(FileManager.default.fileExists(atPath: folder.path(path)))

      held.open()
      let outcome = try await running
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(outcome.lastWords.last?.bytesFetched == Self.content.size)
      #expect(server.requests.count == 1)
      let isIdentical = try folder.read("out/film") == Self.content.allBytes
      #expect(isIdentical)
      await server.shutdown()
    }

    @Test func theOtherLedgerGetsItsTurn() async throws {
      let held = ServerGate()
      let server = try await serve(held)
      let folder = try TemporaryFolder()
      let arrived = ServerGate()
      let refused = ServerGate()
      let first = try get(server, into: folder, ledger: "first")
      let second = try get(server, into: folder, ledger: "second", ["--retry", "50"])
      async let running = run(first, arrived, when: Self.hasArrived)
      await arrived.wait()
      async let waiting = run(second, refused) { line, _ in line.error?.code == "inUse" }
      await refused.wait()
      held.open()
      let (one, other) = (try await running, try await waiting)
      for outcome in [one, other] {
        #expect(outcome.status == 0, "\(outcome.everything)")
        let path = try #require(outcome.lastWords.last?.path, "\(outcome.everything)")
        let bytes = [UInt8](try Data(contentsOf: URL(filePath: path, directoryHint: .notDirectory)))
        let isIdentical = bytes == Self.content.allBytes
        #expect(isIdentical, "\(path)")
      }
      // The second began anew: its ledger knows nothing of what the first one had.
      #expect(server.requests.map(\.range?.start) == [nil, nil])
      #expect(one.lastWords.last?.path != other.lastWords.last?.path)
      #expect(try leftovers(in: folder).isEmpty)
      await server.shutdown()
    }

    /// The bytes are complete, and a step of the first process is at work on them: still nobody else may write there.
    @Test func whatAStepReadsIsNotTouched() async throws {
      let held = ServerGate()
      let server = try await ScriptedHTTPServer.start { request in
        let reply = ScriptedReply.file(Self.content, etag: "\"v1\"", for: request)
        return request.number == 3 ? reply.held(at: held, after: Self.before) : reply
      }
      let folder = try TemporaryFolder()
      // The id that the tool gives the URL.
      let probe = try await Command.downpipe(["get", "\(server.url("/film"))", "-d", folder.path("else"), "--json"])
        .run()
      let id = DownloadID(try #require(probe.lastWords.last?.id, "\(probe.everything)"))

      let stepMayEnd = ServerGate()
      let step = FakePostProcessor<File, File>(name: "Look") { file, _ in
        await stepMayEnd.wait()
        return file
      }
      let downloader = try await Downloader {
        HTTPSource()
        FileStore(folder.path("out"))
        SQLiteLedger(folder.path("first"))
        step
      }
      let download = try await downloader.add(DownloadRequest(server.url("/film"), id: id))
      await step.calls(atLeast: 1)
      let isOver = ServerGate()
      async let second = run(
        get(server, into: folder, ledger: "second", ["--retry", "0"]), isOver, when: Self.hasArrived)
      await isOver.wait()
      stepMayEnd.open()

      _ = try? await download.value
      let state = try await download.status.state
      #expect(state.phase == .finished, "\(state)")
      let isIdentical = (try? folder.read("out/film")) == Self.content.allBytes
      #expect(isIdentical, "the finished file is not the server's")
      held.open()
      let outcome = try await second
      #expect(outcome.status == 1, "\(outcome.everything)")
      #expect(outcome.lastWords.last?.error?.code == "inUse", "\(outcome.everything)")
      await downloader.shutdown()
      await server.shutdown()
    }

    // MARK: One that was killed

    @Test(arguments: ["same", "other"])
    func whatAKilledProcessHeldIsTakenOver(ledger: String) async throws {
      let held = ServerGate()
      let server = try await serve(held)
      let folder = try TemporaryFolder()
      let killed = ServerGate()
      let first = try await run(get(server, into: folder, ledger: "same"), killed, when: Self.killsItself)
      #expect(first.status == 128 + SIGKILL)
      #expect(try leftovers(in: folder).contains { $0.hasSuffix(".part.owner") }, "it did not hold it")

      let second = try await get(server, into: folder, ledger: ledger, ["--retry", "0"]).run()
      #expect(second.status == 0, "\(second.everything)")
      let word = try #require(second.lastWords.last)
      let start = try #require(word.resumedFrom)
      if ledger == "same" {
        // A checkpoint is written each second or 4 MiB, and the last one may not have been.
        #expect(server.requests.map { $0.range?.start ?? 0 } == [0, start])
      } else {
        #expect(start == 0)
        #expect(server.requests.map(\.range?.start) == [nil, nil])
      }
      let isIdentical = try folder.read("out/film") == Self.content.allBytes
      #expect(isIdentical)
      #expect(try leftovers(in: folder).isEmpty)
      held.open()
      await server.shutdown()
    }

    /// Nobody has asked what became of the killed process: it is still in the table of processes, as in a container
    /// whose first process is no init.
    @Test func aZombieHoldsNothing() async throws {
      let held = ServerGate()
      let server = try await serve(held)
      let folder = try TemporaryFolder()
      let tool = try Command.downpipe(
        ["get", "\(server.url("/film"))", "-d", folder.path("out"), "--ledger", folder.path("ledger"), "--json"],
        by: ["bash", "-c", "\"$0\" \"$@\" & echo \"tool $!\"; exec sleep 60"])
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
      kill(child, SIGKILL)
      let second = try await get(server, into: folder, ledger: "ledger", ["--retry", "0"]).run()
      kill(parentID, SIGKILL)
      _ = try await parent
      #expect(second.status == 0, "\(second.everything)")
      let isIdentical = (try? folder.read("out/film")) == Self.content.allBytes
      #expect(isIdentical)
      held.open()
      await server.shutdown()
    }

    // MARK: Orphans

    /// What is left of a ledger that somebody has removed, before and after there is a new one.
    @Test(arguments: ["no ledger", "a new ledger"])
    func orphansAreListedAndRemoved(beside ledger: String) async throws {
      let held = ServerGate()
      let server = try await serve(held)
      let folder = try TemporaryFolder()
      let killed = ServerGate()
      let first = try await run(get(server, into: folder, ledger: "out/.downpipe/ledger.sqlite"), killed) {
        Self.killsItself($0, $1)
      }
      #expect(first.status == 128 + SIGKILL)
      for name in try FileManager.default.contentsOfDirectory(atPath: folder.path("out/.downpipe"))
      where name.hasPrefix("ledger.sqlite") {
        try FileManager.default.removeItem(atPath: folder.path("out/.downpipe/\(name)"))
      }
      if ledger == "a new ledger" {
        let other = try await Command.downpipe(["get", "\(server.url("/small"))", "-d", folder.path("out")]).run()
        #expect(other.status == 0, "\(other.everything)")
      }
      let partial = try #require(try leftovers(in: folder).first { $0.hasSuffix(".part") })

      let listed = try await Command.downpipe(["list", "--orphans", "-d", folder.path("out"), "--json"]).run()
      #expect(listed.status == 0, "\(listed.everything)")
      let orphan = listed.toolLines.first
      #expect(listed.toolLines.count == 1, "\(listed.everything)")
      #expect(partial.hasSuffix("/\(orphan?.id ?? "").\(orphan?.generation ?? 0).part"), "\(partial)")
      #expect((orphan?.bytes ?? 0) >= Self.before)

      let removed = try await Command.downpipe(["remove", "--orphans", "-d", folder.path("out")]).run()
      guard ledger == "a new ledger" else {
        // Without a ledger every partial looks like an orphan; whoever forgot to name it must not lose them all.
        #expect(removed.status == 2, "\(removed.everything)")
        #expect(try leftovers(in: folder).contains(partial))
        held.open()
        return await server.shutdown()
      }
      #expect(removed.status == 0, "\(removed.everything)")
      #expect(removed.output == "removed 1\n")
      #expect(try leftovers(in: folder).isEmpty)
      let none = try await Command.downpipe(["list", "--orphans", "-d", folder.path("out"), "--json"]).run()
      #expect(none.status == 0 && none.lines.isEmpty, "\(none.everything)")
      held.open()
      await server.shutdown()
    }

    @Test func whatALivingProcessHoldsIsNoOrphan() async throws {
      let held = ServerGate()
      let server = try await serve(held)
      let folder = try TemporaryFolder()
      // The default ledger knows something else.
      let other = try await Command.downpipe(["get", "\(server.url("/other"))", "-d", folder.path("out"), "--json"]).run
      {
        line, process in if ToolLine(line)?.bytes == Self.before { kill(process, SIGINT) }
      }
      #expect(other.status == 130, "\(other.everything)")
      let arrived = ServerGate()
      async let running = run(get(server, into: folder, ledger: "own"), arrived, when: Self.hasArrived)
      await arrived.wait()
      let listed = try await Command.downpipe(["list", "--orphans", "-d", folder.path("out"), "--json"]).run()
      #expect(listed.status == 0 && listed.lines.isEmpty, "\(listed.everything)")
      let removed = try await Command.downpipe(["remove", "--orphans", "-d", folder.path("out")]).run()
      #expect(removed.status == 0, "\(removed.everything)")
      #expect(removed.output == "removed 0\n")
      held.open()
      let outcome = try await running
      #expect(outcome.status == 0, "\(outcome.everything)")
      #expect(server.requests.filter { $0.path == "/film" }.count == 1)
      let isIdentical = try folder.read("out/film") == Self.content.allBytes
      #expect(isIdentical)
      // And what the default ledger has begun is still there for it.
      let resumed = try await Command.downpipe(["resume", "-d", folder.path("out"), "--json"]).run()
      #expect(resumed.status == 0, "\(resumed.everything)")
      #expect(resumed.lastWords.last?.resumedFrom == Self.before)
      await server.shutdown()
    }
  }
}
