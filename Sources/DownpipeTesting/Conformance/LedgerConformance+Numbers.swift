@_spi(Ledger) import DownpipeCore

// Changes that are made again under their numbers: their answers may have been lost.
extension LedgerConformance {
  /// A kind of change of the downloads “a” and “b”, or of “c” by another owner.
  private struct NumberedChange: Sendable {
    let rule: String
    let name: String
    /// - Returns: The answer, as text.
    let make: @Sendable (any LedgerStore, _ ids: [DownloadID], _ number: Int64) async throws -> String
    /// What another owner does before it is made again.
    let undo: @Sendable (any LedgerStore) async throws -> Void
    /// What the records show of the change.
    let shown: @Sendable (any LedgerStore) async throws -> String
  }

  private static let metadata = { @Sendable (store: any LedgerStore) async throws in
    "\(try await store.records(DownloadQuery()).map { $0.request.metadata["by"] ?? "-" })"
  }

  private static let mark = { @Sendable (store: any LedgerStore) async throws in
    _ = try await store.update("a", at: time(2)) { $0.request.metadata["by"] = "other" }
  }

  private static let numbered = [
    NumberedChange(
      rule: "add-again", name: "an addition",
      make: { store, ids, number in
        let additions = try ids.enumerated().map { index, id in
          var addition = try addition(id == "b" ? "new" : id, order: Int64(index) + 10)
          addition.request.metadata["by"] = "\(number) of \(store.owner)"
          return addition
        }
        return "\(try await store.add(additions, at: time(1), number: number).map { "\($0.record.id) \($0.isNew)" })"
      }, undo: mark, shown: metadata),
    NumberedChange(
      rule: "update-again", name: "an update",
      make: { store, ids, number in
        let record = try await store.update(ids[0], at: time(1), number: number) {
          $0.request.metadata["by"] = "\(number)"
        }
        return "\(record?.id ?? "-")"
      }, undo: mark, shown: metadata),
    NumberedChange(
      rule: "update-all-again", name: "an update of many",
      make: { store, ids, number in
        "\(try await store.update(.ids(ids), at: time(1), number: number) { $0.request.metadata["by"] = "\(number)" })"
      }, undo: mark, shown: metadata),
    NumberedChange(
      rule: "transition-again", name: "a transition",
      make: { store, ids, number in
        "\(try await store.transition(.ids(ids), .pause, at: time(1), number: number))"
      }, undo: { _ = try await $0.transition(.ids(["a"]), .resume, at: time(2)) },
      shown: { "\(try await $0.records(DownloadQuery()).map(\.phase))" }),
    NumberedChange(
      rule: "remove-again", name: "a removal",
      make: { store, ids, number in
        let before = try await store.record(ids[0])
        let removal = try await store.remove(.ids(ids), number: number, leaving: { LedgerDeletion($0, [], at: nil) })
        let isThere = try await store.record(ids[0]) != nil
        try expectEqual(removal.isGivenAgain, before != nil && isThere, "whether the answer is given again")
        let left = removal.deletions.map { "\($0.upperBound - $0.lowerBound)" } ?? "nothing"
        return "\(removal.count), \(left)"
      }, undo: { _ = try await $0.add([addition("a", order: 9)], at: time(2)) },
      shown: { "\(try await $0.records(DownloadQuery()).map(\.id))" }),
  ]

  func checkNumbers(_ report: ConformanceReport) async {
    for change in Self.numbered {
      await report.check(
        change.rule, "\(change.name) that is made again under its number changes nothing, and has its first answer"
      ) {
        let (ledger, store) = try await filled(["a", "b", "c"])
        let before = try await change.shown(store)
        let first = try await change.make(store, ["a", "b"], 7)
        try expect(try await change.shown(store) != before, "it has changed nothing")
        // Other owners have changes, too, with the same numbers.
        let other = try await ledger.open()
        let rest = try await change.shown(store)
        _ = try await change.make(other, ["c"], 7)
        try expect(try await change.shown(store) != rest, "the change of another owner has changed nothing")
        try await change.undo(other)
        let shown = try await change.shown(store)
        for _ in 0..<2 {
          try expectEqual(try await change.make(store, ["a", "b"], 7), first, "the answer")
          try expectEqual(try await change.shown(store), shown, "what the ledger has")
        }
        // The next change has another number, and so has that of another opening.
        _ = try await change.make(store, ["a"], 8)
        try expect(try await change.shown(store) != shown, "the next change has changed nothing")
        try await store.close()
        try await change.undo(other)
        let next = try await ledger.open()
        let last = try await change.shown(next)
        _ = try await change.make(next, ["a"], 8)
        try expect(try await change.shown(next) != last, "the change of a later opening has changed nothing")
      }
    }
  }
}
