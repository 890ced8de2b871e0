import DownpipeCore
import DownpipeServer
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeRPC

/// What the server replies to requests of HTTP.
@Suite(.endsHangs)
struct RPCHandlerTests {
  private let client = ServerConnection(client: "192.0.2.1")

  private func get(
    _ target: String, fields: [(name: String, value: String)] = [], over connection: ServerConnection? = nil
  ) -> ServerRequest { request("GET", target, fields: fields, over: connection) }

  private func post(
    _ text: String, fields: [(name: String, value: String)] = [], over connection: ServerConnection? = nil
  ) -> ServerRequest {
    request("POST", "/jsonrpc", fields: fields, body: text, over: connection)
  }

  private func request(
    _ method: String, _ target: String, fields: [(name: String, value: String)] = [], body: String = "",
    over connection: ServerConnection? = nil
  ) -> ServerRequest {
    ServerRequest(
      method: method, target: target, fields: [(name: "Host", value: "127.0.0.1:6800")] + fields,
      body: Array(body.utf8), connection: connection ?? client)
  }

  /// A call of `aria2.saveSession` over a connection of its own.
  private func call(_ token: String?, from address: String? = "192.0.2.1") -> ServerRequest {
    let parameters = token.map { "[\"token:\($0)\"]" } ?? "[]"
    return post(
      "{\"id\":1,\"method\":\"aria2.saveSession\",\"params\":\(parameters)}",
      over: ServerConnection(client: address))
  }

  private func value(_ reply: ServerReply) throws -> JSONValue {
    let text = try #require(reply.text)
    return try JSONValue(parsing: Array(text.utf8))
  }

  // MARK: Statuses

