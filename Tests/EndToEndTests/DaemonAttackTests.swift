#if RPC
  import DownpipeTesting
  import Foundation
  import Testing

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  extension EndToEnd {
    /// Attacks on `downpipe serve` from outside, over real sockets: what strangers, pages of other sites and clients
    /// with the token can make it do and hold. After each attack it serves others, has closed its descriptors, and is
    /// not much larger.
    @Suite(.serialized) struct DaemonAttackTests {
      /// The most bytes by which an attack may make the daemon larger at any time: it has some 60 MiB before. What an
      /// attack sends or asks for is more, such as a request of 100 MiB.
      static let mostGrowth = 48 << 20

      /// Runs an attack on a daemon of its own, and then sees what is left of the daemon.
      ///
      /// - Parameters:
      ///   - locksOut: Whether no other client of this machine gets in afterwards, for a minute.
      ///   - begin: What the daemon is given before: it does not count as growth.
      ///   - attack: Its connections end with it.
      func withDaemon(
        _ options: [String] = [], in folder: String? = nil, trustsClients: Bool = true, locksOut: Bool = false,
        begin: (Daemon) async throws -> Void = { _ in }, _ attack: (Daemon) async throws -> Void
      ) async throws {
        let temporary = try TemporaryFolder()
        let daemon = try await Daemon.start(folder ?? temporary.path("out"), options, trustsClients: trustsClients)
        try await begin(daemon)
        #if os(Linux)
          let descriptors = try daemon.descriptors()
          try await warmUp(daemon)
          let memory = try daemon.memory("VmRSS")
        #endif
        try await attack(daemon)

        try await daemon.until { try await Self.reply(Self.request("GET", "/healthz"), daemon)?.status == 200 }
        if !locksOut {
          let version = try await daemon.call("aria2.getVersion")["version"]
          #expect(version == "1.36.0")
        }
        #if os(Linux)
          try await daemon.until { try daemon.descriptors() <= descriptors }
          let growth = try daemon.memory("VmHWM") - memory
          #expect(growth <= Self.mostGrowth, "\(growth >> 10) KiB")
        #endif
        #expect(await daemon.end(SIGTERM) == 0, "\(daemon.errors)")
      }

      #if os(Linux)
        /// What the first client of each kind costs once.
        private func warmUp(_ daemon: Daemon) async throws {
          let gid = try await daemon.call("aria2.addUri", ["http://127.0.0.1:9/first"], ["pause": "true"])
          for method in ["aria2.getGlobalStat", "aria2.pauseAll", "aria2.getGlobalOption"] {
            try await daemon.call(method)
          }
          try await daemon.call("aria2.tellWaiting", 0, 10)
          let socket = try AttackConnection(daemon.place)
          try await socket.upgrade()
          await socket.send(AttackConnection.frame(1, daemon.message("aria2.getVersion")))
          _ = try await socket.message()
          try await daemon.call("aria2.remove", gid)
          try await daemon.call("aria2.purgeDownloadResult")
        }
      #endif

      /// A request, which is the last one of its connection.
      /// - Parameter fields: Lines of the head; without one that begins with `Host:`, it is `localhost`.
      static func request(
        _ method: String, _ target: String, _ fields: [String] = [], _ body: [UInt8] = []
      ) -> [UInt8] {
        var lines = ["\(method) \(target) HTTP/1.1", "Connection: close"] + fields
        if !fields.contains(where: { $0.hasPrefix("Host:") }) { lines.append("Host: localhost") }
        if method == "POST" { lines.append("Content-Length: \(body.count)") }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body
      }

      /// The reply to a request over a connection of its own; `nil` if the connection ends without one.
      static func reply(_ request: [UInt8], _ daemon: Daemon) async throws -> LocalPlace.Reply? {
        let connection = try AttackConnection(daemon.place)
        await connection.send(request)
        return try await connection.reply()
      }

      /// What clients see of the downloads and of the options for all of them.
      struct Queue: Hashable {
        let downloads: [JSON]
        let options: JSON

        init(_ daemon: Daemon) async throws {
          downloads = try await daemon.call("aria2.tellWaiting", 0, 1000, ["gid", "status"]).list
          options = try await daemon.call("aria2.getGlobalOption")
        }
      }

      // MARK: Pages of other sites

      /// Requests that a page can make a browser send. Each has the token: only where the page is from can stop it.
      private func requestsOfPages(_ daemon: Daemon, _ fields: [String]) -> [(name: String, bytes: [UInt8])] {
        let parameters = JSON.list([
          .text("token:" + (daemon.token ?? "")), ["http://127.0.0.1:9/evil"], ["pause": "true"],
        ])
        let encoded = Data(parameters.description.utf8).base64EncodedString().replacing("+", with: "%2B")
        let query = "method=aria2.addUri&id=1&params=" + encoded.replacing("=", with: "%3D")
        let call = daemon.message("aria2.addUri", ["http://127.0.0.1:9/evil"], ["pause": "true"])
        return [
          ("a post", Self.request("POST", "/jsonrpc", fields, call)),
          // A form sends it without asking first.
          ("a post of a form", Self.request("POST", "/jsonrpc", fields + ["Content-Type: text/plain"], call)),
          ("a get", Self.request("GET", "/jsonrpc?" + query, fields)),
          ("a script", Self.request("GET", "/jsonrpc?" + query + "&jsoncallback=f", fields)),
        ]
      }

      /// Requests that have no effect, but would tell the page something.
      private func questionsOfPages(_ daemon: Daemon, _ fields: [String]) -> [(name: String, bytes: [UInt8])] {
        let hosts = fields.filter { $0.hasPrefix("Host:") }
        let others = fields.filter { !$0.hasPrefix("Host:") }
        return [
          ("a socket", AttackConnection.handshake(hosts.isEmpty ? ["Host: localhost"] + others : hosts + others)),
          ("a question", Self.request("OPTIONS", "/jsonrpc", fields + ["Access-Control-Request-Method: POST"])),
          ("metrics", Self.request("GET", "/metrics?token=" + (daemon.token ?? ""), fields)),
          ("events", Self.request("GET", "/events?token=" + (daemon.token ?? ""), fields)),
          ("health", Self.request("GET", "/healthz", fields)),
        ]
      }

      private func refusesAll(_ daemon: Daemon, _ fields: [String]) async throws {
        let before = try await Queue(daemon)
        for (name, bytes) in requestsOfPages(daemon, fields) + questionsOfPages(daemon, fields) {
          let connection = try AttackConnection(daemon.place)
          await connection.send(bytes)
          let head = try await connection.head()
          #expect(head?.status == 403, "\(name), \(fields)")
          #expect(head?.fields["access-control-allow-origin"] == nil, "\(name), \(fields)")
        }
        let after = try await Queue(daemon)
        #expect(after == before, "\(fields)")
      }

      /// The same requests have an effect when nothing in them is foreign: else a refusal would say little.
      private func carriesOut(_ daemon: Daemon, _ fields: [String]) async throws {
        let requests = requestsOfPages(daemon, fields)
        let before = try await Queue(daemon).downloads.count
        for (name, bytes) in requests {
          let reply = try await Self.reply(bytes, daemon)
          #expect(reply?.status == 200, "\(name), \(fields)")
        }
        let after = try await Queue(daemon).downloads.count
        #expect(after == before + requests.count, "\(fields)")
      }

      @Test("a page whose name was led to this machine gets nothing")
      func foreignNames() async throws {
        try await withDaemon { daemon in
          for host in [
            "evil.example", "evil.example:\(daemon.port)", "EVIL.Example:\(daemon.port)", "evil.example.",
            "evil.example.:\(daemon.port)", "[::1].evil.example", "[::1].evil.example:\(daemon.port)",
            "[evil.example]:\(daemon.port)", "127.0.0.1.evil.example", "localhost.evil.example", "evil.localhost",
            "127.0.0.1@evil.example", "localhost..", "2130706433", "",
          ] {
            try await refusesAll(daemon, ["Host: \(host)"])
            let page = try await Self.reply(Self.request("GET", "/", ["Host: \(host)"]), daemon)
            #expect(page?.status == 403, "\(host)")
          }
          try await refusesAll(daemon, ["Host: localhost", "Host: evil.example"])
          for host in ["localhost", "LOCALHOST.:\(daemon.port)", "127.0.0.1:\(daemon.port)", "[::1]:\(daemon.port)"] {
            try await carriesOut(daemon, ["Host: \(host)"])
          }
        }
      }

      @Test("a page of another origin gets nothing, and changes nothing")
      func otherOrigins() async throws {
        try await withDaemon { daemon in
          let host = "Host: localhost:\(daemon.port)"
          for foreign in [
            ["Origin: https://evil.example"], ["Origin: null"], ["Origin: http://localhost:1"],
            ["Origin: http://localhost:\(daemon.port).evil.example"], ["Origin: http://localhost.evil.example"],
            ["Origin: file://"], ["Origin:"], ["Sec-Fetch-Site: cross-site"], ["Sec-Fetch-Site: same-site"],
            ["Sec-Fetch-Site: Cross-Site"],
            ["Origin: http://localhost:\(daemon.port)", "Origin: https://evil.example"],
            ["Origin: https://evil.example", "Sec-Fetch-Site: same-origin"],
          ] {
            try await refusesAll(daemon, [host] + foreign)
          }
          for own in [[], ["Origin: http://localhost:\(daemon.port)"], ["Sec-Fetch-Site: same-origin"]] {
            try await carriesOut(daemon, [host] + own)
          }
        }
      }

      // MARK: Tokens

      /// Counts what became of wrong tokens.
      private struct Guesses {
        var looked = 0
        var heldUp = 0
        let start = ContinuousClock.now

        mutating func note(_ message: String?) {
          #expect(message == "Unauthorized" || message?.hasPrefix("Too many wrong tokens") == true, "\(message ?? "")")
          if message == "Unauthorized" { looked += 1 } else { heldUp += 1 }
        }

        /// Ten, and one more every six seconds.
        var mostLooked: Int { 11 + Int((ContinuousClock.now - start) / .seconds(6)) }
      }

      /// Guesses so many times, over connections and by ways that change.
      private func guess(
        _ count: Int, _ daemon: Daemon, _ guesses: inout Guesses, meanwhile: () async throws -> Void
      ) async throws {
        for number in 0..<count {
          let target = ["/metrics", "/events"][number % 2]
          let reply: LocalPlace.Reply?
          switch number % 3 {
          case 0:
            let call = daemon.message("aria2.pauseAll", token: "wrong\(number)")
            reply = try await Self.reply(Self.request("POST", "/jsonrpc", [], call), daemon)
            #expect([400, 429].contains(reply?.status))
            guesses.note(reply?.json?["error"]?["message"]?.text)
          case 1:
            reply = try await Self.reply(
              Self.request("GET", target, ["Authorization: Bearer wrong\(number)"]), daemon)
            #expect([401, 429].contains(reply?.status))
            guesses.note(reply.map { String(decoding: $0.body.dropLast(), as: UTF8.self) })
          default:
            reply = try await Self.reply(Self.request("GET", "\(target)?token=wrong\(number)"), daemon)
            #expect([401, 429].contains(reply?.status))
            guesses.note(reply.map { String(decoding: $0.body.dropLast(), as: UTF8.self) })
          }
          #expect((reply?.fields["retry-after"] != nil) == (reply?.status == 429))
          try await meanwhile()
        }
      }

      /// Guesses in one batch.
      private func guessAtOnce(_ count: Int, _ daemon: Daemon, _ guesses: inout Guesses) async throws {
        let calls = (0..<count).map { daemon.message("aria2.pauseAll", token: "wrong\($0)") }
        let batch = Array("[".utf8) + Array(calls.joined(separator: Array(",".utf8))) + Array("]".utf8)
        let reply = try await Self.reply(Self.request("POST", "/jsonrpc", [], batch), daemon)
        let errors = reply?.json?.list.map { $0["error"]?["message"]?.text } ?? []
        #expect(errors.count == count)
        for error in errors { guesses.note(error) }
      }

      /// Guesses over one socket, which the server closes when there were too many.
      private func guessOverASocket(
        _ count: Int, _ daemon: Daemon, _ guesses: inout Guesses, meanwhile: () async throws -> Void
      ) async throws {
        let socket = try AttackConnection(daemon.place)
        try await socket.upgrade()
        for number in 0..<count {
          await socket.send(AttackConnection.frame(1, daemon.message("aria2.pauseAll", token: "wrong\(number)")))
        }
        var isHeldUp = false
        while let message = try await socket.message() {
          #expect(!isHeldUp, "the server has ended the socket with the last reply")
          guesses.note(message["error"]?["message"]?.text)
          isHeldUp = guesses.heldUp > 0
          try await meanwhile()
        }
        #expect(isHeldUp)
      }

      @Test(
        "who guesses tokens is held up, over connections, sockets and in batches, and nothing else is",
        arguments: [false, true])
      func guessing(overASocketFirst: Bool) async throws {
        try await withDaemon(locksOut: true) { daemon in
          // Connections with the right token go on, those of pages and those of programs.
          let socket = try AttackConnection(daemon.place)
          try await socket.upgrade()
          let kept = try AttackConnection(daemon.place)
          let call = daemon.message("aria2.getVersion")
          let head = "POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(call.count)\r\n\r\n"
          func works() async throws {
            await socket.send(AttackConnection.frame(1, call))
            let message = try await socket.message()
            #expect(message?["result"]?["version"] == "1.36.0", "\(message ?? .null)")
            await kept.send(Array(head.utf8) + call)
            let reply = try await kept.reply()
            #expect(reply?.json?["result"]?["version"] == "1.36.0", "\(reply?.json ?? .null)")
          }
          try await works()

          var guesses = Guesses()
          if overASocketFirst {
            try await guessOverASocket(40, daemon, &guesses, meanwhile: works)
            #expect(guesses.looked >= 10)
          }
          var others = Guesses()
          try await guess(40, daemon, &others, meanwhile: works)
          try await guessAtOnce(40, daemon, &others)
          guesses.looked += others.looked
          guesses.heldUp += others.heldUp
          #expect(guesses.looked >= 10 && guesses.looked <= guesses.mostLooked, "\(guesses)")
          var last = Guesses()
          if !overASocketFirst { try await guessOverASocket(40, daemon, &last, meanwhile: works) }
          #expect(guesses.looked + last.looked <= guesses.mostLooked, "\(guesses) \(last)")
          try await works()

          #if os(Linux)
            // Another address is not held up.
            let other = try AttackConnection(daemon.place, from: "127.0.0.2")
            await other.send(Self.request("POST", "/jsonrpc", [], call))
            let reply = try await other.reply()
            #expect(reply?.status == 200)
          #endif
        }
      }

      // MARK: Slow clients

      /// What clients of that kind send: nothing, a byte, and a request without its end.
      private static let starts = ["", "G", "POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n1"]

      /// Holds connections, and returns those that the server keeps once it has ended as many as it has to.
      private func hold(
        _ count: Int, from source: String? = nil, most: Int, _ daemon: Daemon
      ) async throws -> [AttackConnection] {
        var connections: [AttackConnection] = []
        for number in 0..<count {
          let connection = try AttackConnection(daemon.place, from: source)
          let start = Self.starts[number % Self.starts.count]
          if !start.isEmpty { await connection.send(start) }
          connections.append(connection)
        }
        try await daemon.until { connections.count { !$0.isEnded } <= most }
        // They are ended because they have come too late, not because they have said nothing for too long: the server's
        // threads may differ in their order, but each thread begins with its first one.
        if most >= 100 { #expect(connections.prefix(100).contains { !$0.isEnded }) }
        return connections.filter { !$0.isEnded }
      }

      @Test("of 300 clients that say nothing, or little, as many are kept as one address may have")
      func silentClients() async throws {
        try await withDaemon { daemon in
          let good = try AttackConnection(daemon.place)
          try await good.upgrade()
          func works() async throws {
            await good.send(AttackConnection.frame(1, daemon.message("aria2.getGlobalStat")))
            let message = try await good.message()
            #expect(message?["result"]?["numActive"] == "0", "\(message ?? .null)")
          }
          try await works()
          // One is the good client's own; connections of the beginning may not have ended yet.
          let first = try await hold(300, most: 127, daemon)
          #expect((120...127).contains(first.count))
          try await works()
          #if os(Linux)
            let second = try await hold(300, from: "127.0.0.2", most: 128, daemon)
            #expect((120...128).contains(second.count))
            try await works()
            // Those of all addresses are bounded, too.
            let third = try await hold(50, from: "127.0.0.3", most: 255 - first.count - second.count, daemon)
            #expect(third.count < 16)
            try await works()
          #endif
        }
      }

      private func sockets(_ daemon: Daemon) async throws -> Int {
        let request = Self.request("GET", "/metrics?token=" + (daemon.token ?? ""))
        let reply = try #require(try await Self.reply(request, daemon))
        let line = String(decoding: reply.body, as: UTF8.self).split(separator: "\n")
          .first { $0.hasPrefix("downpipe_rpc_sockets ") }
        return try #require(line.flatMap { Int($0.split(separator: " ")[1]) }, "\(reply)")
      }

      @Test("clients that take no notifications are disconnected, and little waits for them")
      func clientsThatDoNotRead() async throws {
        let count = 1000
        // No disk has so much free: nothing starts, and each pause is a notification.
        try await withDaemon(
          ["--min-free", "1000000G"],
          begin: { daemon in
            let calls = (0..<count).map { number -> JSON in
              let parameters: [JSON] = [
                .text("token:" + (daemon.token ?? "")), [.text("http://127.0.0.1:9/\(number)")], ["pause": "true"],
              ]
              return ["methodName": "aria2.addUri", "params": .list(parameters)]
            }
            let added = try await daemon.place.call("system.multicall", [.list(calls)]).list
            #expect(added.count == count)
            try await daemon.call("aria2.unpauseAll")
          }
        ) { daemon in
          var clients: [AttackConnection] = []
          for _ in 0..<16 {
            let client = try AttackConnection(daemon.place, takesLittle: true)
            try await client.upgrade()
            await client.send(AttackConnection.frame(1, daemon.message("aria2.getVersion")))
            clients.append(client)
          }
          try await daemon.until { try await sockets(daemon) == clients.count }
          // Those of the stream of events are not disconnected so soon: changes that they do not take are merged.
          var streams: [AttackConnection] = []
          for _ in 0..<4 {
            let stream = try AttackConnection(daemon.place, takesLittle: true)
            await stream.send(Self.request("GET", "/events?token=" + (daemon.token ?? "")))
            streams.append(stream)
          }

          // 100,000 notifications are nine times as much as may wait for a socket.
          var rounds = 0
          while rounds < 100, try await sockets(daemon) > 0 {
            try await daemon.call("aria2.unpauseAll")
            try await daemon.call("aria2.pauseAll")
            rounds += 1
          }
          let left = try await sockets(daemon)
          #expect(left == 0, "after \(rounds * count) notifications")
          for client in clients {
            let bytes = try await client.rest()
            #expect(bytes.count < 2 << 20)
          }
          withExtendedLifetime(streams) {}
        }
      }

      @Test("a client that asks and asks, and takes no reply, is not read any more")
      func askingWithoutReading() async throws {
        try await withDaemon { daemon in
          let question = daemon.message("system.listMethods")
          let head = "POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(question.count)\r\n\r\n"
          let requests = try AttackConnection(daemon.place, takesLittle: true)
          let messages = try AttackConnection(daemon.place, takesLittle: true)
          try await messages.upgrade()
          // 100,000 each, whose replies would be 80 MiB.
          let request = Array(repeating: Array(head.utf8) + question, count: 100).flatMap { $0 }
          let frames = Array(repeating: AttackConnection.frame(1, question), count: 100).flatMap { $0 }
          await withTaskGroup(of: Void.self) { group in
            group.addTask { await requests.send(request, times: 1000) }
            group.addTask { await messages.send(frames, times: 1000) }
            group.addTask {
              for _ in 0..<100 { _ = try? await daemon.call("aria2.getGlobalStat") }
              // What is not sent by now waits for the server.
              requests.cut()
              messages.cut()
            }
          }
        }
      }
    }
  }

  extension Daemon {
    /// A call as it is sent, with the token of clients or another one.
    func message(_ method: String, _ parameters: JSON..., token: String? = nil) -> [UInt8] {
      let credentials: [JSON] = (token ?? self.token).map { [.text("token:" + $0)] } ?? []
      let call: JSON = ["jsonrpc": "2.0", "id": 1, "method": .text(method), "params": .list(credentials + parameters)]
      return Array(call.description.utf8)
    }
  }
#endif
