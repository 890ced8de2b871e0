import Foundation

/// The records of a ``MemoryLedger``.
struct MemoryLedgerState: Sendable {
  /// A record, with the values that only the ledger uses.
  struct Entry: Sendable {
    var record: DownloadRecord
    /// The store through which the download was last added or resumed.
    var addedBy: String
    /// Without the size, which the record has. Kept, because computing it parses the URL and each lease reads it.
    var candidate: Candidate
    /// The candidate with its size.
    var sizedCandidate: Candidate {
      var candidate = candidate
      candidate.size = record.likelySize
      return candidate
    }

    func isWaiting(as key: MemoryLedgerQueue.Key) -> Bool {
      record.isQueued && MemoryLedgerQueue.Key(record) == key
    }
  }

  private struct Owner: Sendable {
    /// `nil` until the owner sets a ranking; until then the order of arrival applies.
    var ranking: Ranking?
    /// The last numbered exchange, and what is kept of its answer.
    var answer: (number: Int64, kept: String)?
    /// The last other change with a number.
    var lastChange: (number: Int64, kept: String)?
  }

  private var owners: [String: Owner] = [:]
  /// The name of the ranking of all records; `nil` when they have ranks of several rankings.
  private var rankingName: String?
  var entries: [DownloadID: Entry] = [:]
  /// The downloads that wait for a download, by its id.
  var dependents: [DownloadID: Set<DownloadID>] = [:]
  /// Whether a download that waits for a due time has been released since the exchange began.
  var hasReleasedDelayed = false
  /// The queued downloads with a due time.
  private var delayed: Set<DownloadID> = []
  /// The downloads whose saved outcomes were for an earlier request, since the exchange began.
  private var reopened: Set<DownloadID> = []
  var lastGeneration: Int64 = 0
  var queue = MemoryLedgerQueue()
  private var tally: [DownloadState.Phase: Int] = [:]
  /// What removed downloads have left, by its number.
  private(set) var deletions: [Int64: LedgerDeletion] = [:]
  private var firstDeletion: Int64 = 1
  private var lastDeletion: Int64 = 0
  /// The settings of the app.
  var settings: Data?
  /// The shares of rates by their keys.
  private var rateShares: [String: RateShares] = [:]

  /// The number of keys in the queue, including obsolete ones.
  var queueCount: Int { queue.count }

  /// Makes a change with a number, or gives its answer again.
  mutating func perform<Value>(
    _ number: Int64?, of owner: String, _ answer: LedgerAnswer<Value>, _ body: (inout Self) throws -> Value
  ) throws -> Value {
    if let number, let last = owners[owner]?.lastChange, last.number == number {
      return try answer.again(last.kept) { ids in ids.compactMap { entries[$0]?.record } }
    }
    let value = try body(&self)
    if let number, answer.hasChanged(value) { owners[owner]?.lastChange = (number, try answer.kept(value)) }
    return value
  }

  // MARK: Deletions

  mutating func keep(_ deletion: LedgerDeletion) -> Int64 {
    lastDeletion += 1
    deletions[lastDeletion] = deletion
    deletions[lastDeletion]?.number = lastDeletion
    return lastDeletion
  }

  func deletions(at location: String?, in numbers: ClosedRange<Int64>, limit: Int) -> [LedgerDeletion] {
    guard firstDeletion <= lastDeletion, numbers.overlaps(firstDeletion...lastDeletion) else { return [] }
    let numbers = numbers.clamped(to: firstDeletion...lastDeletion).lazy
    return Array(numbers.compactMap { deletions[$0] }.filter { $0.location == location }.prefix(limit))
  }

  mutating func forget(deletions numbers: [Int64]) {
    for number in numbers { deletions[number] = nil }
    while firstDeletion <= lastDeletion, deletions[firstDeletion] == nil { firstDeletion += 1 }
  }

  // MARK: Owners

  mutating func open(_ owner: String) { owners[owner] = Owner() }

  /// - Returns: Whether the owner was open.
  mutating func close(_ owner: String) -> Bool {
    for key in rateShares.keys { rateShares[key]?.remove(owner) }
    return owners.removeValue(forKey: owner) != nil
  }

  func isOpen(_ owner: String) -> Bool { owners[owner] != nil }

  mutating func leaseRates(
    _ wants: [RateWant], for duration: Duration, at now: Date, owner: String
  ) -> [RateShare] {
    for key in rateShares.keys { rateShares[key]?.removeExpired(at: now) }
    rateShares = rateShares.filter { !$0.value.rows.isEmpty }
    return wants.map { rateShares[$0.key, default: RateShares()].lease($0, to: owner, for: duration, at: now) }
  }

  mutating func rank(by ranking: Ranking, owner: String) {
    let isFirstCall = owners[owner]?.ranking == nil
    owners[owner, default: Owner()].ranking = ranking
    if isFirstCall, rankingName == ranking.name { return }
    _ = update(ids(of: entries.values.lazy.filter { $0.record.phase != .finished }), at: nil) { entry in
      entry.record.rank = ranking.rank(entry.record.rankingContext(host: entry.candidate.host))
      return true
    }
    rankingName = ranking.name
  }

