import DownpipeCore
import Foundation

/// A value of a property list, read and written with bounds.
///
/// Foundation's parsers are not used here, for three reasons seen with Swift 6.3 on Linux: the references of keyed
/// archives (UIDs) come out of `PropertyListSerialization` as a private class and `PropertyListDecoder` cannot read
/// them at all; `PropertyListDecoder` overflows the stack on XML that nests 100,000 arrays; and a binary list of 600
/// bytes whose arrays share their children keeps `PropertyListSerialization` busy for longer than anyone waits.
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

  /// The two forms of property lists that systems still write.
  typealias Format = AppleResumeData.Format

  /// Integers of both forms: what fits in 64 bits, with a sign or without.
  static let integers = Int128(Int64.min)...Int128(UInt64.max)

  /// Reads a list of either form.
  static func read(_ data: Data) throws(DownloadError) -> (PropertyList, Format) {
    guard data.count <= PropertyListBudget.maximumSize else {
      throw .resumeData(
        "it has \(data.count) bytes, and at most \(PropertyListBudget.maximumSize) are read: is this the partial file "
          + "itself?")
    }
    if data.starts(with: "bplist".utf8) {
      var reader = try BinaryPropertyListReader(data)
      return (try reader.read(), .binary)
    }
    var reader = XMLPropertyListReader(data)
    return (try reader.read(), .xml)
  }

  /// Writes the list.
  func write(_ format: Format) throws(DownloadError) -> Data {
    let data: Data
    switch format {
    case .binary: data = BinaryPropertyListWriter.write(self)
    case .xml: data = try XMLPropertyListWriter.write(self)
    }
    guard data.count <= PropertyListBudget.maximumSize else {
      throw .resumeData(
        "it would have \(data.count) bytes, more than the \(PropertyListBudget.maximumSize) that are read again: leave "
          + "out header fields")
    }
    return data
  }

  var string: String? { if case .string(let value) = self { value } else { nil } }
  var integer: Int128? { if case .integer(let value) = self { value } else { nil } }
  var data: Data? { if case .data(let value) = self { value } else { nil } }
  var array: [PropertyList]? { if case .array(let value) = self { value } else { nil } }
  var dictionary: [String: PropertyList]? { if case .dictionary(let value) = self { value } else { nil } }
  var uid: UInt32? { if case .uid(let value) = self { value } else { nil } }

  /// Whether there is a reference anywhere in the value.
  var holdsReference: Bool {
    switch self {
    case .uid: true
    case .array(let items): items.contains(where: \.holdsReference)
    case .dictionary(let items): items.values.contains(where: \.holdsReference)
    default: false
    }
  }

  /// What the value is, for messages.
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
