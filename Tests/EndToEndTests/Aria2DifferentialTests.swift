#if RPC
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
    /// The same requests to a real aria2c and to the daemon: their replies have the same shape and the same texts,
    /// apart from differences that are listed with their reasons.
    @Suite(.serialized) struct Aria2DifferentialTests {
      /// A line of `aria2_exchanges.jsonl`: a request, or a state that a download has to reach.
      private struct Exchange: Decodable {
        let name: String
        /// A method, and its parameters behind the token.
        let call: [JSON]?
        /// The token: that of the server if it is missing, none if it is `null`.
        let token: Token?
        let body: String?
        let get: String?
        let wait: String?
        let `for`: String?

        enum Token: Decodable {
          case none
          case text(String)

          init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            self = container.decodeNil() ? .none : .text(try container.decode(String.self))
          }
        }

        private enum Key: String, CodingKey { case name, call, token, body, get, wait, `for` }

        init(from decoder: any Decoder) throws {
          let values = try decoder.container(keyedBy: Key.self)
          name = try values.decode(String.self, forKey: .name)
          call = try values.decodeIfPresent([JSON].self, forKey: .call)
          // `decodeIfPresent` does not tell `null` from a key that is missing.
          token = values.contains(.token) ? try values.decode(Token.self, forKey: .token) : nil
          body = try values.decodeIfPresent(String.self, forKey: .body)
          get = try values.decodeIfPresent(String.self, forKey: .get)
          wait = try values.decodeIfPresent(String.self, forKey: .wait)
          self.for = try values.decodeIfPresent(String.self, forKey: .for)
        }
      }

      /// A line of `aria2_differences.jsonl`: `*` stands for all exchanges, or for the whole reply.
      private struct Accepted: Decodable, Hashable {
        let exchange: String
        let path: String
        let reason: String

        func covers(_ difference: Difference) -> Bool {
          ["*", difference.exchange].contains(exchange) && ["*", difference.path].contains(path)
        }
      }

      private struct Difference: Hashable, CustomStringConvertible {
        let exchange: String
        /// The keys from the outside to the inside; lists have none.
        let path: String
        let text: String

        var description: String { "\(exchange): \(path): \(text)" }
      }

      private struct Side {
        let place: LocalPlace
        let token: String
        let folder: String
        let web: String

        func filled(_ text: String) -> String {
          let parameters = Data(#"["token:\#(token)"]"#.utf8).base64EncodedString()
          return text.replacing("$WEB", with: web).replacing("$DIR", with: folder)
            .replacing("$BASE64TOKEN", with: parameters.replacing("=", with: "%3D").replacing("+", with: "%2B"))
            .replacing("$TOKEN", with: token)
        }

        /// The value without the name of the folder, BitTorrent, and what the daemon has beside aria2's.
        func cleaned(_ value: JSON) -> JSON {
          switch value {
          case .text(let text): .text(text.replacing(folder, with: "$DIR"))
          case .list(let values): .list(values.filter { !Self.isNotCompared($0) }.map(cleaned))
          case .object(let members): .object(members.filter { !Self.isOfTorrent($0.key) }.mapValues(cleaned))
          default: value
          }
        }

        /// What only one of the two has: BitTorrent, and the daemon's own methods.
        private static func isNotCompared(_ value: JSON) -> Bool {
          Aria2DifferentialTests.torrent.contains(value) || value.text?.hasPrefix("downpipe.") == true
        }

        private static func isOfTorrent(_ key: String) -> Bool {
          [
            "bt-", "follow-torrent", "seed-", "peer-", "dht", "infoHash", "numSeeders", "seeder", "bittorrent",
            "enable-peer-exchange", "enable-dht", "listen-port", "max-overall-upload-limit", "max-upload-limit",
            "index-out", "downpipe",
          ].contains { key.hasPrefix($0) }
        }
      }

      private static let torrent: Set<JSON> = [
        "aria2.onBtDownloadComplete", "aria2.addTorrent", "aria2.getPeers", "BitTorrent",
      ]

      /// Values that depend on the moment, or on the server. Their types are compared.
      private static let free: Set<String> = [
        "downloadSpeed", "uploadSpeed", "connections", "sessionId", "version", "errorMessage", "numPieces",
        "pieceLength", "numStoppedTotal", "rpc-listen-port",
      ]

      private static func lines<Line: Decodable>(_ name: String, as type: Line.Type) throws -> [Line] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let text = try String(contentsOf: folder.appending(path: "clients/\(name)"), encoding: .utf8)
        return try text.split(separator: "\n").map { try JSONDecoder().decode(type, from: Data($0.utf8)) }
      }

      @Test func theRepliesAreThoseOfAria2() async throws {
        let exchanges = try Self.lines("aria2_exchanges.jsonl", as: Exchange.self)
        let accepted = try Self.lines("aria2_differences.jsonl", as: Accepted.self)
        let real = try await RealAria2.start()
        let folder = try TemporaryFolder()
        let daemon = try await Daemon.start(folder.path)
        let gate = ServerGate()
        let content = ScriptedContent.pattern(size: 600_000)
        try await withScriptedServer({ request in
          if request.path == "/missing" { return .status(404) }
          let reply = ScriptedReply.file(content, etag: "\"v1\"", for: request)
          return request.path.hasPrefix("/held/") ? reply.held(at: gate, after: 200_000) : reply
        }) { server in
          let web = "http://127.0.0.1:\(server.port)"
          let ours = Side(place: daemon.place, token: daemon.token ?? "", folder: folder.path, web: web)
          let theirs = Side(
            place: real.place, token: RealAria2.token, folder: real.folder.path("out"), web: web)
          var differences: [Difference] = []
          for exchange in exchanges {
            if let gid = exchange.wait, let state = exchange.for {
              for side in [ours, theirs] { try await self.wait(for: gid, state, side) }
              continue
            }
            let (own, other) = (try await send(exchange, to: ours), try await send(exchange, to: theirs))
            differences += compare(exchange.name, own, ours, other, theirs)
          }
          for difference in differences where !accepted.contains(where: { $0.covers(difference) }) {
            Issue.record("\(difference)")
          }
          for entry in accepted where !differences.contains(where: { entry.covers($0) }) {
            Issue.record("“\(entry.exchange)”: \(entry.path): accepted, but it does not occur: \(entry.reason)")
          }
          gate.open()
        }
        await daemon.end(SIGKILL)
        await real.end()
      }

      private func send(_ exchange: Exchange, to side: Side) async throws -> LocalPlace.Reply {
        if let target = exchange.get { return try await side.place.send("GET", side.filled(target)) }
        if let body = exchange.body {
          return try await side.place.send("POST", "/jsonrpc", Data(side.filled(body).utf8))
        }
        let call = try #require(exchange.call, "\(exchange.name)")
        let token: [JSON] =
          switch exchange.token {
          case nil: [.text("token:\(side.token)")]
          case .some(.none): []
          case .text(let text): [.text("token:\(text)")]
          }
        let request: JSON = [
          "jsonrpc": "2.0", "id": "x", "method": try #require(call.first), "params": .list(token + call.dropFirst()),
        ]
        let encoder = JSONEncoder()
        // The names of folders are filled in as they are.
        encoder.outputFormatting = .withoutEscapingSlashes
        let text = String(decoding: try encoder.encode(request), as: UTF8.self)
        return try await side.place.send("POST", "/jsonrpc", Data(side.filled(text).utf8))
      }

      /// Asks until a download has a state, and, when it is active, the first bytes of its file. The limit of the suite
      /// ends it.
      private func wait(for gid: String, _ state: String, _ side: Side) async throws {
        while true {
          let parameters: [JSON] = [.text("token:\(side.token)"), .text(gid), ["status", "completedLength"]]
          let told = try await side.place.call("aria2.tellStatus", parameters)
          let hasBytes = told["completedLength"].flatMap(\.text) != "0"
          if told["status"]?.text == state, state != "active" || hasBytes { return }
          try Task.checkCancellation()
          await Task.yield()
        }
      }

      // MARK: Comparing

      private func compare(
        _ name: String, _ own: LocalPlace.Reply, _ ours: Side, _ other: LocalPlace.Reply, _ theirs: Side
      ) -> [Difference] {
        var differences: [Difference] = []
        func note(_ path: String, _ text: String) {
          differences.append(Difference(exchange: name, path: path, text: text))
        }
        if own.status != other.status { note("status", "\(own.status), not \(other.status)") }
        guard let json = own.json.map(ours.cleaned), let otherJSON = other.json.map(theirs.cleaned) else {
          // A script in which the order of keys is free, or no reply of JSON at all.
          if own.body.isEmpty != other.body.isEmpty { note("body", String(decoding: own.body, as: UTF8.self)) }
          return differences
        }
        if own.fields["content-type"] != other.fields["content-type"] {
          note("type", "\(own.fields["content-type"] ?? "none"), not \(other.fields["content-type"] ?? "none")")
        }
        Self.compare(json, otherJSON, "", note)
        return differences
      }

      private static func compare(_ own: JSON, _ other: JSON, _ path: String, _ note: (String, String) -> Void) {
        let key = path.split(separator: ".").last.map(String.init) ?? ""
        switch (own, other) {
        case (.object(let members), .object(let others)):
          for key in Set(members.keys).union(others.keys).sorted() {
            let inner = path.isEmpty ? key : "\(path).\(key)"
            switch (members[key], others[key]) {
            case (let value?, let other?): compare(value, other, inner, note)
            case (let value?, nil): note(inner, "only the daemon has it: \(value)")
            case (nil, let other): note(inner, "only aria2 has it: \(other ?? .null)")
            }
          }
        case (.list(var values), .list(var others)):
          // The order of methods is free.
          if values.allSatisfy({ $0.text?.hasPrefix("aria2.") == true || $0.text?.hasPrefix("system.") == true }) {
            values.sort { ($0.text ?? "") < ($1.text ?? "") }
            others.sort { ($0.text ?? "") < ($1.text ?? "") }
          }
          guard values.count == others.count else {
            return note(path.isEmpty ? "$" : path, "\(own), not \(other)")
          }
          for (value, other) in zip(values, others) { compare(value, other, path, note) }
        case (.text, .text) where free.contains(key): break
        default: if own != other { note(path, "\(own), not \(other)") }
        }
      }
    }
  }
#endif
