import Foundation
import HangLimit
import Testing

@testable import DownpipeRPC

@Suite(.endsHangs)
struct JSONRPCTests {
  private func message(_ text: String) -> JSONRPC.Message { JSONRPC.message(Array(text.utf8)) }

  private func call(_ message: JSONRPC.Message) throws -> JSONRPC.Call {
    guard case .single(let result) = message else { throw RPCFailure("this is a batch") }
    return try result.get()
  }

  private func refusal(_ message: JSONRPC.Message) -> JSONRPC.Refusal? {
    if case .single(.failure(let refusal)) = message { refusal } else { nil }
  }

  private func batch(_ message: JSONRPC.Message) -> [Result<JSONRPC.Call, JSONRPC.Refusal>]? {
    if case .batch(let calls) = message { calls } else { nil }
  }

  // MARK: Messages

  @Test func aCall() throws {
    let call = try call(message(#"{"jsonrpc":"2.0","id":"q","method":"aria2.pause","params":["token:x",1]}"#))
    #expect(call.id == .string("q"))
    #expect(call.method == "aria2.pause")
    #expect(call.parameters == [.string("token:x"), .integer(1)])
  }

  @Test func parametersCanBeLeftOut() throws {
    let call = try call(message(#"{"id":1,"method":"aria2.getVersion"}"#))
    #expect(call.parameters.isEmpty)
  }

  @Test(
    arguments: [
      ("null", .null), ("1", .integer(1)), ("\"a\"", .string("a")), ("true", .bool(true)),
      ("[1]", .array([.integer(1)])),
    ] as [(String, JSONValue)])
  func anIDIsRepeatedAsItIs(text: String, id: JSONValue) throws {
    let call = try call(message("{\"id\":\(text),\"method\":\"m\"}"))
    #expect(call.id == id)
  }

  @Test(arguments: ["", "{", "{\"id\":1,\"method\":\"m\"", "\"\\ud800\"", String(repeating: "[", count: 600)])
  func textThatIsNotJSONIsAParseError(text: String) {
    let refusal = refusal(message(text))
    #expect(refusal?.failure == .parseError)
    #expect(refusal?.id == .null)
  }

  @Test func deepNestingIsAParseError() {
    let levels = String(repeating: "[", count: 600) + String(repeating: "]", count: 600)
    #expect(refusal(message("{\"id\":1,\"method\":\"m\",\"params\":\(levels)}"))?.failure == .parseError)
  }

  @Test(arguments: ["1", "true", "null", "\"text\""])
  func otherValuesAreInvalidRequests(text: String) {
    let refusal = refusal(message(text))
    #expect(refusal?.failure == .invalidRequest)
    #expect(refusal?.id == .null)
  }

  @Test func aRequestNeedsAnID() {
    let refusal = refusal(message(#"{"method":"aria2.getVersion"}"#))
    #expect(refusal?.failure == .invalidRequest)
    #expect(refusal?.id == .null)
  }

  @Test(arguments: [
    #"{"id":"a"}"#, #"{"id":"a","method":1}"#, #"{"id":"a","method":null}"#, #"{"id":"a","method":["m"]}"#,
  ])
  func aMethodIsText(text: String) {
    let refusal = refusal(message(text))
    #expect(refusal?.failure == .invalidRequest)
    #expect(refusal?.id == .string("a"))
  }

  @Test(arguments: ["{}", "{\"a\":1}", "null", "1", "\"a\""])
  func parametersAreAList(parameters: String) {
    let refusal = refusal(message("{\"id\":7,\"method\":\"m\",\"params\":\(parameters)}"))
    #expect(refusal?.failure == .invalidParameters)
    #expect(refusal?.id == .integer(7))
  }

  // MARK: Batches

  @Test func aBatchHasCallsAndRefusals() throws {
    let calls = try #require(batch(message(#"[{"id":1,"method":"a"},2,{"id":3},{"id":4,"method":"b"}]"#)))
    #expect(calls.map { (try? $0.get())?.method } == ["a", nil, nil, "b"])
    guard case .failure(let refusal) = calls[2] else {
      Issue.record("a request without a method is no call")
      return
    }
    #expect(refusal.id == .integer(3))
  }

  @Test func anEmptyBatchHasNoCalls() throws {
    let calls = try #require(batch(message("[]")))
    #expect(calls.isEmpty)
  }

  @Test func aBatchIsBounded() throws {
    func text(_ count: Int) -> String {
      "[" + Array(repeating: #"{"id":1,"method":"m"}"#, count: count).joined(separator: ",") + "]"
    }
    #expect(batch(message(text(JSONRPC.mostCalls)))?.count == JSONRPC.mostCalls)
    let refusal = refusal(message(text(JSONRPC.mostCalls + 1)))
    #expect(refusal?.failure.code == -32600)
    #expect(refusal?.id == .null)
  }

  // MARK: Queries

  private func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }

  @Test func aQueryIsACall() throws {
    let call = try call(
      JSONRPC.message(query: [("method", "aria2.pause"), ("id", "q"), ("params", base64(#"["token:x","1a"]"#))]))
    #expect(call.id == .string("q"))
    #expect(call.method == "aria2.pause")
    #expect(call.parameters == [.string("token:x"), .string("1a")])
  }

  @Test func parametersOfAQueryCanBeLeftOut() throws {
    let call = try call(JSONRPC.message(query: [("id", "1"), ("method", "m")]))
    #expect(call.parameters.isEmpty)
  }

  /// A plus sign that was not encoded has become a space.
  @Test func plusSignsOfBase64MayHaveBecomeSpaces() throws {
    let text = base64(#"[">>>"]"#)
    #expect(text.contains("+"))
    let call = try call(
      JSONRPC.message(query: [("method", "m"), ("id", "1"), ("params", text.replacing("+", with: " "))]))
    #expect(call.parameters == [.string(">>>")])
  }

  @Test func aQueryWithoutAMethodIsABatch() throws {
    let text = base64(#"[{"id":1,"method":"a"},{"id":2,"method":"b"}]"#)
    let calls = try #require(batch(JSONRPC.message(query: [("params", text)])))
    #expect(calls.map { (try? $0.get())?.method } == ["a", "b"])
  }

  @Test func queriesThatAreNoCalls() {
    #expect(refusal(JSONRPC.message(query: []))?.failure == .invalidRequest)
    #expect(refusal(JSONRPC.message(query: [("method", "m")]))?.failure == .invalidRequest)
    #expect(refusal(JSONRPC.message(query: [("method", "m"), ("id", "1"), ("params", "%%%")]))?.failure == .parseError)
    #expect(
      refusal(JSONRPC.message(query: [("method", "m"), ("id", "1"), ("params", base64("[1"))]))?.failure == .parseError)
    let object = refusal(JSONRPC.message(query: [("method", "m"), ("id", "1"), ("params", base64("{}"))]))
    #expect(object?.failure == .invalidParameters)
    #expect(object?.id == .string("1"))
  }

  // MARK: Replies

  @Test func replies() {
    let result: JSONValue = ["id": "a", "jsonrpc": "2.0", "result": "OK"]
    #expect(JSONRPC.reply("a", .success("OK")) == result)
    let error: JSONValue = [
      "id": .null, "jsonrpc": "2.0", "error": ["code": .integer(-32700), "message": "Parse error."],
    ]
    #expect(JSONRPC.reply(.null, .failure(.parseError)) == error)
  }

  @Test(arguments: [
    (RPCFailure.unauthorized, 400), (RPCFailure("GID 1 is not found"), 400), (RPCFailure.invalidRequest, 400),
    (RPCFailure.invalidParameters, 500), (RPCFailure.parseError, 500), (RPCFailure.tooManyGuesses, 429),
    (RPCFailure("no such method", code: -32601), 404),
  ])
  func statusesOfFailures(failure: RPCFailure, status: Int) {
    #expect(failure.status == status)
  }

  // MARK: Parameters

  @Test func parametersAreCountedFromZero() throws {
    let parameters = Parameters(["a", .integer(2), ["x", .integer(3), "y"], ["k": "v"]])
    #expect(try parameters.string(0) == "a")
    #expect(try parameters.integer(1) == 2)
    #expect(try parameters.strings(2) == ["x", "y"])
    #expect(try parameters.object(3) == ["k": .string("v")])
    #expect(try parameters.optionalInteger(4) == nil)
    #expect(throws: RPCFailure("The parameter at 4 is required but missing.")) { try parameters.string(4) }
    #expect(throws: RPCFailure("The parameter at 0 has wrong type.")) { try parameters.optionalInteger(0) }
    #expect(throws: RPCFailure("The parameter at 1 has wrong type.")) { try parameters.string(1) }
    #expect(throws: RPCFailure("The parameter at 3 has wrong type.")) { try parameters.list(3) }
  }
}