  /// Returns the ranking of an owner that is about to write ranks. If the ledger's ranking has another name, the name
  /// is removed.
  mutating func rankingToWrite(_ owner: String) -> Ranking {
    let ranking = owners[owner]?.ranking ?? .arrival
    if rankingName != ranking.name { rankingName = nil }
    return ranking
  }

  // MARK: Upkeep

  mutating func set(_ entry: Entry) {
    let record = entry.record
    let old = entries.updateValue(entry, forKey: record.id)?.record
    if let old { tally[old.phase, default: 0] -= 1 }
    tally[record.phase, default: 0] += 1
    noteDependencies(of: record, since: old)
    if record.isQueued, record.notBefore != nil {
      delayed.insert(record.id)
    } else if !delayed.isEmpty {
      delayed.remove(record.id)
    }
    guard record.isQueued else { return }
    let key = MemoryLedgerQueue.Key(record)
    if let old, old.isQueued, MemoryLedgerQueue.Key(old) == key { return }
    queue.append(key)
    // A download that changes often must not fill the memory with obsolete keys.
    if queue.count > 2 * entries.count + 1_000 { queue.tidy { entries[$0.id]?.isWaiting(as: $0) != true } }
  }

  mutating func forget(_ id: DownloadID) {
    guard let old = entries.removeValue(forKey: id) else { return }
    tally[old.record.phase, default: 0] -= 1
    delayed.remove(id)
    setDependent(id, of: old.record.waitsFor, to: false)
  }

  /// Changes the chosen records for which `change` returns `true`.
  /// - Returns: The changed records, in the order of `chosen`.
  mutating func update(
    _ chosen: [DownloadID], at now: Date?, _ change: (inout Entry) -> Bool
  ) -> [DownloadRecord] {
    chosen.compactMap { id in
      guard var entry = entries[id], change(&entry) else { return nil }
      entry.record.updatedAt = now ?? entry.record.updatedAt
      set(entry)
      return entry.record
    }
  }

  // MARK: Adding and reading

  mutating func add(
    _ additions: [LedgerAddition], owner: String, at now: Date
  ) throws -> [LedgerAddOutcome] {
    for addition in additions {
      guard let known = record(addition.request.id), known.isElsewhere(than: addition), known.phase.isActive
      else { continue }
      throw DownloadError(
        .inUse, "“\(known.id)” is being downloaded to \(known.location ?? ""): wait until it has ended",
        stage: "MemoryLedger")
    }
    return try keepingOrder(of: additions.map(\.request)) { state in
      additions.map { state.add($0, owner: owner, at: now) }
    }
  }

  private mutating func add(_ addition: LedgerAddition, owner: String, at now: Date) -> LedgerAddOutcome {
    let ranking = rankingToWrite(owner)
    if var record = record(addition.request.id) {
      let isLost = record.phase == .finished && addition.lost != nil && record.steps.artifact == addition.lost
      if !isLost, !record.isElsewhere(than: addition) {
        let wasFinished = record.phase == .finished
        _ = record.addAgain(addition, at: now, ranking: ranking) { isFinished($0) }
        set(Entry(record: record, addedBy: owner, candidate: record.candidate.withoutSize))
        return LedgerAddOutcome(isNew: wasFinished && record.phase != .finished, record: record)
      }
      forget(record.id)
    }
    lastGeneration += 1
    var record = DownloadRecord(
      request: addition.request, generation: lastGeneration, arrival: addition.arrival, rank: Rank(),
      location: addition.location, createdAt: now)
    let candidate = record.candidate.withoutSize
    record.rank = ranking.rank(record.rankingContext(host: candidate.host))
    record.follow(since: []) { isFinished($0) }
    if addition.isPaused { record.apply(.pause) }
    set(Entry(record: record, addedBy: owner, candidate: candidate))
    return LedgerAddOutcome(isNew: true, record: record)
  }

  mutating func update(
    _ id: DownloadID, owner: String, at now: Date, _ change: (inout DownloadRecord) throws -> Void
  ) throws -> DownloadRecord? {
    guard var entry = entries[id] else { return nil }
    let ranking = rankingToWrite(owner)
    let phase = entry.record.phase
    guard
      try entry.record.update(by: owner, at: now, ranking: ranking, isFinished: { isFinished($0) }, change)
    else { return entry.record }
    entry.candidate = entry.record.candidate.withoutSize
    if entry.record.phase != phase { entry.addedBy = owner }
    try keepingOrder(of: [entry.record.request]) { $0.set(entry) }
    return entry.record
  }

  func record(_ id: DownloadID) -> DownloadRecord? { entries[id]?.record }

