/// How the owners of a ``MemoryLedger`` rank, and whose ranks its records have.
struct MemoryLedgerRankings: Sendable {
  private var rankings: [String: Ranking] = [:]
  /// The owners that have said how they rank.
  private var haveSaid: Set<String> = []
  /// The name of the ranking that all ranks are of; `nil` when that is not known.
  private var name: String?
  /// The name of the ranking that is under way.
  private var nameUnderWay: String?

  mutating func open(_ owner: String) { rankings[owner] = .arrival }

  /// - Returns: whether the owner was there.
  mutating func close(_ owner: String) -> Bool {
    haveSaid.remove(owner)
    return rankings.removeValue(forKey: owner) != nil
  }

  func isOpen(_ owner: String) -> Bool { rankings[owner] != nil }

  /// How an owner ranks what it is about to write; another name than its own is taken from the ranks.
  mutating func toWrite(_ owner: String) -> Ranking {
    let ranking = rankings[owner] ?? .arrival
    if name != ranking.name { name = nil }
    if nameUnderWay != ranking.name { nameUnderWay = nil }
    return ranking
  }

  /// - Returns: whether anything is to be ranked anew.
  mutating func begin(_ ranking: Ranking, by owner: String) -> Bool {
    rankings[owner] = ranking
    if haveSaid.insert(owner).inserted, name == ranking.name { return false }
    name = nil
    nameUnderWay = ranking.name
    return true
  }

  /// All is ranked, unless another store has added by another ranking meanwhile.
  mutating func end(_ ranking: Ranking) {
    if nameUnderWay == ranking.name { name = ranking.name }
    nameUnderWay = nil
  }
}

extension MemoryLedgerState {
  mutating func rank(_ generations: ArraySlice<Int64>, by ranking: Ranking) {
    _ = update(generations, at: nil) { entry in
      guard entry.record.phase != .finished else { return false }
      entry.record.rank = ranking.rank(entry.record.rankingContext(host: entry.candidate.host))
      return true
    }
  }
}