  @Test func aCallSucceeds() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: nil)
    let reply = await handler.reply(to: post(#"{"id":"a","method":"aria2.saveSession"}"#))
    #expect(reply.status == 200)
    #expect(reply.field("Content-Type") == "application/json-rpc")
    #expect(reply.field("X-Content-Type-Options") == "nosniff")
    #expect(reply.field("Cache-Control") == "no-store")
    #expect(reply.field("Access-Control-Allow-Origin") == nil)
    #expect(!reply.isLast)
    let expected: JSONValue = ["id": "a", "jsonrpc": "2.0", "result": "OK"]
    #expect(try value(reply) == expected)
    await fixture.downloader.shutdown()
  }

  @Test(arguments: [
    ("{", 500, -32700), ("\"\\ud800\"", 500, -32700), ("1", 400, -32600), ("{\"method\":\"m\"}", 400, -32600),
    ("{\"id\":1,\"method\":\"m\",\"params\":{}}", 500, -32602), ("{\"id\":1,\"method\":\"aria2.nonsense\"}", 400, 1),
    ("{\"id\":1,\"method\":\"aria2.tellStatus\",\"params\":[\"9\"]}", 400, 1),
  ])
  func failuresHaveStatuses(text: String, status: Int, code: Int64) async throws {
    let fixture = try await RPCFixture()
    let reply = await fixture.handler(secret: nil).reply(to: post(text))
    #expect(reply.status == status)
    #expect(reply.isLast)
    let told = try value(reply)
    #expect(told["error"]?["code"] == .integer(code))
    #expect(told["result"] == nil)
    await fixture.downloader.shutdown()
  }

  @Test func aBatchSucceedsWithFailuresInIt() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: nil)
    let text = #"[{"id":1,"method":"aria2.saveSession"},{"id":2,"method":"aria2.nonsense"},3]"#
    let reply = await handler.reply(to: post(text))
    #expect(reply.status == 200)
    let replies = try #require(try value(reply).list)
    #expect(replies.compactMap { $0["id"] } == [.integer(1), .integer(2), .null])
    #expect(replies.map { $0["error"] == nil } == [true, false, false])
    let empty = await handler.reply(to: post("[]"))
    #expect(empty.status == 200)
    #expect(empty.text == "[]")
    await fixture.downloader.shutdown()
  }

  @Test(arguments: [
    ("GET", "/jsonrpc/"), ("GET", "/other"), ("POST", "/"), ("POST", "/metrics"), ("PUT", "/jsonrpc"),
    ("DELETE", "/jsonrpc"), ("GET", "/JSONRPC"),
  ])
  func otherPathsAndMethodsAreNotFound(method: String, target: String) async throws {
    let fixture = try await RPCFixture()
    let reply = await fixture.handler(secret: nil).reply(to: request(method, target))
    #expect(reply.status == 404)
    await fixture.downloader.shutdown()
  }

  // MARK: Tokens

  @Test func withoutASecretAllAreLetIn() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: nil)
    let calls = [call(nil), call("any")]
    for call in calls {
      let reply = await handler.reply(to: call)
      #expect(reply.status == 200)
      #expect(call.connection.isTrusted)
    }
    await fixture.downloader.shutdown()
  }

  @Test func afterTenWrongTokensAnAddressWaits() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: try RPCSecret("secret"))
    for number in 0..<10 {
      let reply = await handler.reply(to: call("wrong \(number)"))
      #expect(reply.status == 400)
      #expect(reply.field("Retry-After") == nil)
      #expect(try value(reply)["error"] == RPCFailure.unauthorized.json)
    }
    for token in ["wrong", "secret"] {
      let reply = await handler.reply(to: call(token))
      #expect(reply.status == 429)
      #expect(reply.field("Retry-After") == "6")
      #expect(reply.isLast)
      #expect(try value(reply)["error"] == RPCFailure.tooManyGuesses.json)
    }
    let other = await handler.reply(to: call("secret", from: "192.0.2.2"))
    #expect(other.status == 200)
    let socket = await handler.reply(to: call("secret", from: nil))
    #expect(socket.status == 200)

    fixture.time.advance(by: .seconds(6))
    let later = await handler.reply(to: call("secret"))
    #expect(later.status == 200)
    await fixture.downloader.shutdown()
  }

  /// A client that does not know that there is a token has guessed nothing.
  @Test func callsWithoutATokenAreNoGuesses() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: try RPCSecret("secret"))
    for _ in 0..<20 {
      let reply = await handler.reply(to: call(nil))
      #expect(reply.status == 400)
    }
    let right = await handler.reply(to: call("secret"))
    #expect(right.status == 200)
    await fixture.downloader.shutdown()
  }

  @Test func theCallsOfABatchAreGuesses() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: try RPCSecret("secret"))
    let guess = #"{"id":1,"method":"aria2.saveSession","params":["token:wrong"]}"#
    let right = #"{"id":1,"method":"aria2.saveSession","params":["token:secret"]}"#
    let text = "[" + Array(repeating: guess, count: 12).joined(separator: ",") + "," + right + "]"
    let reply = await handler.reply(to: post(text))
    #expect(reply.status == 200)
    let messages = try #require(try value(reply).list).map { $0["error"]?["message"]?.text }
    let unauthorized: String? = RPCFailure.unauthorized.message
    let tooMany: String? = RPCFailure.tooManyGuesses.message
    #expect(
      messages == Array(repeating: unauthorized, count: 10) + Array(repeating: tooMany, count: 3))
    await fixture.downloader.shutdown()
  }

  /// Others behind the same address, such as a proxy, do not lock a client out.
  @Test func aTrustedConnectionIsNotLockedOut() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: try RPCSecret("secret"))
    let right = #"{"id":1,"method":"aria2.saveSession","params":["token:secret"]}"#
    #expect(!client.isTrusted)
    let first = await handler.reply(to: post(right))
    #expect(first.status == 200)
    #expect(client.isTrusted)
    for _ in 0..<10 { _ = await handler.reply(to: call("wrong")) }
    let other = await handler.reply(to: call("secret"))
    #expect(other.status == 429)
    let again = await handler.reply(to: post(right))
    #expect(again.status == 200)
    // Each call still needs the token.
    let without = await handler.reply(to: post(#"{"id":1,"method":"aria2.saveSession"}"#))
    #expect(without.status == 400)
    await fixture.downloader.shutdown()
  }

  @Test func wrongTokensMakeNoTrust() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: try RPCSecret("secret"))
    let wrong = call("wrong")
    _ = await handler.reply(to: wrong)
    #expect(!wrong.connection.isTrusted)
    let list = post(#"{"id":1,"method":"system.listMethods"}"#)
    let reply = await handler.reply(to: list)
    #expect(reply.status == 200)
    #expect(!client.isTrusted)
    await fixture.downloader.shutdown()
  }

  // MARK: Pages

  @Test func pagesOfOtherSitesAreRefused() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: nil)
    let text = #"{"id":1,"method":"aria2.addUri","params":[["https://example.org/a"],{"pause":"true"}]}"#
    for origin in ["https://evil.example", "null", "http://127.0.0.1:80"] {
      let reply = await handler.reply(to: post(text, fields: [(name: "Origin", value: origin)]))
      #expect(reply.status == 403)
      #expect(reply.text?.hasPrefix("refused: ") == true)
      #expect(reply.field("Access-Control-Allow-Origin") == nil)
      #expect(reply.isLast)
      let preflight = await handler.reply(
        to: request("OPTIONS", "/jsonrpc", fields: [(name: "Origin", value: origin)]))
      #expect(preflight.status == 403)
      #expect(preflight.field("Access-Control-Allow-Methods") == nil)
    }
    let counts = try await fixture.downloader.counts()
    #expect(counts.isEmpty)
    await fixture.downloader.shutdown()
  }

  @Test func namesOfOthersAreRefused() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: nil)
    for target in ["/jsonrpc", "/healthz", "/metrics", "/events"] {
      let request = ServerRequest(
        method: "GET", target: target, fields: [(name: "Host", value: "evil.example")], connection: client)
      let reply = await handler.reply(to: request)
      #expect(reply.status == 403)
    }
    await fixture.downloader.shutdown()
  }

  @Test func anAllowedPageMayReadReplies() async throws {
    let fixture = try await RPCFixture()
    let rules = AccessRules(origins: ["https://ariang.example"])
    let handler = fixture.handler(secret: nil, rules: rules)
    let origin = [(name: "Origin", value: "https://ariang.example")]
    let reply = await handler.reply(to: post(#"{"id":1,"method":"aria2.saveSession"}"#, fields: origin))
    #expect(reply.status == 200)
    #expect(reply.field("Access-Control-Allow-Origin") == "https://ariang.example")
    #expect(reply.field("Vary") == "Origin")
    let failure = await handler.reply(to: post("{", fields: origin))
    #expect(failure.status == 500)
    #expect(failure.field("Access-Control-Allow-Origin") == "https://ariang.example")

    let preflight = await handler.reply(to: request("OPTIONS", "/jsonrpc", fields: origin))
    #expect(preflight.status == 200)
    #expect(preflight.field("Access-Control-Allow-Origin") == "https://ariang.example")
    #expect(preflight.field("Access-Control-Allow-Methods") == "POST, GET, OPTIONS")
    #expect(preflight.field("Access-Control-Allow-Headers") == "Content-Type, Authorization")
    #expect(preflight.field("Access-Control-Max-Age") != nil)
    for (asked, allowed) in [
      ("content-type,x-own", "content-type,x-own"), ("x-own\r\nSet-Cookie: a", "Content-Type, Authorization"),
      (String(repeating: "x", count: 2000), "Content-Type, Authorization"), ("x-ü", "Content-Type, Authorization"),
    ] {
      let fields = origin + [(name: "Access-Control-Request-Headers", value: asked)]
      let preflight = await handler.reply(to: request("OPTIONS", "/jsonrpc", fields: fields))
      #expect(preflight.field("Access-Control-Allow-Headers") == allowed)
    }
    await fixture.downloader.shutdown()
  }

  @Test func ownPagesNeedNoPermission() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: nil)
    let origin = [(name: "Origin", value: "http://127.0.0.1:6800")]
    let reply = await handler.reply(to: post(#"{"id":1,"method":"aria2.saveSession"}"#, fields: origin))
    #expect(reply.status == 200)
    #expect(reply.field("Access-Control-Allow-Origin") == nil)
    let preflight = await handler.reply(to: request("OPTIONS", "/jsonrpc", fields: origin))
    #expect(preflight.status == 200)
    #expect(preflight.field("Access-Control-Allow-Methods") == nil)
    await fixture.downloader.shutdown()
  }

  @Test func socketsHaveTheSameRules() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: nil, rules: AccessRules(origins: ["https://ariang.example"]))
    #expect(handler.acceptsSocket(get("/jsonrpc")))
    #expect(handler.acceptsSocket(get("/jsonrpc", fields: [(name: "Origin", value: "https://ariang.example")])))
    #expect(!handler.acceptsSocket(get("/jsonrpc", fields: [(name: "Origin", value: "https://evil.example")])))
    #expect(!handler.acceptsSocket(get("/events")))
    #expect(!handler.acceptsSocket(get("/")))
    await fixture.downloader.shutdown()
  }

  // MARK: Queries

  @Test func aCallByAQuery() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: try RPCSecret("secret"))
    let parameters = Data(#"["token:secret"]"#.utf8).base64EncodedString()
    let escaped = parameters.replacing("=", with: "%3D")
    let reply = await handler.reply(to: get("/jsonrpc?method=aria2.saveSession&id=a&params=\(escaped)"))
    #expect(reply.status == 200)
    let expected: JSONValue = ["id": "a", "jsonrpc": "2.0", "result": "OK"]
    #expect(try value(reply) == expected)
    let nothing = await handler.reply(to: get("/jsonrpc"))
    #expect(nothing.status == 400)
    await fixture.downloader.shutdown()
  }

  @Test(arguments: ["cb", "jQuery_123.$callback", String(repeating: "a", count: 100)])
  func scripts(name: String) async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: nil)
    let reply = await handler.reply(to: get("/jsonrpc?method=aria2.saveSession&id=a&jsoncallback=\(name)"))
    #expect(reply.status == 200)
    #expect(reply.field("Content-Type") == "text/javascript")
    #expect(reply.field("X-Content-Type-Options") == "nosniff")
    let text = try #require(reply.text)
    try #require(text.hasPrefix(name + "(") && text.hasSuffix(")"))
    let json = try JSONValue(parsing: Array(text.dropFirst(name.count + 1).dropLast().utf8))
    #expect(json["result"]?.text == "OK")
    let failure = await handler.reply(to: get("/jsonrpc?method=aria2.nonsense&id=a&jsoncallback=\(name)"))
    #expect(failure.status == 400)
    #expect(failure.text?.hasPrefix(name + "({") == true)
    await fixture.downloader.shutdown()
  }

  @Test(arguments: [
    "", "alert(1)//", "a%20b", "a+b", "%3Cscript%3E", "a;b", "a-b", "a%0Ab", "%C3%A9", "a%5B0%5D",
    String(repeating: "a", count: 101),
  ])
  func whatIsNoNameOfAFunction(name: String) async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: nil)
    let reply = await handler.reply(to: get("/jsonrpc?method=aria2.saveSession&id=a&jsoncallback=\(name)"))
    #expect(reply.status == 400)
    #expect(reply.field("Content-Type") == "text/plain; charset=utf-8")
    #expect(reply.text == "jsoncallback is not the name of a function\n")
    await fixture.downloader.shutdown()
  }

  @Test func parametersOfQueries() {
    let parameters = RPCHandler.parameters("a=1&b=x%20y+z&c&=d&&e=%3D%26&f=%zz&a=2")
    #expect(parameters.map { $0.name } == ["a", "b", "c", "", "e", "f", "a"])
    #expect(parameters.map { $0.value } == ["1", "x y z", "", "d", "=&", "%zz", "2"])
    #expect(RPCHandler.parameters("").isEmpty)
  }

  // MARK: Metrics, events and health

  @Test(arguments: ["/metrics", "/events"])
  func metricsAndEventsNeedTheToken(path: String) async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: try RPCSecret("secret"))
    let refused = [
      get(path), get(path + "?token=wrong"), get(path + "?token="),
      get(path, fields: [(name: "Authorization", value: "Bearer wrong")]),
      get(path, fields: [(name: "Authorization", value: "Basic secret")]),
      get(path, fields: [(name: "Authorization", value: "secret")]),
    ]
    for request in refused {
      let reply = await handler.reply(to: request)
      #expect(reply.status == 401)
      #expect(reply.field("WWW-Authenticate") == "Bearer")
    }
    #expect(!client.isTrusted)
    let allowed = [
      get(path + "?token=secret"), get(path + "?a=b&token=%73ecret"),
      get(path, fields: [(name: "authorization", value: "Bearer secret")]),
      get(path, fields: [(name: "Authorization", value: "bearer secret")]),
    ]
    for request in allowed {
      let reply = await handler.reply(to: request)
      #expect(reply.status == 200)
    }
    await fixture.downloader.shutdown()
  }

  @Test(arguments: ["/metrics", "/events"])
  func tokensOfMetricsAndEventsAreGuesses(path: String) async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: try RPCSecret("secret"))
    for _ in 0..<10 {
      let reply = await handler.reply(to: get(path + "?token=wrong"))
      #expect(reply.status == 401)
    }
    let reply = await handler.reply(to: get(path + "?token=secret"))
    #expect(reply.status == 429)
    #expect(reply.field("Retry-After") == "6")
    let call = await handler.reply(to: call("secret"))
    #expect(call.status == 429)
    await fixture.downloader.shutdown()
  }

  @Test func metricsCountCallsAndTokens() async throws {
    let fixture = try await RPCFixture()
    try await fixture.add("1100000000000001")
    let handler = fixture.handler(secret: try RPCSecret("secret"))
    for token in ["secret", "wrong", "wrong"] { _ = await handler.reply(to: call(token)) }
    let reply = await handler.reply(to: get("/metrics?token=secret"))
    #expect(reply.field("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
    let lines = Set(try #require(reply.text).split(separator: "\n").map { String($0) })
    let expected = [
      "downpipe_rpc_calls_total 3", "downpipe_rpc_failures_total 2", "downpipe_rpc_wrong_tokens_total 2",
      "downpipe_rpc_sockets 0", "downpipe_ledger_up 1", "downpipe_queue_downloads{phase=\"paused\"} 1",
      "downpipe_queue_downloads{phase=\"finished\"} 0",
    ]
    #expect(Set(expected).subtracting(lines) == [])
    await fixture.downloader.shutdown()
    let ended = await handler.reply(to: get("/metrics?token=secret"))
    #expect(ended.status == 200)
    #expect(ended.text?.contains("downpipe_ledger_up 0\n") == true)
  }

  @Test func eventsAreAStream() async throws {
    let fixture = try await RPCFixture()
    let reply = await fixture.handler(secret: nil).reply(to: get("/events"))
    #expect(reply.status == 200)
    #expect(reply.field("Content-Type") == "text/event-stream; charset=utf-8")
    #expect(reply.isLast)
    guard case .stream(let next) = reply.body else {
      Issue.record("the events are no stream")
      return
    }
    let begin = await next()
    #expect(begin.map { String(decoding: $0, as: UTF8.self) } == ": connected\n\n")
    await fixture.downloader.shutdown()
    // The stream ends with the downloader.
    while await next() != nil {}
  }

  @Test func healthNeedsNoToken() async throws {
    let fixture = try await RPCFixture()
    let handler = fixture.handler(secret: try RPCSecret("secret"))
    let reply = await handler.reply(to: get("/healthz"))
    #expect(reply.status == 200)
    #expect(reply.text == "ok\n")
    #expect(!client.isTrusted)
    await fixture.downloader.shutdown()
    let ended = await handler.reply(to: get("/healthz"))
    #expect(ended.status == 503)
  }

  @Test func secrets() throws {
    let secret = try RPCSecret("secret")
    #expect(secret.matches("secret"))
    for text in ["", "Secret", "secret ", "secre", "secrets", "sëcret"] { #expect(!secret.matches(text)) }
    #expect(throws: DownloadError.self) { try RPCSecret("") }
    let made = RPCSecret.generate()
    #expect(made.utf8.count == 32)
    #expect(GID.isHexadecimal(made))
    #expect(made != RPCSecret.generate())
  }
}

/// The page, which is the same for everyone: what it shows needs the token.
@Suite(.endsHangs)
struct RPCPageTests {
  private func reply(_ path: String, showsPage: Bool = true) async throws -> ServerReply {
    let fixture = try await RPCFixture { $0.showsPage = showsPage }
    let reply = await fixture.handler(secret: try RPCSecret("a secret")).reply(
      to: ServerRequest(
        method: "GET", target: path, fields: [(name: "Host", value: "localhost")],
        connection: ServerConnection(client: "127.0.0.1")))
    await fixture.downloader.shutdown()
    return reply
  }

  private func text(_ reply: ServerReply) -> String {
    if case .bytes(let bytes) = reply.body { String(decoding: bytes, as: UTF8.self) } else { "" }
  }

  @Test func itsFilesAreInTheProgram() async throws {
    let page = try await reply("/")
    #expect(page.status == 200)
    let policy = page.fields.first { $0.name == "Content-Security-Policy" }?.value
    #expect(policy?.contains("default-src 'none'") == true && policy?.contains("unsafe") == false)
    let html = text(page)
    #expect(html.contains("<h1>") && !html.contains("<style") && !html.contains("http-equiv"))
    // What it names is there, and nothing is from elsewhere.
    let names = html.matches(of: /(?:src|href)="([^"#]+)"/).map { String($0.output.1) }.filter {
      !$0.hasPrefix("data:")
    }
    #expect(names.count >= 2)
    for name in names {
      let status = try await reply("/\(name)").status
      #expect(status == 200, "\(name)")
    }
    for file in ["page.js", "lists.js", "link.js", "add.js"] {
      let script = text(try await reply("/\(file)"))
      for module in script.matches(of: /from "\.\/([^"]+)"/).map({ String($0.output.1) }) {
        let status = try await reply("/\(module)").status
        #expect(status == 200, "\(module)")
      }
      #expect(!script.contains("innerHTML") && !script.contains("eval("), "\(file)")
    }
  }

  @Test func itCanBeLeftOut() async throws {
    let page = try await reply("/", showsPage: false)
    #expect(page.status == 404)
  }

  @Test(arguments: ["/../page.js", "/page.js/", "/PAGE.JS", "//page.js", "/favicon.ico"])
  func otherPathsAreNothing(_ path: String) async throws {
    let page = try await reply(path)
    #expect(page.status == 404)
  }
}