  func records(_ query: DownloadQuery) -> [DownloadRecord] {
    let found = matching(query.filter).map(\.record)
    let sorted =
      switch query.order {
      case .arrival: found.sorted { ($0.arrival, $0.generation) < ($1.arrival, $1.generation) }
      case .rank: found.sorted { MemoryLedgerQueue.Key($0) < MemoryLedgerQueue.Key($1) }
      case .latestChange: found.sorted { ($0.updatedAt, $0.generation) > ($1.updatedAt, $1.generation) }
      }
    return Array(sorted.dropFirst(max(0, query.offset)).prefix(max(0, query.limit ?? .max)))
  }

  func counts(_ filter: DownloadFilter) -> [DownloadState.Phase: Int] {
    if filter == .all { return tally.filter { $0.value > 0 } }
    return matching(filter).reduce(into: [:]) { $0[$1.record.phase, default: 0] += 1 }
  }

  func totals(_ filter: DownloadFilter) -> DownloadTotals {
    matching(filter).reduce(into: DownloadTotals(counts: counts(filter))) { $0.add($1.record) }
  }

  /// The ids of entries in order of generation. The order of the entries is that of a dictionary, and no effect may depend
  /// on it.
  func ids(of entries: some Sequence<Entry>) -> [DownloadID] {
    entries.map { (generation: $0.record.generation, id: $0.record.id) }.sorted { $0.generation < $1.generation }.map(
      \.id)
  }

  /// The entries that match a filter, in no particular order.
  func matching(_ filter: DownloadFilter) -> AnySequence<Entry> {
    func matches(_ entry: Entry) -> Bool { filter.matches(entry.record, host: entry.candidate.host) }
    // Downloads that the filter names are looked up.
    if let ids = filter.ids { return AnySequence(ids.lazy.compactMap { entries[$0] }.filter(matches)) }
    return AnySequence(entries.values.lazy.filter(matches))
  }

  func unsettledMoves() -> [DownloadRecord] {
    entries.values.lazy.map(\.record).filter { $0.phase == .finished && $0.steps.note != nil }
      .sorted { $0.generation < $1.generation }
  }

  func nextDue(after now: Date) -> Date? {
    delayed.lazy.compactMap { entries[$0]?.record.notBefore }.filter { $0 > now && $0 <= now.furthestDue }.min()
  }

  // MARK: Saving

  mutating func save(_ record: DownloadRecord, _ fields: RecordFields, owner: String, at now: Date) -> Bool {
    guard var entry = entries[record.id], entry.record.generation == record.generation, entry.record.owner == owner
    else { return false }
    entry.record.write(fields, of: record, ranking: rankingToWrite(owner))
    if fields.contains(.state), entry.record.phase != record.phase { reopened.insert(record.id) }
    entry.record.updatedAt = now
    entry.candidate = entry.record.candidate.withoutSize
    set(entry)
    return true
  }

  mutating func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, owner: String, at now: Date, number: Int64?
  ) throws -> LedgerExchange {
    if let number, let answer = owners[owner]?.answer, answer.number == number {
      return try LedgerExchange(kept: answer.kept, for: saves) { generations in
        let held = entries.values.lazy.map(\.record).filter { $0.owner == owner && generations.contains($0.generation) }
        return held.sorted { generations.firstIndex(of: $0.generation)! < generations.firstIndex(of: $1.generation)! }
      }
    }
    hasReleasedDelayed = false
    reopened = []
    var exchange = LedgerExchange()
    exchange.saved = saves.map { save($0.record, $0.fields, owner: owner, at: now) }
    exchange.mayHaveReleasedDelayed = hasReleasedDelayed
    exchange.reopened = reopened
    if let request { exchange.leased = lease(request, owner: owner) }
    if let number, exchange.hasChanges { owners[owner]?.answer = (number, exchange.kept(for: saves)) }
    return exchange
  }

  // MARK: Ended owners

  /// Releases the downloads that closed owners held.
  mutating func reclaim(at now: Date) -> Int {
    let open = Set(owners.keys)
    return giveBack(at: now) { !open.contains($0) }
  }

  mutating func giveBack(at now: Date? = nil, where isLost: (_ owner: String) -> Bool) -> Int {
    update(ids(of: entries.values.lazy.filter { $0.record.owner != nil }), at: now) { entry in
      guard let owner = entry.record.owner, isLost(owner) else { return false }
      return entry.record.apply(.leaseLost)
    }.count
  }
}

extension LeaseScope {
  func contains(_ entry: MemoryLedgerState.Entry, for owner: String) -> Bool {
    switch self {
    case .all: true
    case .own: entry.addedBy == owner
    case .tag(let tag): entry.candidate.tags.contains(tag)
    case .ids(let ids): ids.contains(entry.record.id)
    }
  }
}

extension DownloadRecord {
  /// Whether the download belongs to a location or to none; `true` for `nil`.
  func belongs(to wanted: String?) -> Bool { wanted == nil || location == nil || location == wanted }

  func isDue(at now: Date) -> Bool { notBefore.map { $0 <= now || $0 > now.furthestDue } ?? true }

  fileprivate func isElsewhere(than addition: LedgerAddition) -> Bool {
    location != nil && addition.location != nil && location != addition.location
  }
}
