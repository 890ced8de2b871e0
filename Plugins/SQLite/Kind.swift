#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import GRDB

  /// A queue of waiting downloads: those of the same kind that the same opening has added.
  struct Lane: Hashable, Comparable {
    var opening: Int64
    var kind: Int64

    static func < (left: Self, right: Self) -> Bool { (left.opening, left.kind) < (right.opening, right.kind) }
  }

  extension LedgerConnection {
    /// The largest number of cached kinds; a ledger may have a kind for each of ten million downloads.
    private static var cacheLimit: Int { 50_000 }

    /// The kind with a number; `nil` if it does not exist or is damaged.
    func kind(_ number: Int64) throws -> Kind? {
      if let known = kinds[number] { return known }
      let row = try prepared(.kind)
      row.bind(number)
      defer { row.reset() }
      guard try row.step() else { return nil }
      let location = row.optionalText()
      let host = row.text()
      let intent = Intent(row.text())
      guard case .integer(let priority)? = row.value() else { return nil }
      let text = row.text()
      guard let tags = text.isEmpty ? [] : JSONText<[String]>(columnValue: .text(text))?.value else { return nil }
      let kind = Kind(
        location: location,
        candidate: Candidate(host: host, intent: intent, priority: Priority(Int16(clamping: priority)), tags: Set(tags))
      )
      remember(kind, number)
      return kind
    }

    /// The number of a kind, which is inserted if it is new.
    func number(of kind: Kind) throws -> Int64 {
      if let known = kindNumbers[kind] { return known }
      let candidate = kind.candidate
      let tags: ColumnValue =
        candidate.tags.isEmpty ? .text("") : try JSONText(candidate.tags.map(RecordColumns.key).sorted()).columnValue
      func bind(to statement: PreparedStatement) {
        statement.bind(candidate.host)
        statement.bind(kind.location)
        statement.bind(RecordColumns.key(candidate.intent.rawValue))
        statement.bind(Int64(candidate.priority.rawValue))
        statement.bind(tags)
      }
      let find = try prepared(.kindNumber)
      bind(to: find)
      let found = try find.first { $0.int64() }
      if let found {
        remember(kind, found)
        return found
      }
      let insert = try prepared(.insertKind)
      bind(to: insert)
      try insert.run()
      let number = db.lastInsertedRowID
      remember(kind, number)
      return number
    }

    private func remember(_ kind: Kind, _ number: Int64) {
      if kinds.count >= Self.cacheLimit {
        kinds.removeAll()
        kindNumbers.removeAll()
      }
      kinds[number] = kind
      kindNumbers[kind] = number
    }
  }

  extension PreparedStatement {
    /// Runs a statement and reads its first row.
    func first<Value>(_ read: (PreparedStatement) throws -> Value) throws -> Value? {
      defer { reset() }
      return try step() ? try read(self) : nil
    }
  }
#endif
