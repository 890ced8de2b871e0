#if Postgres
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import PostgresCluster
  import Testing

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  extension EndToEnd {
    /// Workers with a folder each share the queue of a database: each file is finished once, although a worker is killed,
    /// another one is stopped for a while, and the database is restarted.
    @Suite(.serialized) struct FleetTests {
      private let cluster = Result { try PostgresCluster() }
      private let folder: TemporaryFolder

      init() throws { folder = try TemporaryFolder() }

      private static func number(_ path: String) -> Int { Int(path.dropFirst()) ?? 0 }

      private static func content(_ path: String) -> ScriptedContent {
        .pattern(size: 200_000, seed: UInt64(number(path)))
      }

      /// A server whose first replies for the first files wait for a gate after some bytes.
      private func serve(_ gate: ServerGate, holding files: Int) async throws -> ScriptedHTTPServer {
        try await .start { request in
          let reply = ScriptedReply.file(Self.content(request.path), etag: "\"\(request.path)\"", for: request)
          return request.number == 1 && Self.number(request.path) <= files
            ? reply.held(at: gate, after: 100_000) : reply
        }
      }

      private func work(_ name: String, _ address: String, _ more: [String] = []) throws -> Command {
        try Command.downpipe(["work", "--ledger", address, "-d", folder.path(name), "-j", "3", "--json"] + more)
      }

      private func status(_ address: String) async throws -> [String: Any] {
        let outcome = try await Command.downpipe(["status", "--ledger", address, "--json"]).run()
        try #require(outcome.status == 0, "\(outcome.everything)")
        return try #require(
          try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
      }

      private func finished(_ outcome: Command.Outcome) -> [String] {
        outcome.toolLines.filter { $0.event == "finished" }.compactMap(\.id)
      }

      @Test("A fleet finishes each file once, through a kill, a stopped worker, and a restart of the database")
      func eachFileOnce() async throws {
        let cluster = try cluster.get()
        let address = cluster.address
        let gate = ServerGate()
        // Of each of two workers, the first three transfers are held.
        let server = try await serve(gate, holding: 6)
        let count = 40
        let list = (1...count).map { "\(server.url("/\($0)"))" }.joined(separator: "\n")
        try list.write(toFile: folder.path("list"), atomically: true, encoding: .utf8)
        let added = try await Command.downpipe(["add", "-i", folder.path("list"), "--ledger", address]).run()
        #expect(added.status == 0 && added.output == "\(count) added\n", "\(added.everything)")

        let (victim, sleeper) = (Watched<Int32>(0), Watched<Int32>(0))
        async let killed = work("a", address).run(onStart: { process in victim.update { $0 = process } })
        async let stopped = work("b", address, ["--until-idle"]).run(onStart: { process in
          sleeper.update { $0 = process }
        })
        try await server.until { $0.requestCount >= 6 }
        kill(victim.value, SIGKILL)
        #expect(try await killed.status == 128 + SIGKILL)
        kill(sleeper.value, SIGSTOP)
        try cluster.control("restart")
        // It takes over what the killed one had, as soon as it opens the ledger, and cannot know about the stopped one.
        async let last = work("c", address, ["--until-idle"]).run()
        try await server.until { $0.requestCount >= count }
        gate.open()
        kill(sleeper.value, SIGCONT)
        let outcomes = [try await last, try await stopped]
        for outcome in outcomes { #expect(outcome.status == 0, "\(outcome.everything)") }
        let ids = outcomes.flatMap(finished)
        #expect(
          ids.count == count && Set(ids).count == count,
          "\(ids.count) results of \(Set(ids).count) files: \(outcomes.map(\.everything))")
        let queue = try await status(address)["queue"] as? [String: Int]
        #expect(queue == ["finished": count])
        var files = 0
        for name in ["b", "c"] {
          for number in 1...count {
            guard let bytes = try? folder.read("\(name)/\(number)") else { continue }
            files += 1
            #expect(bytes == Self.content("/\(number)").allBytes, "\(name)/\(number)")
          }
        }
        #expect(files == count)
      }

      @Test("A list that is added again is known, without the worker's folder, too: only there a file is found missing")
      func addedAgain() async throws {
        let address = try cluster.get().address
        let server = try await serve(ServerGate(), holding: 0)
        let count = 20
        let urls = (1...count).map { "\(server.url("/\($0)"))" }
        func add(_ more: [String] = []) async throws -> String {
          let outcome = try await Command.downpipe(["add", "--ledger", address] + more + urls).run()
          #expect(outcome.status == 0, "\(outcome.everything)")
          return outcome.output
        }
        #expect(try await add() == "\(count) added\n")
        #expect(try await work("a", address, ["--until-idle"]).run().status == 0)
        let fetched = server.requests.count

        let elsewhere = folder.path("elsewhere")
        for more in [[], ["-d", elsewhere], ["-d", folder.path("a")]] {
          #expect(try await add(more) == "0 added, \(count) known\n", "\(more)")
        }
        #expect(!FileManager.default.fileExists(atPath: elsewhere))
        try FileManager.default.removeItem(atPath: folder.path("a/7"))
        #expect(try await add() == "0 added, \(count) known\n")
        #expect(try await add(["-d", elsewhere]) == "0 added, \(count) known\n")
        #expect(try await add(["-d", folder.path("a")]) == "1 added, \(count - 1) known\n")
        #expect(try await work("a", address, ["--until-idle"]).run().status == 0)
        #expect(Set(server.requests.dropFirst(fetched).map(\.path)) == ["/7"])
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path("a")).filter { $0 != ".downpipe" }
        #expect(Set(files) == Set((1...count).map { "\($0)" }))
      }

      @Test("A worker deletes the partials of downloads that another one has finished, and no others")
      func leftPartials() async throws {
        let address = try cluster.get().address
        let gate = ServerGate()
        defer { gate.open() }
        let content = ScriptedContent.pattern(size: 8 << 20)
        let server = try await ScriptedHTTPServer.start { request in
          let reply = ScriptedReply.file(content, etag: "\"1\"", for: request)
          return request.number == 1 ? reply.held(at: gate, after: 6 << 20) : reply
        }
        #expect(try await Command.downpipe(["add", "--ledger", address, "\(server.url("/1"))"]).run().status == 0)
        let victim = Watched<Int32>(0)
        async let killed = work("a", address).run(onStart: { process in victim.update { $0 = process } })
        func partials() -> [String] {
          (try? FileManager.default.subpathsOfDirectory(atPath: folder.path("a/.downpipe/partials"))) ?? []
        }
        // It gets a name with the first checkpoint.
        while partials().isEmpty { try await Task.sleep(for: .milliseconds(10)) }
        kill(victim.value, SIGKILL)
        #expect(try await killed.status == 128 + SIGKILL)
        try folder.write([1], to: "a/.downpipe/partials/0123456789abcdef.1.part")
        #expect(try await work("b", address, ["--until-idle"]).run().status == 0)
        #expect(try folder.read("b/1") == content.allBytes)

        #expect(partials().count >= 2)
        #expect(try await work("a", address, ["--until-idle"]).run().status == 0)
        #expect(partials() == ["0123456789abcdef.1.part"])
      }

      @Test("A worker that could not save what it has published removes it when another one has finished the file")
      func refusedCopy() async throws {
        let cluster = try cluster.get()
        let address = cluster.address
        let gate = ServerGate()
        let server = try await serve(gate, holding: 1)
        #expect(try await Command.downpipe(["add", "--ledger", address, "\(server.url("/1"))"]).run().status == 0)
        let sleeper = Watched<Int32>(0)
        async let stopped = work("a", address).run(onStart: { process in sleeper.update { $0 = process } })
        try await server.until { $0.requestCount >= 1 }
        // As a process of another machine: the second worker cannot see that it is alive.
        let rename = "UPDATE downpipe.opening SET owner = 'elsewhere/boot/space/1/1/' || number"
        let renamed = try await Command("psql", ["-qd", address, "-c", rename]).run()
        #expect(renamed.status == 0, "\(renamed.everything)")
        try cluster.control("stop")
        gate.open()
        func has(_ file: String) -> Bool { (try? folder.read(file)) == Self.content("/1").allBytes }
        while !has("a/1") { try await Task.sleep(for: .milliseconds(10)) }
        kill(sleeper.value, SIGSTOP)
        try cluster.control("start")
        // It takes the download over when the lease has expired.
        let outcome = try await work("b", address, ["--until-idle"]).run()
        #expect(outcome.status == 0 && finished(outcome).count == 1, "\(outcome.everything)")
        #expect(has("a/1") && has("b/1"))
        kill(sleeper.value, SIGCONT)
        while has("a/1") { try await Task.sleep(for: .milliseconds(10)) }
        kill(sleeper.value, SIGTERM)
        let last = try await stopped
        #expect(last.status == 0 && finished(last).isEmpty, "\(last.everything)")
        #expect(has("b/1"))
        #expect(try await status(address)["queue"] as? [String: Int] == ["finished": 1])
      }

      @Test("Copies are listed that a killed worker has left of files that another one has finished, and nothing else")
      func listedCopies() async throws {
        let address = try cluster.get().address
        let server = try await serve(ServerGate(), holding: 0)
        let urls = (1...3).map { "\(server.url("/\($0)"))" }
        #expect(try await Command.downpipe(["add", "--ledger", address] + urls).run().status == 0)
        #expect(try await work("a", address, ["--until-idle"]).run().status == 0)
        try folder.write(Self.content("/1").allBytes, to: "b/1")
        try folder.write([1], to: "b/2")
        try folder.write([1], to: "b/the user's")
        func listed(_ name: String) async throws -> [ToolLine] {
          let options = ["list", "--orphans", "--json", "--ledger", address, "-d", folder.path(name)]
          let outcome = try await Command.downpipe(options).run()
          #expect(outcome.status == 0, "\(outcome.everything)")
          return outcome.toolLines
        }
        let lines = try await listed("b")
        #expect(lines.map(\.path) == [folder.path("b/1")] && lines.map(\.state) == ["copy"])
        #expect(try await listed("a").isEmpty)
        let options = ["remove", "--orphans", "--ledger", address, "-d", folder.path("b")]
        #expect(try await Command.downpipe(options).run().output == "removed 0\n")
        #expect(try folder.read("b/1") == Self.content("/1").allBytes)
      }

      @Test("A limit of the fleet holds at the server")
      func fleetLimit() async throws {
        let address = try cluster.get().address
        let (open, most) = (Watched(0), Watched(0))
        let server = try await ScriptedHTTPServer.start { request in
          let now = open.update { count in
            count += 1
            return count
          }
          most.update { $0 = max($0, now) }
          let content = Self.content(request.path)
          let end = content.size - 1
          return ScriptedReply([
            .head(200, ["Content-Length": "\(content.size)"]), .throttle(bytesPerSecond: 500_000),
            // It is over for the server before the worker can know.
            .content(content, 0..<end), .call { open.update { $0 -= 1 } }, .content(content, end..<content.size),
          ])
        }
        let count = 14
        let urls = (1...count).map { "\(server.url("/\($0)"))" }
        #expect(try await Command.downpipe(["add", "--ledger", address] + urls).run().status == 0)
        let options = ["--until-idle", "--fleet-per-host", "2"]
        async let outcomes = [
          work("a", address, options).run(), work("b", address, options).run(), work("c", address, options).run(),
        ]
        for outcome in try await outcomes { #expect(outcome.status == 0, "\(outcome.everything)") }
        #expect(try await outcomes.flatMap(finished).count == count)
        #expect(most.value == 2, "at once at the server")
      }

      @Test(
        "A rate of the fleet holds at the server, although a worker comes later and another one is stopped for a while")
      func fleetRate() async throws {
        let address = try cluster.get().address
        let size: Int64 = 50_000
        /// When a file was asked for, and when the server had written it.
        let served = Watched<[(begin: ContinuousClock.Instant, end: ContinuousClock.Instant)]>([])
        let server = try await ScriptedHTTPServer.start { request in
          let begin = ContinuousClock.now
          let content = ScriptedContent.pattern(size: size, seed: UInt64(Self.number(request.path)))
          return ScriptedReply([
            .head(200, ["Content-Length": "\(size)"]), .content(content, 0..<size - 1),
            .call { served.update { $0.append((begin, .now)) } }, .content(content, size - 1..<size),
          ])
        }
        let (rate, count) = (1_000_000, 240)
        let list = (1...count).map { "\(server.url("/\($0)"))" }.joined(separator: "\n")
        try list.write(toFile: folder.path("list"), atomically: true, encoding: .utf8)
        #expect(try await Command.downpipe(["add", "-i", folder.path("list"), "--ledger", address]).run().status == 0)
        let options = ["--until-idle", "--fleet-limit-rate", "\(rate)"]
        let sleeper = Watched<Int32>(0)
        async let first = work("a", address, options).run(onStart: { process in sleeper.update { $0 = process } })
        await served.wait { $0.count >= 30 }
        async let second = work("b", address, options).run()
        await served.wait { $0.count >= 80 }
        kill(sleeper.value, SIGSTOP)
        // What the other one does alone, for longer than the share of the stopped one is valid.
        await served.wait { $0.count >= 180 }
        kill(sleeper.value, SIGCONT)
        for outcome in [try await first, try await second] { #expect(outcome.status == 0, "\(outcome.everything)") }
        #expect(try await (finished(first) + finished(second)).count == count)

        // In each window: the files that were begun and written in it. What the sockets hold has not arrived, which is a file
        // for each of three transfers of a worker; so much may have arrived and not be paid for.
        let allowance = 2 * 2 * 3 * size + Int64(rate / 10)
        let files = served.value.sorted { $0.end < $1.end }
        #expect(files.count >= count)
        for first in files {
          var bytes: Int64 = 0
          for file in files where file.begin >= first.begin {
            bytes += size
            let most = Double(rate) * (first.begin.duration(to: file.end) / .seconds(1)) + Double(allowance)
            #expect(Double(bytes) <= most, "\(bytes) bytes in \(first.begin.duration(to: file.end))")
          }
        }
      }

      @Test("SIGTERM gives the downloads back at once, at a checkpoint, and the exit status is 0")
      func gracefulEnd() async throws {
        let address = try cluster.get().address
        let gate = ServerGate()
        defer { gate.open() }
        let server = try await serve(gate, holding: 3)
        let urls = (1...3).map { "\(server.url("/\($0)"))" }
        #expect(try await Command.downpipe(["add", "--ledger", address] + urls).run().status == 0)
        let process = Watched<Int32>(0)
        async let running = work("a", address).run(onStart: { number in process.update { $0 = number } })
        try await server.until { $0.requestCount >= 3 }
        kill(process.value, SIGTERM)
        let outcome = try await running
        #expect(outcome.status == 0 && outcome.output == "", "\(outcome.everything)")
        let status = try await status(address)
        #expect(status["queue"] as? [String: Int] == ["waiting": 3])
        #expect((status["workers"] as? [Any])?.count == 0)
      }
    }
  }
#endif
