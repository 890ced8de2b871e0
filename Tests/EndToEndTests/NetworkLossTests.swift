#if os(Linux)
  import Downpipe
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  extension EndToEnd {
    /// The network fails in the middle of a transfer and comes back: real TCP over a cable that is pulled.
    @Suite(.serialized, .enabled(if: RootAccess.isExpected, Comment(rawValue: RootAccess.absence)))
    struct NetworkLossTests {
      static let content = ScriptedContent.pattern(size: 16 << 20, seed: 17)
      /// How many bytes have arrived when the cable is pulled.
      static let before: Int64 = 3 << 20

      /// A server at the near end. The first reply sends its first bytes, and the rest when the gate is open.
      private func serve(_ cable: Cable, _ held: ServerGate) async throws -> ScriptedHTTPServer {
        try await .start(host: cable.nearAddress, sendBuffer: 256 << 10) { request in
          let reply = ScriptedReply.file(Self.content, etag: "\"v1\"", for: request)
          return request.number == 1 ? reply.held(at: held, after: Self.before) : reply
        }
      }

      /// A line of output that a test waits for: it opens the gate.
      private struct Notice: Sendable {
        let gate: ServerGate
        let isWanted: @Sendable (String) -> Bool

        init(_ gate: ServerGate, _ isWanted: @escaping @Sendable (String) -> Bool) {
          self.gate = gate
          self.isWanted = isWanted
        }
      }

      /// Runs a program. The lines that a test waits for open their gates, and so does the end.
      private func run(
        _ command: Command, _ notices: Notice...
      ) async throws -> Command.Outcome {
        defer { for notice in notices { notice.gate.open() } }
        return try await command.run { line, _ in
          for notice in notices where notice.isWanted(line) { notice.gate.open() }
        }
      }

      @Sendable private static func hasArrived(_ line: String) -> Bool { ToolLine(line)?.bytes == before }

      /// Whether an attempt after the first one has found no route to the server.
      @Sendable private static func wasOffline(_ line: ToolLine) -> Bool {
        line.error?.code == "offline" && line.attempts.map { $0 > 1 } == true
      }

      @Test func aShortLossIsRepairedByTCP() async throws {
        try await Cable.with { cable in
          let held = ServerGate()
          let arrived = ServerGate()
          let server = try await serve(cable, held)
          let folder = try TemporaryFolder()
          let tool = try Command.downpipe(
            ["get", "\(server.url("/film"))", "-d", folder.path, "--json"], by: cable.launcher)
          async let running = run(tool, Notice(arrived, Self.hasArrived))
          await arrived.wait()
          try await cable.unplug()
          held.open()
          // Packets sent now are lost, and sent again once there is a route.
          try await server.until { $0.stalls > 0 }
          try await cable.plug()

          let outcome = try await running
          #expect(outcome.status == 0, "\(outcome.everything)")
          let word = try #require(outcome.results.last)
          #expect(word.attempts == 1)
          #expect(word.bytesFetched == Self.content.size)
          #expect(server.requests.count == 1)
          let isIdentical = try folder.read("film") == Self.content.allBytes
          #expect(isIdentical)
          await server.shutdown()
        }
      }

      enum Loss: Sendable, CaseIterable {
        /// The link is down, and the system ends the connections.
        case linkAndConnections
        /// There is no route, and the server resets the connection.
        case routeAndReset
      }

      @Test(arguments: Loss.allCases)
      func aLongLossEndsTheConnectionAndNotTheDownload(loss: Loss) async throws {
        try await Cable.with { cable in
          let held = ServerGate()
          let server = try await ScriptedHTTPServer.start(host: cable.nearAddress) { request in
            let reply = ScriptedReply.file(Self.content, etag: "\"v1\"", for: request)
            guard request.number == 1 else { return reply }
            return ScriptedReply(reply.truncated(after: Self.before).steps.dropLast() + [.hold(held), .reset])
          }
          let folder = try TemporaryFolder()
          let arrived = ServerGate()
          let wasOffline = ServerGate()
          let tool = try Command.downpipe(
            ["get", "\(server.url("/film"))", "-d", folder.path, "--retry", "50", "--json"], by: cable.launcher)
          async let running = run(
            tool, Notice(arrived, Self.hasArrived), Notice(wasOffline) { ToolLine($0).map(Self.wasOffline) == true })
          await arrived.wait()
          switch loss {
          case .linkAndConnections:
            try await cable.unplug()
            try await cable.abortConnections()
          case .routeAndReset:
            try await cable.loseRoute()
            held.open()
          }
          // The tool has tried without a route to the server, or has given up.
          await wasOffline.wait()
          switch loss {
          case .linkAndConnections: try await cable.plug()
          case .routeAndReset: try await cable.findRoute()
          }

          let outcome = try await running
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(outcome.toolLines.contains(where: Self.wasOffline), "\(outcome.everything)")
          let word = try #require(outcome.results.last)
          #expect(word.resumedFrom == Self.before)
          #expect(word.bytesFetched == Self.content.size + Checkpoints.compared)
          #expect((word.attempts ?? 0) >= 3, "the first, one without a network, and the last")
          #expect(server.requests.map(\.range?.start) == [nil, Checkpoints.start(behind: Self.before)])
          let isIdentical = try folder.read("film") == Self.content.allBytes
          #expect(isIdentical)
          held.open()
          await server.shutdown()
        }
      }

      @Test(arguments: FarEnd.Mode.allCases)
      func theLibraryResumes(mode: FarEnd.Mode) async throws {
        try await Cable.with { cable in
          let held = ServerGate()
          let server = try await serve(cable, held)
          let folder = try TemporaryFolder()
          let arrived = ServerGate()
          let noticed = ServerGate()
          let notice = mode == .idleTimeLimit ? "far end: failed timedOut" : "far end: waiting Online: there is no"
          async let running = run(
            try FarEnd(url: server.url("/film"), folder: folder.path, mode: mode).command(cable.launcher),
            Notice(arrived) { $0 == "far end: bytes \(Self.before)" }, Notice(noticed) { $0.hasPrefix(notice) })
          await arrived.wait()
          try await cable.unplug()
          held.open()
          await noticed.wait()
          try await cable.plug()

          let outcome = try await running
          #expect(outcome.status == 0, "\(outcome.everything)")
          #expect(outcome.output.contains(notice), "\(outcome.everything)")
          let fetched = Self.content.size + Checkpoints.compared
          #expect(
            outcome.output.contains("far end: finished from \(Self.before), fetched \(fetched)\n"),
            "\(outcome.everything)")
          #expect(server.requests.map(\.range?.start) == [nil, Checkpoints.start(behind: Self.before)])
          let isIdentical = try folder.read("film") == Self.content.allBytes
          #expect(isIdentical)
          await server.shutdown()
        }
      }
    }
  }

  /// A downloader at the far end of a ``Cable``. A process enters a network namespace as a whole: these tests start
  /// themselves there again, with an environment variable for what to do.
  struct FarEnd: Codable {
    enum Mode: String, Codable, CaseIterable {
      /// The idle time limit ends the attempt.
      case idleTimeLimit
      /// The gate reports that there is no network.
      case online
    }

    let url: URL
    let folder: String
    let mode: Mode

    private static let variable = "DOWNPIPE_FAR_END"

    /// What this process has to do.
    static let asked = ProcessInfo.processInfo.environment[variable].flatMap {
      try? JSONDecoder().decode(FarEnd.self, from: Data($0.utf8))
    }

    func command(_ launcher: [String]) throws -> Command {
      Command(
        launcher[0],
        launcher.dropFirst() + [
          CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "FarEndTests",
        ],
        environment: [Self.variable: String(decoding: try JSONEncoder().encode(self), as: UTF8.self)])
    }
  }

  @Suite(.enabled(if: FarEnd.asked != nil, "other tests start it in a network namespace"), .endsHangs)
  struct FarEndTests {
    @Test func downloads() async throws {
      let asked = try #require(FarEnd.asked)
      let downloader = try await Downloader {
        HTTPSource { $0.idleTimeLimit = asked.mode == .idleTimeLimit ? .seconds(2) : .seconds(60) }
        FileStore(asked.folder)
        if asked.mode == .online { Online() }
        Retry(.constant(.seconds(1), attempts: 10))
      }
      let download = try await downloader.add(DownloadRequest(asked.url))
      for await event in download.events {
        switch event.kind {
        case .progress(let progress): say("bytes \(progress.received)")
        case .attemptFailed(let error): say("failed \(error.code.rawValue): \(error.message)")
        case .state(.waiting(let reason)): say("waiting \(reason)")
        default: break
        }
      }
      let status = try await download.status
      #expect(status.state.phase == .finished, "\(status.state)")
      say("finished from \(status.resumedFrom), fetched \(status.bytesFetched)")
      await downloader.shutdown()
    }

    /// Not `print`, which buffers lines that go to a file.
    private func say(_ text: String) {
      FileHandle.standardOutput.write(Data("far end: \(text)\n".utf8))
    }
  }
#endif
