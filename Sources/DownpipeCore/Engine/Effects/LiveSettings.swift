internal import Foundation
internal import Synchronization

/// The current settings of a downloader, and the stages that they stand for.
final class LiveSettings<Value: Codable & Sendable>: Sendable {
  private let defaults: Value
  private let build: @Sendable (Value) -> Pipeline
  private let state: Mutex<(value: Value, pipeline: Pipeline)>

  /// - Parameters:
  ///   - kept: The JSON that the ledger has kept, if any.
  ///   - defaults: The values of properties that the JSON does not have.
  init(_ kept: Data?, defaults: Value, _ build: @escaping @Sendable (Value) -> Pipeline) {
    self.defaults = defaults
    self.build = build
    let value = kept.flatMap { try? Self.decode($0, over: defaults) } ?? defaults
    state = Mutex((value, build(value)))
  }

  var value: Value { state.withLock { $0.value } }
  var pipeline: Pipeline { state.withLock { $0.pipeline } }

  /// The settings and the stages after a change, which are not in effect yet.
  /// - Parameter kept: The JSON that the ledger has kept last; without it, the current settings are changed.
  func changed(
    from kept: Data?, _ change: (inout Value) throws -> Void
  ) throws -> (value: Value, pipeline: Pipeline, json: Data) {
    var value = kept.flatMap { try? Self.decode($0, over: defaults) } ?? value
    try change(&value)
    let pipeline = build(value)
    try pipeline.check()
    do {
      // Sorted, so that equal settings are equal bytes.
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      return (value, pipeline, try encoder.encode(value))
    } catch {
      throw DownloadError(.invalidRequest, "the settings cannot be encoded as JSON: \(error)", cause: error)
    }
  }

  func set(_ value: Value, _ pipeline: Pipeline) { state.withLock { $0 = (value, pipeline) } }

  /// Decodes kept settings; properties that they do not have get their default values.
  private static func decode(_ kept: Data, over defaults: Value) throws -> Value {
    let decoder = JSONDecoder()
    do { return try decoder.decode(Value.self, from: kept) } catch DecodingError.keyNotFound {
      let old = try decoder.decode(JSONValue.self, from: kept)
      let new = try decoder.decode(JSONValue.self, from: JSONEncoder().encode(defaults))
      return try decoder.decode(Value.self, from: JSONEncoder().encode(old.filled(from: new)))
    }
  }
}

/// A value of JSON.
private enum JSONValue: Codable {
  case object([String: JSONValue])
  case array([JSONValue])
  case bool(Bool)
  case integer(Int64)
  case number(Double)
  case text(String)
  case null

  /// The value with the properties of `defaults` that it does not have.
  func filled(from defaults: JSONValue) -> JSONValue {
    guard case .object(let mine) = self, case .object(let others) = defaults else { return self }
    return .object(mine.merging(others) { $0.filled(from: $1) })
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .text(value)
    } else if let value = try? container.decode([JSONValue].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .object(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .text(let value): try container.encode(value)
    case .null: try container.encodeNil()
    }
  }
}
