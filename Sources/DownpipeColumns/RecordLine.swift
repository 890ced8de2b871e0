@_spi(Ledger) package import DownpipeCore
import Foundation

/// A record as one line of JSON, for another ledger: an object whose members are the columns that a database has for it, with
/// the same names and values. What is NULL there is left out, columns with JSON are part of the object, and the attributes of
/// the ``Kind`` are members, too.
///
/// Equal records have equal lines, in each ledger. What has no meaning in another ledger is left out: the owner,
/// the rank, which is computed again, and what follows from other columns.
package enum RecordLine {
  /// Why a line is no record.
  package struct Damage: Error, Hashable {
    package let reason: String
  }

  /// In their order, because some are parts of others.
  private static let columns = RecordColumns.all.filter { !["rank", "on_disk"].contains($0.name) }

  // MARK: Writing

  /// The line, without its end.
  package static func bytes(_ record: DownloadRecord) throws -> [UInt8] {
    var members: [String: JSONTree] = [:]
    for column in columns {
      switch try column.value(record) {
      case .null, .key: continue
      case .integer(let value): members[column.name] = .integer(value)
      // Dates without an end: none is meant.
      case .real(let value): if value.isFinite { members[column.name] = .real(value) }
      case .text(let value): members[column.name] = column.isJSON ? try JSONTree(text: value) : .string(value)
      }
    }
    let kind = Kind(record)
    members["location"] = kind.location.map { .string($0) }
    if kind.candidate.intent != .userInitiated {
      members["intent"] = .string(RecordColumns.key(kind.candidate.intent.rawValue))
    }
    if kind.candidate.priority != .normal { members["priority"] = .integer(Int64(kind.candidate.priority.rawValue)) }
    if !kind.candidate.tags.isEmpty {
      members["tags"] = .array(kind.candidate.tags.map { RecordColumns.key($0) }.sorted().map { .string($0) })
    }
    return withoutSeparators(try JSONTree.object(members).text)
  }

  /// JSON with escapes for the characters in its strings that end a line for some readers, or that control a terminal.
  private static func withoutSeparators(_ json: String) -> [UInt8] {
    guard json.utf8.contains(where: { $0 == 0x7F || $0 == 0xC2 || $0 == 0xE2 }) else { return Array(json.utf8) }
    var escaped = ""
    for scalar in json.unicodeScalars {
      switch scalar.value {
      case 0x7F...0x9F, 0x2028, 0x2029:
        let digits = String(scalar.value, radix: 16)
        escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return Array(escaped.utf8)
  }

  // MARK: Reading

  /// The record in a line, without a rank.
  package static func record(_ line: some Collection<UInt8>) throws(Damage) -> DownloadRecord {
    guard !isTooDeep(line) else { throw Damage(reason: "it is nested too deeply") }
    guard let value = try? JSONDecoder().decode(JSONTree.self, from: Data(line)), case .object(let all) = value else {
      throw Damage(reason: "it is not a JSON object")
    }
    var members = all.filter { $0.value != .null }
    var record = RecordColumns.blank
    for column in columns {
      guard let value = members.removeValue(forKey: column.name) else {
        if column.isOptional { continue }
        throw Damage(reason: "it has no member “\(column.name)”")
      }
      guard value.isNested == column.isJSON, read(value, of: column, &record) else { throw unreadable(column.name) }
    }
    try readKind(&members, into: &record)
    if let unknown = members.keys.sorted().first {
      throw Damage(reason: "this version does not know its member “\(unknown.prefix(50))”")
    }
    record.added?.id = record.request.id
    do { try record.request.checkContent() } catch { throw Damage(reason: error.message) }
    return record
  }

  /// The deepest nesting of a line, which is more than any record has. Decoders need a stack and time for each level.
  private static let deepest = 32

  private static func isTooDeep(_ line: some Collection<UInt8>) -> Bool {
    var (depth, isInString, isEscaped) = (0, false, false)
    for byte in line {
      if isEscaped {
        isEscaped = false
      } else if isInString {
        if byte == UInt8(ascii: "\\") { isEscaped = true } else if byte == UInt8(ascii: "\"") { isInString = false }
      } else if byte == UInt8(ascii: "\"") {
        isInString = true
      } else if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
        depth += 1
        if depth > deepest { return true }
      } else if byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") {
        depth -= 1
      }
    }
    return false
  }

  private static func read(_ value: JSONTree, of column: RecordColumn, _ record: inout DownloadRecord) -> Bool {
    guard let content = value.column else { return false }
    if column.read(content, &record) { return true }
    // JSON has no form for a real number without a fraction.
    guard case .integer(let number) = content else { return false }
    return column.read(.real(Double(number)), &record)
  }

  private static func unreadable(_ name: String) -> Damage { Damage(reason: "its member “\(name)” cannot be read") }

  private static func readKind(
    _ members: inout [String: JSONTree], into record: inout DownloadRecord
  ) throws(Damage) {
    if let value = members.removeValue(forKey: "location") {
      guard case .string(let location) = value else { throw unreadable("location") }
      record.location = location
    }
    if let value = members.removeValue(forKey: "intent") {
      guard case .string(let intent) = value else { throw unreadable("intent") }
      record.request.intent = Intent(intent)
    }
    if let value = members.removeValue(forKey: "priority") {
      guard case .integer(let number) = value, let priority = Int16(exactly: number) else {
        throw unreadable("priority")
      }
      record.request.priority = Priority(priority)
    }
    if let value = members.removeValue(forKey: "tags") {
      guard case .array(let values) = value else { throw unreadable("tags") }
      record.request.tags = Set(
        try values.map { (tag) throws(Damage) -> String in
          guard case .string(let text) = tag else { throw unreadable("tags") }
          return text
        })
    }
  }
}
