@_spi(Ledger) package import DownpipeCore
package import Foundation
import Synchronization

/// The value of a column.
package enum ColumnValue: Hashable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  /// A rank, stored as 16 big-endian bytes, which sort like the number.
  case key(UInt128)

  /// The value as an SQL literal.
  package var literal: String {
    switch self {
    case .null: "NULL"
    case .integer(let value): "\(value)"
    case .real(let value): "\(value)"
    case .text(let value): "'" + value.replacing("'", with: "''") + "'"
    case .key(let value): "x'" + String(decoding: Self.hex(value), as: UTF8.self) + "'"
    }
  }

  /// The 32 hexadecimal digits of a key. `String(_:radix:)` of such numbers takes as long as all else in a row for `COPY`.
  package static func hex(_ key: UInt128) -> [UInt8] {
    var digits: [UInt8] = []
    digits.reserveCapacity(32)
    for shift in stride(from: 124, through: 0, by: -4) {
      let digit = UInt8(truncatingIfNeeded: key >> UInt128(shift)) & 0xF
      digits.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
    return digits
  }
}

/// A part of a record that can be stored in a column. The initializer returns `nil` for a value that is never
/// written.
package protocol ColumnCodable: SendableMetatype {
  var columnValue: ColumnValue { get throws }
  init?(columnValue: ColumnValue)
}

extension Int64: ColumnCodable {
  package var columnValue: ColumnValue { .integer(self) }
  package init?(columnValue: ColumnValue) {
    guard case .integer(let value) = columnValue else { return nil }
    self = value
  }
}

extension Int: ColumnCodable {
  package var columnValue: ColumnValue { .integer(Int64(self)) }
  package init?(columnValue: ColumnValue) {
    guard case .integer(let value) = columnValue else { return nil }
    self.init(clamping: value)
  }
}

extension Bool: ColumnCodable {
  package var columnValue: ColumnValue { .integer(self ? 1 : 0) }
  package init?(columnValue: ColumnValue) {
    guard case .integer(let value) = columnValue else { return nil }
    self = value != 0
  }
}

extension String: ColumnCodable {
  package var columnValue: ColumnValue { .text(self) }
  package init?(columnValue: ColumnValue) {
    guard case .text(let value) = columnValue else { return nil }
    self = value
  }
}

/// Seconds since 1970.
extension Date: ColumnCodable {
  package var columnValue: ColumnValue { .real(timeIntervalSince1970) }
  package init?(columnValue: ColumnValue) {
    switch columnValue {
    case .real(let seconds): self.init(timeIntervalSince1970: seconds)
    case .integer(let seconds): self.init(timeIntervalSince1970: Double(seconds))
    default: return nil
    }
  }
}

extension Rank: ColumnCodable {
  package var columnValue: ColumnValue { .key(value) }
  package init?(columnValue: ColumnValue) {
    guard case .key(let value) = columnValue else { return nil }
    self.init(value: value)
  }
}

extension ColumnCodable where Self: RawRepresentable, RawValue == String {
  package var columnValue: ColumnValue { .text(rawValue) }
  package init?(columnValue: ColumnValue) {
    guard case .text(let text) = columnValue else { return nil }
    self.init(rawValue: text)
  }
}

extension DownloadState.Phase: ColumnCodable {}
extension Awaited: ColumnCodable {}
extension Artifact.Kind: ColumnCodable {}
extension DownloadRequest.Refresh: ColumnCodable {}
extension DownloadRecord.Refreshing: ColumnCodable {}

extension URL: ColumnCodable {
  package var columnValue: ColumnValue { .text(absoluteString) }
  package init?(columnValue: ColumnValue) {
    guard case .text(let text) = columnValue, let url = URL(string: text) else { return nil }
    self = url
  }
}

/// Stored as the field value, without checking the characters of the tag.
extension EntityTag: ColumnCodable {
  package var columnValue: ColumnValue { .text(field) }
  package init?(columnValue: ColumnValue) {
    guard case .text(let field) = columnValue else { return nil }
    let isWeak = field.utf8.starts(with: "W/\"".utf8)
    let bytes = field.utf8.dropFirst(isWeak ? 3 : 1).dropLast()
    self.init(String(decoding: Array(bytes), as: UTF8.self), isWeak: isWeak)
  }
}

extension ByteRangeSet: ColumnCodable {
  package var columnValue: ColumnValue { .text(storedText) }
  package init?(columnValue: ColumnValue) {
    guard case .text(let text) = columnValue else { return nil }
    self.init(storedText: text)
  }
}

extension [BlockMark]: ColumnCodable {
  package var columnValue: ColumnValue { BlockMarkText.text(self).map(ColumnValue.text) ?? .null }
  package init?(columnValue: ColumnValue) {
    guard case .text(let text) = columnValue, let marks = BlockMarkText.marks(text) else { return nil }
    self = marks
  }
}

/// A rarely used value, stored as JSON: equal values as equal texts.
package struct JSONText<Value: Codable & Sendable>: ColumnCodable {
  package var value: Value
  package var columnValue: ColumnValue {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return .text(String(decoding: try encoder.encode(value), as: UTF8.self))
    }
  }
  package init(_ value: Value) { self.value = value }
  package init?(columnValue: ColumnValue) {
    guard case .text(let text) = columnValue,
      let value = try? JSONDecoder().decode(Value.self, from: Data(text.utf8))
    else { return nil }
    self.value = value
  }
}

/// The last JSON text that was decoded or encoded, with its value.
package final class LastJSON<Value: Codable & Sendable & Equatable>: Sendable {
  private let last = Mutex<(text: String, value: Value)?>(nil)

  /// The column for a value.
  package func column(for value: Value) throws -> ColumnValue {
    try last.withLock { last in
      if let last, last.value == value { return .text(last.text) }
      let column = try JSONText(value).columnValue
      if case .text(let text) = column { last = (text, value) }
      return column
    }
  }

  /// The value of a column; `nil` if it is not such JSON.
  package func value(of column: ColumnValue) -> Value? {
    guard case .text(let text) = column else { return nil }
    return last.withLock { last in
      if let last, last.text == text { return last.value }
      guard let value = JSONText<Value>(columnValue: column)?.value else { return nil }
      last = (text, value)
      return value
    }
  }
}