/// Small messages that ask for much.
@Suite(.endsHangs)
struct RPCAmplificationTests {
  @Test func theCallsOfAllMulticallsOfABatchAreBounded() async throws {
    let fixture = try await RPCFixture()
    // Without a token: neither of the two methods needs one.
    let call =
      #"{"id":1,"method":"system.multicall","params":[["# + Array(repeating: "0", count: 400).joined(separator: ",")
      + "]]}"
    let batch = "[" + Array(repeating: call, count: 100).joined(separator: ",") + "]"
    let reply = await fixture.handler(secret: try RPCSecret("a secret")).reply(
      to: ServerRequest(
        method: "POST", target: "/jsonrpc", fields: [(name: "Host", value: "localhost")], body: Array(batch.utf8),
        connection: ServerConnection(client: "127.0.0.1")))
    guard case .bytes(let bytes) = reply.body else {
      Issue.record("no body")
      return
    }
    #expect(bytes.count < 200_000)
    #expect(try JSONValue(parsing: bytes).list?.count == 100)
    await fixture.downloader.shutdown()
  }

  @Test func aTextWithAMillionValuesIsNotRead() throws {
    let text = "[" + Array(repeating: "0", count: 1_000_000).joined(separator: ",") + "]"
    #expect(throws: JSONValue.TooLarge.self) { try JSONValue(parsing: Array(text.utf8)) }
    let most = "[" + Array(repeating: "0", count: JSONValue.mostValues).joined(separator: ",") + "]"
    #expect(throws: JSONValue.TooLarge.self) { try JSONValue(parsing: Array(most.utf8)) }
  }
}
