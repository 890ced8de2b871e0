#if Postgres && SQLite
  @_spi(Ledger) import Downpipe
  @_spi(Ledger) import DownpipeCore
  @_spi(Ledger) import DownpipePostgres
  @_spi(Ledger) import DownpipeSQLite
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
    /// Queues that are moved from one ledger to another by `downpipe export` and `downpipe import`.
    @Suite(.serialized) struct MovingTests {
      private let folder: TemporaryFolder

      init() throws { folder = try TemporaryFolder() }

      // MARK: Commands

      /// A schema of a test's own in the database of all tests. The tool has no option for it, but libpq has.
      private func database() throws -> (address: String, ledger: PostgresLedger) {
        let shared = try PostgresCluster.shared.get()
        let name = "d\(UInt32.random(in: 0...UInt32.max))"
        let create = Process()
        create.executableURL = URL(filePath: "/usr/bin/env")
        create.arguments = ["createdb", "-h", shared.folder, "-U", "downpipe", name]
        try create.run()
        create.waitUntilExit()
        try #require(create.terminationStatus == 0)
        let address = "postgresql://downpipe@/\(name)?host=\(shared.folder)"
        return (address, PostgresLedger(address))
      }

      @discardableResult
      private func tool(_ arguments: [String], status: Int32 = 0) async throws -> Command.Outcome {
        let outcome = try await Command.downpipe(arguments).run()
        try #require(outcome.status == status, "\(arguments): \(outcome.everything)")
        return outcome
      }

      private func export(_ ledger: String, to name: String, _ more: [String] = []) async throws -> [UInt8] {
        try await tool(["export", "-d", folder.path, "--ledger", ledger, "-o", folder.path(name)] + more)
        return try folder.read(name)
      }

      private func `import`(_ name: String, into ledger: String, _ more: [String] = []) async throws -> String {
        try await tool(["import", "-d", folder.path, folder.path(name), "--ledger", ledger] + more).output
      }

      /// A ledger in a file with downloads that wait.
      private func ledger(_ name: String, _ ids: [DownloadID]) async throws -> String {
        let path = folder.path(name)
        let store = try await SQLiteLedger(path).open()
        try await store.rank(by: Ranking(PriorityQueue()))
        _ = try await store.add(
          try ids.enumerated().map {
            LedgerAddition(request: try DownloadRequest("https://a.example/\($1)", id: $1), arrival: Int64($0))
          }, at: Date(timeIntervalSince1970: 1_700_000_000))
        try await store.close()
        return path
      }

      /// The order in which the downloads of a ledger would run.
      private func order(_ ledger: any Ledger) async throws -> [DownloadID] {
        let store = try await ledger.open()
        try await store.rank(by: Ranking(PriorityQueue()))
        let far = Date(timeIntervalSince1970: 2_000_000_000)
        let ids = try await store.lease(LeaseRequest(now: far, until: far + 60) { _ in .take }).map(\.id)
        try await store.close()
        return ids
      }

      // MARK: Round trips

      @Test("A queue from SQLite to PostgreSQL and back is the same, byte for byte", arguments: [1, 2, 3] as [UInt64])
      func roundTrip(seed: UInt64) async throws {
        let first = folder.path("first.sqlite")
        let store = try await SQLiteLedger(first).open()
        try await store.rank(by: Ranking(PriorityQueue()))
        var queue = RandomQueue(store, seed: seed)
        try await queue.fill(600)
        let counts = try await store.counts(.all)
        // Exported while its worker has some: the store is open.
        let original = try await export(first, to: "1")
        try await store.close()
        #expect(Set(counts.keys).isSuperset(of: [.waiting, .transferring, .paused, .finished, .failed, .cancelled]))

        let (address, database) = try database()
        let count = counts.values.reduce(0, +)
        #expect(try await `import`("1", into: address) == "\(count) imported\n")
        #expect(try await export(address, to: "2") == original)
        let last = folder.path("last.sqlite")
        #expect(try await `import`("2", into: last) == "\(count) imported\n")
        #expect(try await export(last, to: "3") == original)
        // Nothing changes by a second time.
        #expect(try await `import`("1", into: last) == "0 imported, \(count) known\n")
        #expect(try await `import`("3", into: address) == "0 imported, \(count) known\n")
        #expect(try await export(last, to: "4") == original)
        #expect(try await export(address, to: "5") == original)

        for ledger in [SQLiteLedger(last), database] as [any Ledger] {
          let (old, new) = (try await SQLiteLedger(first).open(), try await ledger.open())
          for phase in DownloadState.Phase.allCases where !phase.isActive {
            let filter = DownloadFilter(phases: [phase])
            #expect(try await old.totals(filter) == new.totals(filter), "\(phase)")
          }
          try await old.close()
          try await new.close()
        }
        let expected = try await order(SQLiteLedger(first))
        #expect(expected.count > 50)
        #expect(try await order(SQLiteLedger(last)) == expected)
        #expect(try await order(database) == expected)
      }

      private static func content(_ path: String) -> ScriptedContent {
        .pattern(size: 300_000, seed: UInt64(path.utf8.last ?? 0))
      }

      @Test("Finished files are not fetched again, failed ones stay failed, and partials go on in the same folder")
      func work() async throws {
        let gate = ServerGate()
        let server = try await ScriptedHTTPServer.start { request in
          if request.path == "/missing" { return .status(404) }
          let reply = ScriptedReply.file(Self.content(request.path), etag: "\"\(request.path)\"", for: request)
          return request.path == "/part" && request.number == 1 ? reply.held(at: gate, after: 200_000) : reply
        }
        defer { gate.open() }
        let options = ["-d", folder.path]
        try await tool(["get", server.url("/done").absoluteString] + options)
        try await tool(["get", server.url("/missing").absoluteString] + options, status: 1)
        let (running, received) = (Watched<Int32>(0), Watched<Int64>(0))
        async let stopped = Command.downpipe(["get", "--json", server.url("/part").absoluteString] + options).run {
          line, _ in
          if let bytes = ToolLine(line)?.bytes { received.update { $0 = bytes } }
        } onStart: { process in
          running.update { $0 = process }
        }
        await received.wait(until: { $0 > 0 })
        kill(running.value, SIGTERM)
        _ = try await stopped
        let before = server.requests.count

        _ = try await export(folder.path(".downpipe/ledger.sqlite"), to: "queue")
        let address = try database().address
        #expect(try await `import`("queue", into: address) == "3 imported\n")
        let work = try await tool(["work", "--ledger", address, "--until-idle", "--json"] + options)
        let finished = work.toolLines.filter { $0.event == "finished" }
        #expect(finished.count == 1)
        #expect((finished.first?.resumedFrom ?? 0) > 0, "\(work.everything)")
        #expect(server.requests.dropFirst(before).allSatisfy { $0.path == "/part" })
        for name in ["done", "part"] { #expect(try folder.read(name) == Self.content("/\(name)").allBytes) }
        let listed = try await tool(["list", "--ledger", address, "--json"] + options).toolLines
        #expect(listed.map(\.state).sorted { ($0 ?? "") < ($1 ?? "") } == ["failed", "finished", "finished"])
        #expect(listed.first { $0.state == "failed" }?.error?.code == "httpStatus")

        // And back: the folder's own ledger knows nothing of it.
        _ = try await export(address, to: "back")
        #expect(try await `import`("back", into: folder.path("new.sqlite")) == "3 imported\n")
        let again = try await tool(
          ["get", "--json", "--ledger", folder.path("new.sqlite"), server.url("/done").absoluteString] + options)
        #expect(again.results.map(\.event) == ["finished"])
        #expect(server.requests.count { $0.path == "/done" } == 1)
      }

      // MARK: Files

      @Test("The file is private, is not replaced without --force, and is not there before it is complete")
      func file() async throws {
        let ledger = try await ledger("ledger", ["a"])
        let first = try await export(ledger, to: "queue")
        let status = try FileManager.default.attributesOfItem(atPath: folder.path("queue"))
        #expect(status[.posixPermissions] as? Int == 0o600)
        let refused = try await tool(["export", "--ledger", ledger, "-o", folder.path("queue")], status: 2)
        #expect(refused.errors.contains("--force"))
        #expect(try await export(ledger, to: "queue", ["--force"]) == first)
        let printed = try await tool(["export", "--ledger", ledger])
        #expect(Array(printed.output.utf8) == first && printed.errors == "downpipe: 1 exported\n")
        #expect(
          try await tool(["export", "--ledger", ledger, "-o", folder.path], status: 2).errors.contains("a folder"))
        let nowhere = folder.path("missing/queue")
        #expect(
          try await tool(["export", "--ledger", ledger, "-o", nowhere], status: 2).errors.contains("cannot be written"))
        #expect(try folder.contents() == ["ledger", "queue"])
      }

      @Test("Damaged lines are reported by their numbers, and do not keep the others out")
      func damagedLines() async throws {
        let ledger = try await ledger("ledger", ["a", "b", "c", "d", "e"])
        var lines = String(decoding: try await export(ledger, to: "queue"), as: UTF8.self).split(separator: "\n").map(
          String.init)
        #expect(lines.count == 7)
        lines[1].removeLast()
        lines[2] = lines[2].replacing("\"waiting\"", with: "\"sleeping\"")
        lines[3] = lines[3].replacing("{", with: "{\"colour\":\"red\",")
        lines.insert("", at: 4)
        lines[5] += "\r"
        try folder.write(Array((lines.joined(separator: "\n")).utf8), to: "damaged")
        let outcome = try await tool(
          ["import", "-d", folder.path, "--ledger", folder.path("new"), folder.path("damaged")], status: 1)
        #expect(outcome.output == "2 imported, 3 damaged\n")
        let reports = outcome.errors.split(separator: "\n")
        #expect(reports.count == 3, "\(reports)")
        for (report, words) in zip(reports, [["line 2", "JSON"], ["line 3", "phase"], ["line 4", "colour"]]) {
          for word in words { #expect(report.contains(word), "\(report)") }
        }
        #expect(try await order(SQLiteLedger(folder.path("new"))) == ["d", "e"])
      }

      @Test("What is no export, is newer, or was cut off, is told")
      func otherFiles() async throws {
        let ledger = try await ledger("ledger", ["a", "b"])
        let bytes = try await export(ledger, to: "queue")
        func refusal(_ name: String, _ text: [UInt8], status: Int32) async throws -> Command.Outcome {
          try folder.write(text, to: name)
          return try await tool(
            ["import", "-d", folder.path, "--ledger", folder.path("new"), folder.path(name)], status: status)
        }
        for (name, text) in [
          ("empty", ""), ("text", "https://a.example/\n"), ("list", "bplist00\0\u{1}"), ("json", "{\"id\":1}\n"),
        ] {
          #expect(try await refusal(name, Array(text.utf8), status: 2).errors.contains("no export"), "\(name)")
        }
        let newer = String(decoding: bytes, as: UTF8.self).replacing("\"version\":1", with: "\"version\":2")
        #expect(try await refusal("newer", Array(newer.utf8), status: 2).errors.contains("update"))
        #expect(try await refusal("missing", [], status: 2).output.isEmpty)
        let cut = try await refusal("cut", Array(bytes.prefix(bytes.count - 40)), status: 1)
        #expect(cut.output == "1 imported, 1 damaged\n" && cut.errors.contains("cut off"))
        #expect(try await `import`("queue", into: folder.path("new")) == "1 imported, 1 known\n")
      }

      @Test("Downloads that would wait for each other are left out alone")
      func cycle() async throws {
        let ledger = try await ledger("ledger", ["a", "b", "c", "d"])
        var text = String(decoding: try await export(ledger, to: "queue"), as: UTF8.self)
        for (id, other) in [("b", "d"), ("d", "b")] {
          text.replace(
            "\"id\":\"\(id)\",", with: "\"id\":\"\(id)\",\"dependencies\":[\"\(other)\"],\"waits_for\":[\"\(other)\"],")
        }
        try folder.write(Array(text.utf8), to: "cycle")
        let outcome = try await tool(
          ["import", "-d", folder.path, "--ledger", folder.path("new"), folder.path("cycle")], status: 1)
        #expect(outcome.output == "3 imported, 1 damaged\n")
        #expect(outcome.errors.contains("line 5"), "\(outcome.errors)")
      }

      @Test("An import that is killed is completed by another one")
      func killed() async throws {
        let count = 12_000
        let ids = (0..<count).map { DownloadID("\($0)") }
        let ledger = try await ledger("ledger", ids)
        let original = try await export(ledger, to: "queue")
        let (address, database) = try database()
        let store = try await database.open()
        let process = Watched<Int32>(0)
        async let killed = Command.downpipe(["import", "-d", folder.path, folder.path("queue"), "--ledger", address])
          .run(onStart: {
            number in
            process.update { $0 = number }
          })
        while try await store.counts(.all).isEmpty { await Task.yield() }
        kill(process.value, SIGKILL)
        _ = try await killed
        let before = try await store.counts(.all)[.waiting] ?? 0
        // Whole batches of lines, of which the first line is no download.
        #expect([4_999, 9_999, count].contains(before), "\(before)")
        let outcome = try await `import`("queue", into: address)
        #expect(outcome == "\(count - before) imported, \(before) known\n")
        #expect(try await store.counts(.all) == [.waiting: count])
        try await store.close()
        #expect(try await export(address, to: "again") == original)
      }

      @Test("Downloads without a file can leave their folder")
      func anyFolder() async throws {
        let ledger = folder.path("ledger")
        let store = try await SQLiteLedger(ledger).open()
        var queue = RandomQueue(store, seed: 9)
        try await queue.fill(200)
        try await store.close()
        _ = try await export(ledger, to: "queue")
        let kept = try await tool([
          "import", "-d", folder.path("other"), folder.path("queue"), "--ledger", try database().address,
        ])
        #expect(kept.errors.contains("--any-folder"), "\(kept.errors)")
        let address = try database().address
        let free = try await tool([
          "import", "-d", folder.path("other"), "--any-folder", folder.path("queue"), "--ledger", address,
        ])
        #expect(free.errors == "", "\(free.errors)")
        let old = try await SQLiteLedger(ledger).open().records(DownloadQuery())
        let new = try await PostgresLedger(address).open().records(DownloadQuery())
        #expect(old.count == new.count && old.contains { $0.location != nil && $0.phase == .waiting })
        let known = Dictionary(uniqueKeysWithValues: old.map { ($0.id, $0) })
        for record in new {
          let hasFile = record.phase == .finished || record.steps.artifact != nil || record.earlierArtifact != nil
          #expect(record.location == (hasFile ? known[record.id]?.location : nil), "\(record.id)")
        }
      }
    }
  }
#endif
