/// How the owners of a ``MemoryLedger`` rank, and whose ranks its records have.
struct MemoryLedgerRankings: Sendable {
  private struct Standing: Sendable {
    var ranking = Ranking.arrival
    /// How often the owner has said how it ranks.
    var number = 0
  }

  private var standings: [String: Standing] = [:]
  /// The name of the ranking that all ranks are of; `nil` when that is not known.
  private var name: String?
  /// The name of the ranking that is under way.
  private var nameUnderWay: String?

  mutating func open(_ owner: String) { standings[owner] = Standing() }

  /// - Returns: whether the owner was there.
  mutating func close(_ owner: String) -> Bool { standings.removeValue(forKey: owner) != nil }

  func isOpen(_ owner: String) -> Bool { standings[owner] != nil }

  /// How an owner ranks what it is about to write; another name than its own is taken from the ranks.
  mutating func toWrite(_ owner: String) -> Ranking {
    let ranking = standings[owner]?.ranking ?? .arrival
    if name != ranking.name { name = nil }
    if nameUnderWay != ranking.name { nameUnderWay = nil }
    return ranking
  }

  /// - Returns: a number for ``isCurrent(_:of:)``; `nil` when all is ranked so already.
  mutating func begin(_ ranking: Ranking, by owner: String) -> Int? {
    let number = (standings[owner]?.number ?? 0) + 1
    standings[owner] = Standing(ranking: ranking, number: number)
    if number == 1, name == ranking.name { return nil }
    name = nil
    nameUnderWay = ranking.name
    return number
  }

  /// Whether no other ranking of the owner has taken the place of this one.
  func isCurrent(_ number: Int, of owner: String) -> Bool { standings[owner]?.number == number }

  /// All is ranked, unless another store has ranked otherwise meanwhile.
  mutating func end(_ number: Int, by owner: String) {
    guard isCurrent(number, of: owner) else { return }
    let ranking = toWrite(owner)
    if nameUnderWay == ranking.name { name = ranking.name }
    nameUnderWay = nil
  }
}

extension MemoryLedgerState {
  /// - Returns: false when another ranking has taken the place of this one meanwhile, which does the work then.
  mutating func rank(_ generations: ArraySlice<Int64>, as number: Int, by owner: String) -> Bool {
    guard rankings.isCurrent(number, of: owner) else { return false }
    let ranking = rankings.toWrite(owner)
    _ = update(generations, at: nil) { entry in
      guard entry.record.phase != .finished else { return false }
      entry.record.rank = ranking.rank(entry.record.rankingContext(host: entry.candidate.host))
      return true
    }
    return true
  }
}
