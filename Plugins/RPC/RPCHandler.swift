import DownpipeCore
import DownpipePage
import DownpipeServer
import Foundation
import Synchronization

/// What the server replies to requests and messages.
struct RPCHandler: ServerHandler {
  static let path = "/jsonrpc"

  let rules: AccessRules
  let secret: RPCSecret?
  let guesses = GuessLimit()
  let aria2: Aria2
  let notifier: Notifier
  let events: LiveEvents
  let metrics: RPCMetrics
  let time: any TimeSource

  func acceptsSocket(_ request: ServerRequest) -> Bool {
    guard request.path == Self.path, case .allowed = rules.check(request) else { return false }
    return true
  }

  func reply(to request: ServerRequest) async -> ServerReply {
    switch rules.check(request) {
    case .refused(let reason):
      var reply = ServerReply(403, text: "refused: \(reason)\n")
      reply.isLast = true
      return reply
    case .allowed(let origin):
      var reply = await answer(request, isForeign: origin != nil)
      reply.fields += [("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store")]
      if let origin { reply.fields += [("Access-Control-Allow-Origin", origin), ("Vary", "Origin")] }
      return reply
    }
  }

  private func answer(_ request: ServerRequest, isForeign: Bool) async -> ServerReply {
    switch (request.method, request.path) {
    case ("OPTIONS", _):
      guard isForeign else { return ServerReply(200) }
      return ServerReply(
        200,
        fields: [
          ("Access-Control-Allow-Methods", "POST, GET, OPTIONS"),
          ("Access-Control-Allow-Headers", Self.allowedFields(request)), ("Access-Control-Max-Age", "1728000"),
        ])
    case ("POST", Self.path): return await rpc(JSONRPC.message(request.body), request)
    case ("GET", Self.path):
      let query = Self.parameters(request.query ?? "")
      let callback = query.first { $0.name == "jsoncallback" }?.value
      // Before anything is done.
      if let callback, !Self.isFunction(callback) {
        return ServerReply(400, text: "jsoncallback is not the name of a function\n")
      }
      var reply = await rpc(JSONRPC.message(query: query), request)
      if let callback { reply.wrap(inCallOf: callback) }
      return reply
    case ("GET", "/healthz"): return await health()
    case ("GET", "/metrics"), ("GET", "/events"):
      do throws(RPCFailure) { try authorize(bearer(request), request.connection) } catch {
        var reply = ServerReply(error == .tooManyGuesses ? 429 : 401, text: "\(error.message)\n")
        reply.fields.append(error == .tooManyGuesses ? ("Retry-After", "6") : ("WWW-Authenticate", "Bearer"))
        return reply
      }
      if request.path == "/events" { return events.reply() }
      return ServerReply(200, type: PrometheusText.type, Array((await metrics.text(sockets: notifier.count)).utf8))
    case ("GET", let path), ("HEAD", let path):
      guard configuration.showsPage, let file = PageFiles.file(path) else {
        return ServerReply(404, text: "not found\n")
      }
      return ServerReply(
        200, type: file.type,
        fields: [("Content-Security-Policy", PageFiles.policy), ("Referrer-Policy", "no-referrer")], file.bytes)
    default: return ServerReply(404, text: "not found\n")
    }
  }

  /// The fields that a page of an allowed origin may send: those that it asks for, which a proxy before the server may need.
  private static func allowedFields(_ request: ServerRequest) -> String {
    let standard = "Content-Type, Authorization"
    guard let asked = request.value("Access-Control-Request-Headers") else { return standard }
    let isList = asked.utf8.allSatisfy { byte in
      let character = Character(Unicode.Scalar(byte))
      return character.isASCII && (character.isLetter || character.isNumber || "-_, ".contains(character))
    }
    return isList && asked.utf8.count <= 1000 ? asked : standard
  }

  private var configuration: RPCServer.Configuration { aria2.configuration }

  private func health() async -> ServerReply {
    do {
      _ = try await aria2.downloader.counts()
      if let fault = aria2.downloader.machineFault {
        return ServerReply(503, text: fault.reasonOfMachine + "\n")
      }
      return ServerReply(200, text: "ok\n")
    } catch { return ServerReply(503, text: "the ledger does not answer\n") }
  }

