#if RPC
  import DownpipeTesting
  import Foundation
  import Testing

  extension EndToEnd.DaemonAttackTests {
    // MARK: Large messages

    private static let mebibyte = [UInt8](repeating: 0x78, count: 1 << 20)

    @Test("a request of 100 MiB is refused before it is read, with its length and in chunks")
    func largeRequests() async throws {
      try await withDaemon { daemon in
        let chunk = Array("100000\r\n".utf8) + Self.mebibyte + Array("\r\n".utf8)
        for (fields, piece, count) in [
          ("Content-Length: \(100 << 20)", Self.mebibyte, 100), ("Transfer-Encoding: chunked", chunk, 100),
          ("Content-Length: \(100 << 20)\r\nExpect: 100-continue", Self.mebibyte, 0),
          ("Content-Length: \(Int.max)", Self.mebibyte, 100), ("Content-Length: \(2 << 20 + 1)", Self.mebibyte, 3),
        ] {
          let connection = try AttackConnection(daemon.place)
          await connection.send("POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n\r\n")
          await connection.send(piece, times: count)
          let reply = try await connection.reply()
          #expect(reply?.status == 413, "\(fields)")
          _ = try await connection.rest()
        }
        // What is as large as it may be is read.
        let reply = try await Self.reply(Self.request("POST", "/jsonrpc", [], Self.mebibyte + Self.mebibyte), daemon)
        #expect(reply?.json?["error"]?["code"] == -32700)
      }
    }

    @Test("a message of 100 MiB ends its socket, as one frame and as many")
    func largeMessages() async throws {
      try await withDaemon { daemon in
        func socket() async throws -> AttackConnection {
          let socket = try AttackConnection(daemon.place)
          try await socket.upgrade()
          return socket
        }
        let part = [UInt8](repeating: 0x78, count: 65_536)
        let head = Array(AttackConnection.frame(1, []).prefix(1))
        for (name, first, piece, count) in [
          ("one frame", head + [0xFF, 0, 0, 0, 0, 6, 64, 0, 0, 0, 0, 0, 0], Self.mebibyte, 100),
          ("a frame without end", head + [0xFF] + [UInt8](repeating: 0xFF, count: 8), Self.mebibyte, 100),
          (
            "frames of 64 KiB", AttackConnection.frame(1, part, isFinal: false),
            AttackConnection.frame(0, part, isFinal: false), 1600
          ),
          (
            "100,000 frames of a byte", AttackConnection.frame(1, [0x78], isFinal: false),
            Array(repeating: AttackConnection.frame(0, [0x78], isFinal: false), count: 1000).flatMap { $0 }, 100
          ),
          (
            "100,000 empty frames", AttackConnection.frame(1, [], isFinal: false),
            Array(repeating: AttackConnection.frame(0, [], isFinal: false), count: 1000).flatMap { $0 }, 100
          ),
        ] as [(String, [UInt8], [UInt8], Int)] {
          let socket = try await socket()
          await socket.send(first)
          await socket.send(piece, times: count)
          while let frame = try await socket.frame() { #expect([8, 9].contains(frame.code), "\(name): \(frame)") }
        }
        // What is nearly as large as it may be is read, in pieces.
        let whole = try await socket()
        await whole.send(AttackConnection.frame(1, part, isFinal: false))
        await whole.send(AttackConnection.frame(0, part, isFinal: false), times: 30)
        await whole.send(AttackConnection.frame(0, part))
        let message = try await whole.message()
        #expect(message?["error"]?["code"] == -32700)
      }
    }

    // MARK: JSON

    private static func repeated(_ text: String, _ count: Int, _ before: String = "", _ after: String = "") -> [UInt8] {
      Array((before + String(repeating: text, count: count) + after).utf8)
    }

    @Test("a million levels, a million values, and numbers of a million digits are refused")
    func deepAndWide() async throws {
      try await withDaemon { daemon in
        let texts = [
          ("a million levels", Self.repeated("[", 1_000_000, "", String(repeating: "]", count: 1_000_000))),
          ("a million levels that do not end", Self.repeated("[", 1_000_000)),
          ("objects", Self.repeated("{\"a\":", 300_000, "", "1" + String(repeating: "}", count: 300_000))),
          ("200 levels", Self.repeated("[", 200, "", String(repeating: "]", count: 200))),
          ("a million values", Self.repeated("0,", 1_000_000, "[", "0]")),
          ("as many as are looked at", Self.repeated("0,", 199_990, "[", "0]")),
          ("texts", Self.repeated("\"\",", 199_990, "[", "0]")),
          (
            "parameters", Self.repeated("0,", 60_000, "{\"id\":1,\"method\":\"system.listMethods\",\"params\":[", "0]}")
          ),
          ("digits", Self.repeated("1", 1_000_000, "{\"method\":\"system.listMethods\",\"id\":", "}")),
          ("an exponent", Self.repeated("9", 9, "{\"method\":\"system.listMethods\",\"id\":1e", "}")),
          ("half a character", Self.repeated("\\ud800", 1, "{\"method\":\"system.listMethods\",\"id\":\"", "\"}")),
        ]
        let socket = try AttackConnection(daemon.place)
        try await socket.upgrade()
        for (name, text) in texts {
          let reply = try #require(try await Self.reply(Self.request("POST", "/jsonrpc", [], text), daemon), "\(name)")
          #expect([400, 500].contains(reply.status) && reply.body.count < 1000, "\(name): \(reply.status)")
          #expect(reply.json?["error"] != nil, "\(name)")
          await socket.send(AttackConnection.frame(1, text))
          let message = try await socket.message()
          #expect(message?["error"] != nil, "\(name)")
        }
        let encoded = Data(Self.repeated("[", 50_000)).base64EncodedString().replacing("=", with: "%3D")
        let target = "/jsonrpc?method=system.listMethods&id=1&params=" + encoded
        let reply = try await Self.reply(Self.request("GET", target), daemon)
        #expect(reply?.status == 500)
      }
    }

    @Test("a small message of a stranger has no large reply")
    func repliesOfStrangers() async throws {
      try await withDaemon { daemon in
        let list = "{\"id\":1,\"method\":\"system.listMethods\"}"
        func multicall(_ call: String, _ count: Int) -> String {
          let calls = Array(repeating: call, count: count).joined(separator: ",")
          return "{\"id\":1,\"method\":\"system.multicall\",\"params\":[[\(calls)]]}"
        }
        func batch(_ call: String, _ count: Int) -> String {
          "[" + Array(repeating: call, count: count).joined(separator: ",") + "]"
        }
        let inner = "{\"methodName\":\"system.listMethods\"}"
        for (name, text, most) in [
          ("multicalls of nothing", batch(multicall("0", 400), 100), 200_000),
          ("multicalls of lists", batch(multicall(inner, 1000), 8), 2 << 20), ("lists", batch(list, 1000), 2 << 20),
          ("too many lists", batch(list, 1001), 1000), ("too many in one", multicall(inner, 1001), 1000),
          ("a multicall in a multicall", multicall("{\"methodName\":\"system.multicall\"}", 1000), 200_000),
          ("ids", batch("{\"method\":\"x\",\"id\":\"\(String(repeating: "\\u0001", count: 300))\"}", 1000), 4 << 20),
        ] {
          let reply = try #require(
            try await Self.reply(Self.request("POST", "/jsonrpc", [], Array(text.utf8)), daemon), "\(name)")
          #expect(reply.body.count <= most, "\(name): \(reply.body.count)")
          #expect(reply.body.last == UInt8(ascii: text.hasPrefix("[") && most > 1000 ? "]" : "}"), "\(name)")
        }
      }
    }

    @Test("one message of a client with the token is not told more downloads than one call")
    func repliesOfClients() async throws {
      try await withDaemon { daemon in
        let token = daemon.token ?? ""
        let add = (0..<400).map { number -> JSON in
          let parameters: [JSON] = [
            .text("token:" + token), [.text("http://127.0.0.1:9/\(number)")], ["pause": "true"],
          ]
          return ["methodName": "aria2.addUri", "params": .list(parameters)]
        }
        _ = try await daemon.place.call("system.multicall", [.list(add)])
        // 400 × 50 are twice as many as one call may tell.
        let tell: JSON = [
          "methodName": "aria2.tellWaiting", "params": [.text("token:" + token), 0, 1000, ["gid"]],
        ]
        let calls = JSON.list(Array(repeating: tell, count: 50))
        let message = daemon.message("system.multicall", calls)
        let reply = try await Self.reply(Self.request("POST", "/jsonrpc", [], message), daemon)
        let told = String(decoding: reply?.body ?? [], as: UTF8.self).matches(of: /"gid"/).count
        #expect(told > 0 && told <= 10_000)
      }
    }

    // MARK: What is not HTTP as it should be

    @Test("lengths that contradict each other, and heads that are none, get an error and no second reply")
    func malformedRequests() async throws {
      try await withDaemon { daemon in
        let before = try await Queue(daemon)
        let call = daemon.message("aria2.addUri", ["http://127.0.0.1:9/smuggled"], ["pause": "true"])
        let text = String(decoding: call, as: UTF8.self)
        let post = "POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\n"
        /// A whole request, behind what another server may take for the end of the first one.
        let second = "\(post)Content-Length: \(call.count)\r\n\r\n\(text)"
        let hidden = "\r\n\r\n\(second)"
        let chunked = "Transfer-Encoding: chunked\r\n"
        let end = "\r\n0\r\n\r\n\(second)"
        let size = String(call.count, radix: 16)
        let cases = [
          ("two equal lengths", "\(post)Content-Length: \(call.count)\r\nContent-Length: \(call.count)\r\n\r\n\(text)"),
          ("a short and a long one", "\(post)Content-Length: 0\r\nContent-Length: \(second.utf8.count)\(hidden)"),
          ("a long and a short one", "\(post)Content-Length: \(second.utf8.count)\r\nContent-Length: 0\(hidden)"),
          ("a list of lengths", "\(post)Content-Length: 0, \(second.utf8.count)\(hidden)"),
          ("a length with a plus", "\(post)Content-Length: +0\(hidden)"),
          ("a negative length", "\(post)Content-Length: -1\(hidden)"),
          ("a hexadecimal length", "\(post)Content-Length: 0x10\(hidden)"),
          ("an empty length", "\(post)Content-Length:\(hidden)"),
          ("a length that overflows", "\(post)Content-Length: 18446744073709551616\(hidden)"),
          ("a space before the colon", "\(post)Content-Length : \(call.count)\r\n\r\n\(text)"),
          ("a length and chunks", "\(post)Content-Length: 4\r\n\(chunked)\(end)"),
          ("chunks and a length", "\(post)\(chunked)Content-Length: 4\r\n\(end)"),
          ("an unknown coding", "\(post)Transfer-Encoding: xchunked\r\n\(end)"),
          ("no coding, and a length", "\(post)Transfer-Encoding: identity\r\nContent-Length: 0\(hidden)"),
          ("two codings", "\(post)\(chunked)Transfer-Encoding: identity\r\n\(end)"),
          ("chunks in chunks", "\(post)Transfer-Encoding: chunked, chunked\r\n\(end)"),
          ("a coding with a space before the colon", "\(post)Transfer-Encoding : chunked\r\n\(end)"),
          ("a coding with a control", "\(post)Transfer-Encoding: \u{B}chunked\r\n\(end)"),
          ("a size of a chunk that overflows", "\(post)\(chunked)\r\n1ffffffffffffffff\r\n\(text)\(end)"),
          ("a negative size of a chunk", "\(post)\(chunked)\r\n-1\r\n\(text)\(end)"),
          ("a chunk that is longer than it says", "\(post)\(chunked)\r\n2\r\n{}{}\(end)"),
          ("a bare LF behind a chunk", "\(post)\(chunked)\r\n\(size)\r\n\(text)\n0\r\n\r\n\(second)"),
          ("a bare LF behind an extension", "\(post)\(chunked)\r\n\(size);a\n\(text)\(end)"),
          ("bare LFs", "POST /jsonrpc HTTP/1.1\nHost: localhost\nContent-Length: \(call.count)\n\n\(text)"),
          ("a bare LF", "\(post)X: y\nContent-Length: \(call.count)\r\n\r\n\(text)"),
          ("a bare CR", "\(post)X: y\rContent-Length: \(call.count)\r\n\r\n\(text)"),
          ("a NUL in a field", "\(post)X: a\0b\r\nContent-Length: \(call.count)\r\n\r\n\(text)"),
          (
            "a field over two lines",
            "\(post)X: y\r\n Content-Length: 0\r\nContent-Length: \(call.count)\r\n\r\n\(text)"
          ),
          ("a line without a colon", "\(post)nonsense\r\nContent-Length: \(call.count)\r\n\r\n\(text)"),
          ("a line that begins with a colon", "\(post): x\r\nContent-Length: \(call.count)\r\n\r\n\(text)"),
          ("a space in the target", "POST /json rpc HTTP/1.1\r\nHost: localhost\r\n\(hidden)"),
          ("HTTP/0.9", "POST /jsonrpc\(hidden)"), ("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\(hidden)"),
          ("HTTP/1.1 without a name", "POST /jsonrpc HTTP/1.1\r\nContent-Length: \(call.count)\r\n\r\n\(text)"),
          ("TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\(String(repeating: "a", count: 500))\(hidden)"),
          ("a field of a mebibyte", "\(post)X: \(String(repeating: "a", count: 1 << 20))\(hidden)"),
          ("a name of a mebibyte", "\(post)\(String(repeating: "a", count: 1 << 20)): x\(hidden)"),
          ("a target of a mebibyte", "GET /\(String(repeating: "a", count: 1 << 20)) HTTP/1.1\(hidden)"),
          ("10,000 fields", "\(post)\((0..<10_000).map { "X-\($0): y\r\n" }.joined())\(hidden)"),
          ("a million fields", "\(post)\(String(repeating: "X: y\r\n", count: 1_000_000))\(hidden)"),
          (
            "200,000 trailers",
            "\(post)\(chunked)\r\n2\r\n{}\r\n0\r\n\(String(repeating: "X: y\r\n", count: 200_000))\(hidden)"
          ),
        ]
        for (name, text) in cases {
          let connection = try AttackConnection(daemon.place)
          await connection.send(text)
          let received = String(decoding: try await connection.rest(), as: UTF8.self)
          let statuses = received.matches(of: /HTTP\/1\.1 (\d+)/).map { Int($0.output.1) ?? 0 }
          #expect(statuses.count <= 1, "\(name): \(received)")
          #expect(statuses.allSatisfy { $0 >= 400 }, "\(name): \(received)")
        }
        let after = try await Queue(daemon)
        #expect(after == before)
        // The request is one that is carried out.
        let reply = try await Self.reply(Self.request("POST", "/jsonrpc", [], call), daemon)
        #expect(reply?.status == 200)
      }
    }

    @Test("a client that offers another protocol gets its reply over this one (RFC 9110 §7.8)")
    func otherProtocols() async throws {
      try await withDaemon { daemon in
        let offer = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"]
        let call = daemon.message("aria2.getVersion")
        for fields in [offer, ["Connection: Upgrade", "Upgrade: websocket"], ["Upgrade: TLS/1.0"]] {
          let get = try await Self.reply(Self.request("GET", "/healthz", fields), daemon)
          #expect(get?.status == 200, "\(fields)")
          let post = try await Self.reply(Self.request("POST", "/jsonrpc", fields, call), daemon)
          #expect(post?.status == 200, "\(fields)")
        }
      }
    }

    // MARK: What is not WebSocket as it should be

    @Test(
      "a request for a socket that has a body is refused, or its socket works: no connection is left over",
      arguments: [
        ("Content-Length: 1000", String(repeating: "a", count: 1000)),
        ("Transfer-Encoding: chunked", "3e8\r\n" + String(repeating: "a", count: 1000) + "\r\n0\r\n\r\n"),
      ])
    func socketsWithABody(_ field: String, _ body: String) async throws {
      try await withDaemon { daemon in
        let connection = try AttackConnection(daemon.place)
        await connection.send(AttackConnection.handshake(["Host: localhost", field]))
        await connection.send(body)
        // A request that is refused ends the connection, and so does a socket, since this is no frame.
        let bytes = try await connection.rest()
        #expect(bytes.count < 1000)
      }
    }

    @Test("what is no frame of a client ends its socket")
    func wrongFrames() async throws {
      try await withDaemon { daemon in
        for (name, bytes) in [
          ("without a mask (RFC 6455 §5.1)", AttackConnection.frame(1, Array("{}".utf8), isMasked: false)),
          ("a bit that is reserved (§5.2)", [0xC1, 0x80, 0, 0, 0, 0]),
          ("an unknown code", AttackConnection.frame(3, [0x78])), ("binary", AttackConnection.frame(2, [0x78])),
          ("a ping that is too long", AttackConnection.frame(9, [UInt8](repeating: 0x78, count: 200))),
          ("a ping in pieces", AttackConnection.frame(9, [0x78], isFinal: false)),
          ("a second piece without a first", AttackConnection.frame(0, [0x78])),
          (
            "a message in a message",
            AttackConnection.frame(1, [0x78], isFinal: false) + AttackConnection.frame(1, [0x78])
          ),
          ("the end, with half a code", AttackConnection.frame(8, [3])),
        ] as [(String, [UInt8])] {
          let socket = try AttackConnection(daemon.place)
          try await socket.upgrade()
          // A reply to the second message shows that the first one has not ended the socket.
          await socket.send(bytes + AttackConnection.frame(1, daemon.message("aria2.getVersion")))
          var isServed = false
          while !isServed, let frame = try await socket.frame() { isServed = frame.json?["result"] != nil }
          #expect(!isServed, "\(name)")
        }
      }
    }
  }
#endif
