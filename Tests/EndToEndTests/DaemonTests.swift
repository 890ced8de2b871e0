#if RPC
  import Dispatch
  import Downpipe
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
    /// `downpipe serve`: how it starts and ends, and what outlives it.
    @Suite(.serialized) struct DaemonTests {
      private static func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
      }

      private static func pattern(_ number: Int, size: Int64 = 20_000) -> ScriptedContent {
        .pattern(size: size, seed: UInt64(number) + 1)
      }

      private static func gid(_ number: Int) -> String {
        let digits = String(number + 1, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
      }

      // MARK: The token

      @Test("the token is made once, and only its user can read it")
      func theTokenFile() async throws {
        let folder = try TemporaryFolder()
        let first = try await Daemon.start(folder.path)
        let token = try #require(first.token)
        #expect(token.utf8.count == 32 && token.allSatisfy(\.isHexDigit), "\(token)")
        #expect(try Self.mode(folder.path(".downpipe/rpc-secret")) == 0o600)
        #expect(!first.errors.contains(token), "a log would keep it")
        #expect(first.errors.contains(folder.path(".downpipe/rpc-secret")), "where a new token is, is told")
        try await first.call("aria2.getVersion")
        #expect(await first.end(SIGTERM) == 0)

        let second = try await Daemon.start(folder.path)
        #expect(second.token == token)
        #expect(!second.errors.contains("rpc-secret"), "and not told again")
        try await second.call("aria2.getVersion")
        await #expect(throws: RPCRefusal("Unauthorized")) { try await second.place.call("aria2.getVersion", []) }
        await #expect(throws: RPCRefusal("Unauthorized")) {
          try await second.place.call("aria2.getVersion", ["token:wrong"])
        }
        #expect(await second.end(SIGINT) == 0)
      }

      @Test("a file of the token is refused that others can read, that is empty, or that is a folder")
      func wrongTokenFiles() async throws {
        let folder = try TemporaryFolder()
        func outcome(_ name: String) async throws -> Command.Outcome {
          try await Command.downpipe([
            "serve", "-d", folder.path("out"), "--rpc-listen", "0", "--rpc-secret-file", folder.path(name),
          ]).run()
        }
        for (name, text, mode, reason) in [
          ("open", "a token\n", 0o644, "others can read"), ("group", "a token\n", 0o640, "others can read"),
          ("empty", "", 0o600, "is empty"), ("blank", " \n\n", 0o600, "is empty"),
        ] {
          let path = try folder.write(Array(text.utf8), to: name)
          try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
          let refused = try await outcome(name)
          #expect(refused.status == 2 && refused.errors.contains(reason), "\(name): \(refused.everything)")
          #expect(refused.errors.contains("--rpc-secret-file"), "\(refused.everything)")
          #expect(refused.errors.contains(path), "\(refused.everything)")
        }
        try FileManager.default.createDirectory(atPath: folder.path("folder"), withIntermediateDirectories: false)
        let refused = try await outcome("folder")
        #expect(refused.status == 2 && refused.errors.contains("--rpc-secret-file"), "\(refused.everything)")
      }

      // MARK: Where it listens

      @Test(
        "an address that cannot be used is told",
        arguments: ["nonsense", "127.0.0.1:70000", ":", "unix:", "192.0.2.1:0", "unix:/nowhere/at/all"])
      func wrongAddresses(_ place: String) async throws {
        let folder = try TemporaryFolder()
        let outcome = try await Command.downpipe(["serve", "-d", folder.path, "--rpc-listen", place]).run()
        #expect(outcome.status == 2 && outcome.errors.contains("--rpc-listen"), "\(outcome.everything)")
        // Names of functions are of no use to a user.
        #expect(!outcome.errors.contains("bind(descriptor"), "\(outcome.everything)")
      }

      @Test func aUsedPortIsTold() async throws {
        let folder = try TemporaryFolder()
        let daemon = try await Daemon.start(folder.path("first"))
        let second = try await Command.downpipe([
          "serve", "-d", folder.path("second"), "--rpc-listen", "\(daemon.port)",
        ]).run()
        #expect(second.status == 2 && second.errors.contains("ddress already in use"), "\(second.everything)")
        try await daemon.call("aria2.getVersion")
        await daemon.end(SIGTERM)
      }

      @Test(arguments: ["0", "127.0.0.1:0", "[::1]:0"])
      func aPortNeedsATokenAlways(_ place: String) async throws {
        let folder = try TemporaryFolder()
        let outcome = try await Command.downpipe([
          "serve", "-d", folder.path, "--rpc-listen", place, "--rpc-no-secret",
        ]).run()
        #expect(outcome.status == 2 && outcome.errors.contains("--rpc-no-secret"), "\(outcome.everything)")
      }

      @Test("a socket in the file system, which only its user can use, also after a crash")
      func socket() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("s")
        let first = try await Daemon.start(folder.path("out"), ["--rpc-no-secret"], at: "unix:\(path)")
        #expect(first.place == .unix(path))
        #expect(try Self.mode(path) == 0o600)
        #expect(try await first.call("aria2.getGlobalStat")["numActive"] == "0")
        #expect(!FileManager.default.fileExists(atPath: folder.path("out/.downpipe/rpc-secret")))
        #expect(await first.end(SIGKILL) == 128 + SIGKILL)

        // What the first one has left is no obstacle.
        let second = try await Daemon.start(folder.path("out"), ["--rpc-no-secret"], at: "unix:\(path)")
        try await second.call("aria2.getVersion")
        // A socket at which a process listens is.
        let third = try await Command.downpipe([
          "serve", "-d", folder.path("third"), "--rpc-listen", "unix:\(path)", "--rpc-no-secret",
        ]).run(onStart: { process in
          // It ends by itself, or it has taken the place of the other one.
          DispatchQueue.global().asyncAfter(deadline: .now() + 30) { kill(process, SIGTERM) }
        })
        #expect(third.status == 2 && third.errors.contains("--rpc-listen"), "\(third.everything)")
        #expect(throws: Never.self) { try Self.mode(path) }
        try await second.call("aria2.getVersion")
        #expect(await second.end(SIGTERM) == 0)
        #expect(!FileManager.default.fileExists(atPath: path), "an orderly end removes it")
      }

      @Test func aSocketWithAToken() async throws {
        let folder = try TemporaryFolder()
        let daemon = try await Daemon.start(folder.path("out"), at: "unix:\(folder.path("s"))")
        try await daemon.call("aria2.getVersion")
        await #expect(throws: RPCRefusal("Unauthorized")) { try await daemon.place.call("aria2.getVersion", []) }
        await daemon.end(SIGTERM)
      }

      // MARK: Downloads

      @Test func aDownloadIsByteIdentical() async throws {
        let content = Self.pattern(1, size: 3 << 20)
        try await withScriptedServer({ .file(content, etag: "\"v1\"", for: $0) }) { server in
          let folder = try TemporaryFolder()
          let daemon = try await Daemon.start(folder.path)
          let added = try await daemon.call("aria2.addUri", [.text("\(server.url("/film"))")])
          let gid = try #require(added.text)
          try await daemon.wait(for: gid, "complete")
          let isIdentical = try folder.read("film") == content.allBytes
          #expect(isIdentical)
          #expect(try await daemon.told(gid, "completedLength") == "\(content.size)")
          #expect(try await daemon.told(gid, "errorCode") == "0")
          await daemon.end(SIGTERM)
        }
      }

      @Test("an option works, or is refused by name; what is told is in effect")
      func options() async throws {
        let folder = try TemporaryFolder()
        let daemon = try await Daemon.start(
          folder.path, ["--on-conflict", "replace", "--min-speed", "1k", "--connect-timeout", "7"])
        let date = Date(timeIntervalSince1970: 946_684_800)
        try await withScriptedServer({ .file(Self.pattern(1), etag: "\"v1\"", lastModified: date, for: $0) }) {
          server in
          let url = JSON.text(server.url("/film").absoluteString)
          for (name, value) in [
            ("http-proxy", "http://127.0.0.1:9"), ("all-proxy", "http://127.0.0.1:9"), ("dry-run", "true"),
            ("allow-overwrite", "false"), ("auto-file-renaming", "false"), ("lowest-speed-limit", "2K"),
            ("header", "A: b\nC: d"),
          ] {
            let refusal = await #expect(throws: RPCRefusal.self) {
              try await daemon.call("aria2.addUri", [url], [name: .text(value)])
            }
            #expect(refusal?.message.contains("'--\(name)'") == true, "\(String(describing: refusal))")
          }
          #expect(server.requests.isEmpty)
          let told = try await daemon.call("aria2.getGlobalOption")
          for (name, value) in [
            ("allow-overwrite", "true"), ("auto-file-renaming", "true"), ("lowest-speed-limit", "1024"),
            ("connect-timeout", "7"), ("dry-run", "false"), ("remote-time", "false"),
          ] { #expect(told[name]?.text == value, "\(name)") }
          for (gid, value) in [(Self.gid(1), "true"), (Self.gid(2), "false")] {
            let options: JSON = ["gid": .text(gid), "out": .text(value), "remote-time": .text(value)]
            try await daemon.call("aria2.addUri", [url], options)
            #expect(try await daemon.call("aria2.getOption", .text(gid))["remote-time"]?.text == value)
            try await daemon.wait(for: gid, "complete")
            let found = try FileManager.default.attributesOfItem(atPath: folder.path(value))[.modificationDate] as? Date
            #expect((found == date) == (value == "true"))
          }
        }
        await daemon.end(SIGTERM)
      }

      @Test("a download that SIGTERM stops is continued by the next start")
      func anOrderlyEnd() async throws {
        let content = Self.pattern(2, size: 4 << 20)
        let gate = ServerGate()
        try await withScriptedServer({ request in
          let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
          return request.number == 1 ? reply.held(at: gate, after: 1 << 20) : reply
        }) { server in
          let folder = try TemporaryFolder()
          let first = try await Daemon.start(folder.path)
          let gid = Self.gid(0)
          try await first.call("aria2.addUri", [.text("\(server.url("/film"))")], ["gid": .text(gid)])
          try await first.until { try await first.told(gid, "completedLength") == "\(1 << 20)" }
          #expect(await first.end(SIGTERM) == 0)

          let second = try await Daemon.start(folder.path)
          try await second.wait(for: gid, "complete")
          let isIdentical = try folder.read("film") == content.allBytes
          #expect(isIdentical)
          #expect(server.requests.count == 2)
          let resumed = try #require(server.requests.last?.range, "\(server.requests)")
          // The last piece may not have been on the disk.
          #expect(resumed.start >= 1 << 19, "what had arrived is not fetched again: \(resumed.start)")
          await second.end(SIGTERM)
          gate.open()
        }
      }

      @Test("two processes with one folder share its downloads, and fetch each once")
      func twoProcesses() async throws {
        let gate = ServerGate()
        try await withScriptedServer({ request in
          .file(Self.pattern(3), etag: "\"v1\"", for: request).held(at: gate, after: 1000)
        }) { server in
          let folder = try TemporaryFolder()
          let first = try await Daemon.start(folder.path)
          let second = try await Daemon.start(folder.path)
          #expect(first.token == second.token && first.port != second.port)
          for number in 0..<8 {
            let daemon = number.isMultiple(of: 2) ? first : second
            let options: JSON = ["gid": .text(Self.gid(number))]
            try await daemon.call("aria2.addUri", [.text("\(server.url("/f\(number)"))")], options)
          }
          // Each knows those of the other.
          for daemon in [first, second] {
            for number in 0..<8 {
              let state = try await daemon.told(Self.gid(number), "status")
              #expect(state == "active" || state == "waiting", "\(number): \(state ?? "")")
            }
          }
          gate.open()
          for number in 0..<8 { try await first.wait(for: Self.gid(number), "complete") }
          #expect(server.requests.count == 8, "\(server.requests.map(\.path))")
          #expect(try await second.call("aria2.getGlobalStat")["numStopped"] == "8")
          await first.end(SIGTERM)
          await second.end(SIGTERM)
        }
      }

      // MARK: Crashes

      /// What clients are told of a daemon, as far as a crash must not change it.
      private struct Snapshot: Hashable {
        let active: Set<JSON>
        let waiting: [JSON]
        let options: [JSON]
        let global: JSON

        init(_ daemon: Daemon) async throws {
          active = Set(try await daemon.call("aria2.tellActive", ["gid", "dir"]).list)
          waiting = try await daemon.call("aria2.tellWaiting", 0, 2000, ["gid", "status", "dir"]).list
          let calls = stride(from: 0, to: DaemonTests.count, by: 7).map { number -> JSON in
            let parameters: [JSON] = [.text("token:" + (daemon.token ?? "")), .text(DaemonTests.gid(number))]
            return ["methodName": "aria2.getOption", "params": .list(parameters)]
          }
          options = try await daemon.place.call("system.multicall", [.list(calls)]).list
          global = try await daemon.call("aria2.getGlobalOption")
        }
      }

      private static let count = 1000

      @Test("a crash in the middle of 1,000 downloads loses no GID, no position, no option and no pause")
      func aCrash() async throws {
        let gate = ServerGate()
        try await withScriptedServer({ request in
          let number = Int(request.path.dropFirst(2)) ?? 0
          return .file(Self.pattern(number), etag: "\"v\(number)\"", for: request).held(at: gate, after: 1000)
        }) { server in
          let folder = try TemporaryFolder()
          let first = try await Daemon.start(folder.path)
          try await first.call(
            "aria2.changeGlobalOption",
            ["max-concurrent-downloads": "4", "dir": .text(folder.path("all")), "user-agent": "Agent/1", "split": "2"])
          try await add(Self.count, server, first)
          try await move(first)
          try await first.until { try await first.call("aria2.tellActive").list.count == 4 }
          await gate.arrivals(4)
          let before = try await Snapshot(first)
          #expect(before.active.count == 4 && before.waiting.count == Self.count - 4)
          #expect(Set(before.waiting.compactMap { $0["status"]?.text }) == ["waiting", "paused"])
          let refused = before.options.filter(\.list.isEmpty)
          #expect(refused.isEmpty)
          #expect(await first.end(SIGKILL) == 128 + SIGKILL)

          let second = try await Daemon.start(folder.path)
          // Those that were active are told as such until the second one has taken them over; then they wait until it has
          // started them again.
          await gate.arrivals(8)
          try await second.until { try await second.call("aria2.tellActive").list.count == 4 }
          let after = try await Snapshot(second)
          #expect(after.active == before.active)
          #expect(after.waiting == before.waiting)
          #expect(after.options == before.options)
          #expect(after.global == before.global)

          try await second.call("aria2.changeGlobalOption", ["max-concurrent-downloads": "16"])
          try await second.call("aria2.unpauseAll")
          gate.open()
          try await second.until {
            let stat = try await second.call("aria2.getGlobalStat")
            return stat["numActive"] == "0" && stat["numWaiting"] == "0"
          }
          let stopped = try await second.call("aria2.tellStopped", 0, 2000, ["status", "files"]).list
          #expect(stopped.count == Self.count)
          #expect(stopped.allSatisfy { $0["status"] == "complete" })
          for number in stride(from: 0, to: Self.count, by: 11) {
            let isIdentical = try folder.read(Self.file(number)) == Self.pattern(number).allBytes
            #expect(isIdentical, "\(Self.file(number))")
          }
          await second.end(SIGTERM)
        }
      }

      private static func file(_ number: Int) -> String {
        number.isMultiple(of: 7) ? "own/\(number).bin" : "all/f\(number)"
      }

      /// Adds downloads in one call: a third of them is paused, each seventh one has options.
      private func add(_ count: Int, _ server: ScriptedHTTPServer, _ daemon: Daemon) async throws {
        let calls = (0..<count).map { number -> JSON in
          var options: [String: JSON] = ["gid": .text(Self.gid(number))]
          if number >= 10, number % 3 == 1 { options["pause"] = "true" }
          if number.isMultiple(of: 7) {
            options["dir"] = .text(daemon.folder + "/own")
            options["out"] = .text("\(number).bin")
            options["header"] = ["X-Number: \(number)", "X-Two: 2"].map { .text($0) }.asList
            options["max-tries"] = "3"
          }
          let url = JSON.text("\(server.url("/f\(number)"))")
          let parameters: [JSON] = [.text("token:" + (daemon.token ?? "")), [url], .object(options)]
          return ["methodName": "aria2.addUri", "params": .list(parameters)]
        }
        let results = try await daemon.place.call("system.multicall", [.list(calls)]).list
        #expect(results == (0..<count).map { [.text(Self.gid($0))] })
      }

      private func move(_ daemon: Daemon) async throws {
        for (number, position, way) in [
          (900, 0, "POS_SET"), (901, 500, "POS_SET"), (500, -100, "POS_CUR"), (501, 77, "POS_CUR"),
          (300, 0, "POS_END"), (301, -50, "POS_END"), (700, 1, "POS_SET"), (901, 0, "POS_SET"),
        ] {
          let gid = JSON.text(Self.gid(number))
          try await daemon.call("aria2.changePosition", gid, .number(Double(position)), .text(way))
        }
        try await daemon.call("aria2.pause", .text(Self.gid(600)))
        try await daemon.call("aria2.unpause", .text(Self.gid(400)))
        try await daemon.call("aria2.changeOption", .text(Self.gid(7 * 50)), ["max-download-limit": "100K"])
      }
    }
  }

  extension [JSON] {
    fileprivate var asList: JSON { .list(self) }
  }
#endif
