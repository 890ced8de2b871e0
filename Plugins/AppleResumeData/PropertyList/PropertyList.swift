import Foundation

/// A value of a property list, read and written with limits.
///
/// Foundation's parsers are not used, because with Swift 6.3 on Linux `PropertyListSerialization` returns the
/// references of keyed archives (UIDs) as a private class, `PropertyListDecoder` does not support them,
/// `PropertyListDecoder` overflows the stack for XML with 100,000 nested arrays, and `PropertyListSerialization` does
/// not return in reasonable time for a binary list of 600 bytes whose arrays share their children.
enum PropertyList: Hashable, Sendable {
  case string(String)
  case integer(Int128)
  case real(Double)
  case boolean(Bool)
  /// Seconds since the first instant of 2001, UTC.
  case date(Double)
  case data(Data)
  case array([PropertyList])
  case dictionary([String: PropertyList])
  /// A reference into the objects of a keyed archive.
  case uid(UInt32)

  /// The two formats that current systems write.
  enum Format: Hashable, Sendable {
    case xml
    /// `bplist00`.
    case binary
  }

  /// The integers that both formats support: 64 bits, signed or unsigned.
  static let integers = Int128(Int64.min)...Int128(UInt64.max)

  /// Reads a list in either format.
  static func read(_ data: Data) throws(PropertyListError) -> (PropertyList, Format) {
    guard data.count <= PropertyListBudget.maximumSize else {
      throw PropertyListError(
        "it has \(data.count) bytes, more than the limit of \(PropertyListBudget.maximumSize): check that it is the "
          + "resume data and not the partial file")
    }
    if data.starts(with: "bplist".utf8) {
      var reader = try BinaryPropertyListReader(data)
      return (try reader.read(), .binary)
    }
    var reader = XMLPropertyListReader(data)
    return (try reader.read(), .xml)
  }

  func write(_ format: Format) throws(PropertyListError) -> Data {
    let data: Data
    switch format {
    case .binary: data = BinaryPropertyListWriter.write(self)
    case .xml: data = try XMLPropertyListWriter.write(self)
    }
    guard data.count <= PropertyListBudget.maximumSize else {
      throw PropertyListError(
        "it would have \(data.count) bytes, more than the limit of \(PropertyListBudget.maximumSize): remove header "
          + "fields")
    }
    return data
  }

  var string: String? { if case .string(let value) = self { value } else { nil } }
  var integer: Int128? { if case .integer(let value) = self { value } else { nil } }
  var data: Data? { if case .data(let value) = self { value } else { nil } }
  var array: [PropertyList]? { if case .array(let value) = self { value } else { nil } }
  var dictionary: [String: PropertyList]? { if case .dictionary(let value) = self { value } else { nil } }
  var uid: UInt32? { if case .uid(let value) = self { value } else { nil } }

  /// Whether the value is or contains a reference.
  var holdsReference: Bool {
    switch self {
    case .uid: true
    case .array(let items): items.contains(where: \.holdsReference)
    case .dictionary(let items): items.values.contains(where: \.holdsReference)
    default: false
    }
  }

  /// The kind of the value, for messages.
  var kind: String {
    switch self {
    case .string: "a string"
    case .integer: "an integer"
    case .real: "a real number"
    case .boolean: "a Boolean"
    case .date: "a date"
    case .data: "data"
    case .array: "an array"
    case .dictionary: "a dictionary"
    case .uid: "a reference"
    }
  }
}

/// Why a property list cannot be read or written.
struct PropertyListError: Error {
  let message: String
  init(_ message: String) { self.message = message }
}
