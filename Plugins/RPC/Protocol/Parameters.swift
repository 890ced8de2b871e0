/// The parameters of a call, without its token. They are counted from 0 in messages, as aria2 does.
struct Parameters {
  private let values: [JSONValue]

  init(_ values: [JSONValue]) { self.values = values }

  private func read<Value>(_ index: Int, _ read: (JSONValue) -> Value?) throws(RPCFailure) -> Value? {
    guard values.indices.contains(index) else { return nil }
    guard let value = read(values[index]) else { throw RPCFailure("The parameter at \(index) has wrong type.") }
    return value
  }

  private func require<Value>(_ index: Int, _ value: Value?) throws(RPCFailure) -> Value {
    guard let value else { throw RPCFailure("The parameter at \(index) is required but missing.") }
    return value
  }

  func string(_ index: Int) throws(RPCFailure) -> String { try require(index, read(index, \.text)) }

  /// - Parameter least: The smallest number that is allowed.
  func integer(_ index: Int, atLeast least: Int = .min) throws(RPCFailure) -> Int {
    let number = try require(index, optionalInteger(index))
    guard number >= least else {
      throw RPCFailure(
        "The integer parameter at \(index) has invalid value: the value must be greater than or equal to \(least).")
    }
    return number
  }

  func optionalInteger(_ index: Int) throws(RPCFailure) -> Int? {
    try read(index) { if case .integer(let number) = $0 { Int(number) } else { nil } }
  }

  func list(_ index: Int) throws(RPCFailure) -> [JSONValue] { try require(index, optionalList(index)) }

  func optionalList(_ index: Int) throws(RPCFailure) -> [JSONValue]? { try read(index, \.list) }

  /// The strings of a list; what is no string is left out.
  func strings(_ index: Int) throws(RPCFailure) -> [String] { try list(index).compactMap(\.text) }

  func object(_ index: Int) throws(RPCFailure) -> [String: JSONValue] { try require(index, optionalObject(index)) }

  func optionalObject(_ index: Int) throws(RPCFailure) -> [String: JSONValue]? {
    try read(index) { if case .object(let members) = $0 { members } else { nil } }
  }
}
