import Foundation
import Synchronization

/// Requests and replies of JSON-RPC 2.0, as aria2 reads and writes them: each request needs an id, and parameters are a list.
enum JSONRPC {
  /// A call of a method.
  struct Call: Sendable {
    var id: JSONValue
    var method: String
    var parameters: [JSONValue]
  }

  /// What a text asks for.
  enum Message: Sendable {
    case single(Result<Call, Refusal>)
    case batch([Result<Call, Refusal>])
  }

  /// A request that cannot be carried out, with its id as far as it is known.
  struct Refusal: Error {
    var id = JSONValue.null
    var failure: RPCFailure
  }

  /// The most calls of a batch, and the most in all `system.multicall` of a message together.
  static let mostCalls = 1000

  /// The most downloads that all calls of a message are told.
  static let mostDownloads = 10_000

  /// How many calls a message may still have in `system.multicall`.
  final class Budget: Sendable {
    private let left = Atomic(mostCalls)
    private let downloads = Atomic(mostDownloads)

    /// - Returns: Whether so many downloads can be told.
    func tell(_ count: Int) -> Bool { downloads.subtract(count, ordering: .relaxed).newValue >= 0 }

    /// - Returns: Whether there was room.
    func take(_ count: Int) -> Bool {
      left.subtract(min(count, 1 << 30), ordering: .relaxed).newValue >= 0
    }
  }

  static func message(_ bytes: [UInt8]) -> Message {
    guard let value = try? JSONValue(parsing: bytes) else { return .single(.failure(Refusal(failure: .parseError))) }
    return message(value)
  }

  private static func message(_ value: JSONValue) -> Message {
    switch value {
    case .object: return .single(call(value))
    case .array(let values) where values.count <= mostCalls: return .batch(values.map(call))
    case .array:
      return .single(
        .failure(Refusal(failure: RPCFailure("A batch has at most \(mostCalls) calls.", code: -32600))))
    default: return .single(.failure(Refusal(failure: .invalidRequest)))
    }
  }

  private static func call(_ value: JSONValue) -> Result<Call, Refusal> {
    guard let id = value["id"] else { return .failure(Refusal(failure: .invalidRequest)) }
    guard let method = value["method"]?.text else { return .failure(Refusal(id: id, failure: .invalidRequest)) }
    switch value["params"] {
    case nil: return .success(Call(id: id, method: method, parameters: []))
    case .array(let parameters): return .success(Call(id: id, method: method, parameters: parameters))
    default: return .failure(Refusal(id: id, failure: .invalidParameters))
    }
  }

  /// The message of a request by `GET`: the parameters `method`, `id`, and `params`, which is JSON in Base64. Without a method,
  /// `params` is a batch.
  static func message(query: [(name: String, value: String)]) -> Message {
    func first(_ name: String) -> String? { query.first { $0.name == name }?.value }
    var parameters: JSONValue?
    if let text = first("params") {
      // A plus sign that was not encoded has become a space.
      guard let data = Data(base64Encoded: text.replacing(" ", with: "+")),
        let value = try? JSONValue(parsing: Array(data))
      else { return .single(.failure(Refusal(failure: .parseError))) }
      parameters = value
    }
    guard let method = first("method") else { return message(parameters ?? .null) }
    var request: [String: JSONValue] = ["method": .string(method)]
    request["id"] = first("id").map { .string($0) }
    request["params"] = parameters
    return message(.object(request))
  }

  static func reply(_ id: JSONValue, _ result: Result<JSONValue, RPCFailure>) -> JSONValue {
    switch result {
    case .success(let value): ["id": id, "jsonrpc": "2.0", "result": value]
    case .failure(let failure): ["id": id, "jsonrpc": "2.0", "error": failure.json]
    }
  }
}
