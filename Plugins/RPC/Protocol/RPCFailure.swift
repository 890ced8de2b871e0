/// Why a call failed, as JSON-RPC 2.0 tells it.
struct RPCFailure: Error, Hashable {
  var code: Int
  var message: String

  init(_ message: String, code: Int = 1) {
    self.code = code
    self.message = message
  }

  static let unauthorized = RPCFailure("Unauthorized")
  static let parseError = RPCFailure("Parse error.", code: -32700)
  static let invalidRequest = RPCFailure("Invalid Request.", code: -32600)
  static let invalidParameters = RPCFailure("Invalid params.", code: -32602)
  /// Too many wrong tokens came from this address. No token is looked at for a while.
  static let tooManyGuesses = RPCFailure("Too many wrong tokens: try again in a minute", code: 1)

  /// The status of a reply over HTTP.
  var status: Int {
    if self == .tooManyGuesses { return 429 }
    return switch code {
    case 1, -32600: 400
    case -32601: 404
    default: 500
    }
  }

  var json: JSONValue { ["code": .integer(Int64(code)), "message": .string(message)] }
}
