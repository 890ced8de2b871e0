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

  /// What people look for comes first.
  private static let columnsInLine: [RecordColumn] = {
    let first = ["id", "url", "phase"].compactMap { name in columns.first { $0.name == name } }
    return first + columns.filter { column in !first.contains { $0.name == column.name } }
  }()

  // MARK: Writing

  /// The line, without its end.
  package static func bytes(_ record: DownloadRecord) throws -> [UInt8] {
    var text = "{"
    func add(_ name: String, _ value: String) {
      if text.utf8.count > 1 { text += "," }
      text += "\"\(name)\":\(value)"
    }
    for column in columnsInLine {
      switch try column.value(record) {
      case .null: continue
      case .integer(let value): add(column.name, "\(value)")
      // Dates without an end: none is meant.
      case .real(let value): if value.isFinite { add(column.name, "\(value)") }
      case .text(let value): add(column.name, column.isJSON ? value : JSONMembers.quoted(value))
      case .key: continue
      }
    }
    let kind = Kind(record)
    if let location = kind.location { add("location", JSONMembers.quoted(location)) }
    if kind.candidate.intent != .userInitiated {
      add("intent", JSONMembers.quoted(RecordColumns.key(kind.candidate.intent.rawValue)))
    }
    if kind.candidate.priority != .normal { add("priority", "\(kind.candidate.priority.rawValue)") }
    if !kind.candidate.tags.isEmpty {
      add(
        "tags",
        "[" + kind.candidate.tags.map { JSONMembers.quoted(RecordColumns.key($0)) }.sorted().joined(separator: ",")
          + "]")
    }
    return JSONMembers.withoutSeparators(Array((text + "}").utf8))
  }

  // MARK: Reading

  /// The record in a line, without a rank.
  package static func record(_ line: some Collection<UInt8>) throws(Damage) -> DownloadRecord {
    var members = try JSONMembers(line).values
    var record = RecordColumns.blank
    for column in columns {
      guard let value = members.removeValue(forKey: column.name) else {
        if column.isOptional { continue }
        throw Damage(reason: "it has no member “\(column.name)”")
      }
      guard value.isJSON == column.isJSON, column.read(value.column, &record) else { throw unreadable(column.name) }
    }
    try readKind(&members, into: &record)
    if let unknown = members.keys.sorted().first {
      throw Damage(reason: "this version does not know its member “\(unknown.prefix(50))”")
    }
    record.added?.id = record.request.id
    do { try record.request.checkContent() } catch { throw Damage(reason: error.message) }
    return record
  }

  private static func unreadable(_ name: String) -> Damage { Damage(reason: "its member “\(name)” cannot be read") }

  private static func readKind(
    _ members: inout [String: JSONMembers.Value], into record: inout DownloadRecord
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
      guard case .json(let text) = value, let tags = JSONText<[String]>(columnValue: .text(text))?.value
      else { throw unreadable("tags") }
      record.request.tags = Set(tags)
    }
  }
}

extension JSONMembers.Value {
  fileprivate var isJSON: Bool { if case .json = self { true } else { false } }

  /// The value in a database.
  fileprivate var column: ColumnValue {
    switch self {
    case .integer(let value): .integer(value)
    case .real(let value): .real(value)
    case .string(let text), .json(let text): .text(text)
    }
  }
}