  /// The token of a request that is no call: a field `Authorization`, or the parameter `token`, since a browser sends no
  /// fields for a stream of events.
  private func bearer(_ request: ServerRequest) -> String? {
    if let value = request.value("Authorization"), value.lowercased().hasPrefix("bearer ") {
      return String(value.dropFirst(7))
    }
    return Self.parameters(request.query ?? "").first { $0.name == "token" }?.value
  }

  // MARK: Calls

  private func rpc(_ message: JSONRPC.Message, _ request: ServerRequest) async -> ServerReply {
    let (value, failure) = await perform(message, request.connection)
    var reply = ServerReply(failure?.status ?? 200, type: "application/json-rpc", value.bytes)
    if failure == .tooManyGuesses { reply.fields.append(("Retry-After", "6")) }
    reply.isLast = failure != nil
    return reply
  }

  /// - Returns: The reply, and the failure of a single call.
  private func perform(
    _ message: JSONRPC.Message, _ connection: ServerConnection
  ) async -> (JSONValue, RPCFailure?) {
    let budget = JSONRPC.Budget()
    switch message {
    case .single(let call):
      let (value, failure) = await perform(call, budget, connection)
      return (value, failure)
    case .batch(let calls):
      var values: [JSONValue] = []
      for call in calls { values.append(await perform(call, budget, connection).0) }
      return (.array(values), nil)
    }
  }

  private func perform(
    _ call: Result<JSONRPC.Call, JSONRPC.Refusal>, _ budget: JSONRPC.Budget, _ connection: ServerConnection
  ) async -> (JSONValue, RPCFailure?) {
    switch call {
    case .failure(let refusal): return (JSONRPC.reply(refusal.id, .failure(refusal.failure)), refusal.failure)
    case .success(let call):
      let result = await aria2.perform(call.method, call.parameters, within: budget) { token throws(RPCFailure) in
        try authorize(token, connection)
      }
      metrics.count(result)
      let failure: RPCFailure? = if case .failure(let failure) = result { failure } else { nil }
      return (JSONRPC.reply(call.id, result), failure)
    }
  }

  private func authorize(_ token: String?, _ connection: ServerConnection) throws(RPCFailure) {
    guard let secret else { return connection.setTrusted() }
    guard let token else { throw .unauthorized }
    let client = connection.client ?? ""
    if !connection.isTrusted, !guesses.mayTry(client, at: time.now) { throw .tooManyGuesses }
    guard secret.matches(token) else {
      guesses.noteWrong(client, at: time.now)
      metrics.countWrongToken()
      throw .unauthorized
    }
    connection.setTrusted()
  }

  // MARK: Sockets

  func receive(_ message: [UInt8], from socket: ServerSocket, for request: ServerRequest) async throws {
    let (value, failure) = await perform(JSONRPC.message(message), request.connection)
    try await socket.reply(value.bytes)
    if failure == .tooManyGuesses { throw CancellationError() }
    if request.connection.isTrusted { notifier.add(socket) }
  }

  func closed(_ socket: ServerSocket) { notifier.remove(socket) }

  /// Whether a text is a name of JavaScript, so that nothing else can be made of a reply that begins with it.
  private static func isFunction(_ name: String) -> Bool {
    (1...100).contains(name.utf8.count)
      && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == "." || $0 == "$") }
  }

  // MARK: Queries

  /// The parameters of a query (the form encoding of HTML).
  static func parameters(_ query: String) -> [(name: String, value: String)] {
    query.split(separator: "&").map { pair in
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      func decoded(_ text: Substring) -> String {
        let spaced = text.replacing("+", with: " ")
        return String(spaced).removingPercentEncoding ?? String(spaced)
      }
      return (decoded(parts[0]), parts.count > 1 ? decoded(parts[1]) : "")
    }
  }
}

extension ServerReply {
  /// Makes a script of JSON, which calls a function (JSONP).
  fileprivate mutating func wrap(inCallOf name: String) {
    guard case .bytes(let bytes) = body else { return }
    body = .bytes(Array("\(name)(".utf8) + bytes + Array(")".utf8))
    fields.removeAll { $0.name == "Content-Type" }
    fields.append(("Content-Type", "text/javascript"))
  }
}
