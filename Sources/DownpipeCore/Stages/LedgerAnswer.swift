public import Foundation

/// The answer of a numbered change of a ledger, as it is kept and given again.
///
/// What is kept is a short text; the records are read again. A ledger keeps the text with the number of the change, in its
/// transaction, for each owner that of the last change.
@_spi(Ledger) public struct LedgerAnswer<Value: Sendable>: Sendable {
  /// Whether a change with this answer has changed anything that matters to others. Otherwise nothing has to be kept.
  public let hasChanged: @Sendable (Value) -> Bool
  /// What is kept of an answer.
  public let kept: @Sendable (Value) throws -> String
  /// The answer again, of what was kept of it. Reads records by their ids.
  public let again: @Sendable (_ kept: String, _ records: ([DownloadID]) throws -> [DownloadRecord]) throws -> Value
}

extension LedgerAnswer where Value == [LedgerAddOutcome] {
  /// Of ``LedgerStore/add(_:at:number:)``: how many in a row were new, known, new, …
  public static func additions(_ additions: [LedgerAddition], at now: Date) -> Self {
    Self {
      $0.contains { $0.isChanged(at: now) }
    } kept: { outcomes in
      var counts = [0]
      for outcome in outcomes {
        if outcome.isNew != counts.count.isMultiple(of: 2) { counts[counts.count - 1] += 1 } else { counts.append(1) }
      }
      return counts.map(String.init).joined(separator: " ")
    } again: { kept, records in
      let found = Dictionary(try records(additions.map(\.request.id)).map { ($0.id, $0) }) { $1 }
      var rest = additions[...]
      var outcomes: [LedgerAddOutcome] = []
      for (index, count) in kept.split(separator: " ").enumerated() {
        for addition in rest.prefix(Int(count) ?? 0) {
          // Another owner may have removed it since.
          let gone = DownloadRecord(
            request: addition.request, generation: 0, arrival: addition.arrival, rank: Rank(), createdAt: now)
          outcomes.append(
            LedgerAddOutcome(isNew: index.isMultiple(of: 2), record: found[addition.request.id] ?? gone))
        }
        rest = rest.dropFirst(Int(count) ?? 0)
      }
      return outcomes
    }
  }
}

extension LedgerAnswer where Value == DownloadRecord? {
  /// Of ``LedgerStore/update(_:at:number:_:)-(DownloadID,_,_,_)``: nothing but that it was made.
  public static func update(_ id: DownloadID, at now: Date) -> Self {
    Self {
      $0?.updatedAt == now
    } kept: { _ in
      ""
    } again: {
      try $1([id]).first
    }
  }
}

extension LedgerAnswer where Value == LedgerBulkResult {
  /// Of a change of many records: their number, and at most 1,000 ids, as JSON.
  public static var bulk: Self {
    Self {
      $0.count > 0
    } kept: {
      String(decoding: try JSONEncoder().encode(Array($0.ids.prefix(1_000))), as: UTF8.self) + " \($0.count)"
    } again: { kept, _ in
      guard let end = kept.lastIndex(of: " "), let count = Int(kept[end...].dropFirst()) else {
        throw LedgerRemoval.damaged
      }
      return LedgerBulkResult(
        ids: try JSONDecoder().decode([DownloadID].self, from: Data(kept[..<end].utf8)), count: count)
    }
  }
}

extension LedgerAnswer where Value == LedgerRemoval {
  /// Of ``LedgerStore/remove(_:number:leaving:)``: three numbers.
  public static var removal: Self {
    Self {
      $0.count > 0
    } kept: { removal in
      "\(removal.count)" + (removal.deletions.map { " \($0.lowerBound) \($0.upperBound)" } ?? "")
    } again: { kept, _ in
      let numbers = kept.split(separator: " ").compactMap { Int64($0) }
      guard let count = numbers.first, numbers.count != 2 else { throw LedgerRemoval.damaged }
      return LedgerRemoval(again: Int(count), numbers.count > 2 ? numbers[1]...max(numbers[1], numbers[2]) : nil)
    }
  }
}

extension LedgerRemoval {
  fileprivate static var damaged: DownloadError {
    DownloadError(.ledger, "what the ledger has kept of an answer is damaged: make the change again")
  }
}
