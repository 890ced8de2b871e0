package import Foundation

/// The records of a ``MemoryLedger``. Every change goes through ``set(_:)`` or ``forget(_:)``, which keep what is known
/// of all of them right.
struct MemoryLedgerState: Sendable {
  /// A record, and what only the ledger knows of it.
  struct Entry: Sendable {
    var record: DownloadRecord
    /// The store that it was added or resumed through last.
    var addedBy: String
    /// Kept because it costs a parse of the URL, and leases ask each candidate.
    var candidate: Candidate
  }

  /// Sorts waiting downloads; those of one rank in the order of arrival.
  private struct RankKey: Comparable, Sendable {
    var rank: Rank
    var arrival: Int64
    var generation: Int64

    init(_ record: DownloadRecord) { (rank, arrival, generation) = (record.rank, record.arrival, record.generation) }

    static func < (left: Self, right: Self) -> Bool {
      (left.rank, left.arrival, left.generation) < (right.rank, right.arrival, right.generation)
    }
  }

  /// The owners that may still save, and how they rank. Leases need no end here: which owners are gone is known.
  var rankings = MemoryLedgerRankings()
  private var entries: [Int64: Entry] = [:]
  private var generations: [DownloadID: Int64] = [:]
  private var lastGeneration: Int64 = 0
  private var tally: [DownloadState.Phase: Int] = [:]
  /// Waiting and due.
  private var ready = SortedKeys<RankKey>()
  /// Waiting for a time.
  private var delayed: Set<Int64> = []
  private var active: Set<Int64> = []

  // MARK: Upkeep

  private func entry(_ id: DownloadID) -> Entry? { generations[id].flatMap { entries[$0] } }

  private mutating func set(_ entry: Entry) {
    forget(entry.record.generation)
    let record = entry.record
    entries[record.generation] = entry
    generations[record.id] = record.generation
    tally[record.phase, default: 0] += 1
    if record.phase.isActive { active.insert(record.generation) }
    guard record.phase == .waiting else { return }
    if record.notBefore == nil { ready.insert(RankKey(record)) } else { delayed.insert(record.generation) }
  }

  private mutating func forget(_ generation: Int64) {
    guard let record = entries.removeValue(forKey: generation)?.record else { return }
    generations[record.id] = nil
    tally[record.phase] = tally[record.phase].flatMap { $0 > 1 ? $0 - 1 : nil }
    active.remove(generation)
    if delayed.remove(generation) == nil, record.phase == .waiting { ready.remove(RankKey(record)) }
  }

  /// Changes some records, for which `change` returns true.
  /// - Returns: those that were changed, in the order of `chosen`.
  mutating func update(
    _ chosen: some Sequence<Int64>, at now: Date?, _ change: (inout Entry) -> Bool
  ) -> [DownloadRecord] {
    chosen.compactMap { generation in
      guard var entry = entries[generation], change(&entry) else { return nil }
      entry.record.updatedAt = now ?? entry.record.updatedAt
      set(entry)
      return entry.record
    }
  }

  // MARK: Adding and asking

  mutating func add(
    _ additions: [LedgerAddition], owner: String, at now: Date
  ) throws(DownloadError) -> [LedgerAddOutcome] {
    for addition in additions {
      guard let known = record(addition.request.id), known.isElsewhere(than: addition), known.phase.isActive
      else { continue }
      throw DownloadError(
        .inUse, "“\(known.id)” is being downloaded to \(known.location ?? ""): wait until it has ended",
        stage: "MemoryLedger")
    }
    return additions.map { add($0, owner: owner, at: now) }
  }

  private mutating func add(_ addition: LedgerAddition, owner: String, at now: Date) -> LedgerAddOutcome {
    let ranking = rankings.toWrite(owner)
    if var record = record(addition.request.id) {
      let isLost = record.phase == .finished && addition.lost != nil && record.steps.artifact == addition.lost
      if !isLost, !record.isElsewhere(than: addition) {
        _ = record.addAgain(addition, at: now, ranking: ranking)
        set(Entry(record: record, addedBy: owner, candidate: record.candidate))
        return LedgerAddOutcome(isNew: false, record: record)
      }
      forget(record.generation)
    }
    lastGeneration += 1
    var record = DownloadRecord(
      request: addition.request, generation: lastGeneration, arrival: addition.arrival, rank: Rank(),
      location: addition.location, createdAt: now)
    let candidate = record.candidate
    record.rank = ranking.rank(record.rankingContext(host: candidate.host))
    set(Entry(record: record, addedBy: owner, candidate: candidate))
    return LedgerAddOutcome(isNew: true, record: record)
  }

  mutating func update(
    _ id: DownloadID, owner: String, at now: Date, _ change: (inout DownloadRecord) throws -> Void
  ) rethrows -> DownloadRecord? {
    guard var entry = entry(id) else { return nil }
    guard try entry.record.update(by: owner, at: now, ranking: rankings.toWrite(owner), change) else {
      return entry.record
    }
    entry.candidate = entry.record.candidate
    set(entry)
    return entry.record
  }

  func record(_ id: DownloadID) -> DownloadRecord? { entry(id)?.record }

  /// The generations of all records.
  var generationsInUse: [Int64] { Array(entries.keys) }

  func records(_ query: DownloadQuery) -> [DownloadRecord] {
    let found = entries.values.lazy.map(\.record).filter { record in
      query.phases?.contains(record.phase) ?? true && query.tag.map(record.request.tags.contains) ?? true
        && record.belongs(to: query.location)
    }
    let sorted =
      switch query.order {
      case .arrival: found.sorted { ($0.arrival, $0.generation) < ($1.arrival, $1.generation) }
      case .rank: found.sorted { RankKey($0) < RankKey($1) }
      case .latestChange: found.sorted { ($0.updatedAt, $0.generation) > ($1.updatedAt, $1.generation) }
      }
    return Array(sorted.dropFirst(max(0, query.offset)).prefix(max(0, query.limit ?? .max)))
  }

  func counts(tag: String?) -> [DownloadState.Phase: Int] {
    guard let tag else { return tally }
    return entries.values.reduce(into: [:]) { counts, entry in
      if entry.candidate.tags.contains(tag) { counts[entry.record.phase, default: 0] += 1 }
    }
  }

  func totals(tag: String?) -> DownloadTotals {
    var totals = DownloadTotals(counts: counts(tag: tag))
    for entry in entries.values where tag.map(entry.candidate.tags.contains) ?? true { totals.add(entry.record) }
    return totals
  }

  func unsettledMoves() -> [DownloadRecord] {
    entries.values.lazy.map(\.record).filter { $0.phase == .finished && $0.steps.note != nil }
  }

  func nextDue(after now: Date) -> Date? {
    delayed.compactMap { entries[$0]?.record.notBefore }.filter { $0 > now && $0 <= now.furthestDue }.min()
  }

  // MARK: Leasing and saving

  mutating func lease(_ request: LeaseRequest, owner: String) -> [DownloadRecord] {
    for generation in delayed {
      guard var entry = entries[generation], let due = entry.record.notBefore else { continue }
      guard due <= request.now || due > request.now.furthestDue else { continue }
      entry.record.notBefore = nil
      set(entry)
    }
    var taken: [Int64] = []
    var skipped: Set<Candidate> = []
    forEachReady(in: request.scope) { key in
      guard let entry = entries[key.generation], request.scope.contains(entry, for: owner),
        entry.record.belongs(to: request.location), !skipped.contains(entry.candidate)
      else { return true }
      switch request.select(entry.candidate) {
      case .take: taken.append(key.generation)
      case .skip: skipped.insert(entry.candidate)
      case .stop: return false
      }
      return true
    }
    return update(taken, at: request.now) { entry in
      entry.record.owner = owner
      return entry.record.apply(.leased)
    }
  }

  /// Visits what is ready in order of rank: at least what is in the scope.
  private func forEachReady(in scope: LeaseScope, _ body: (RankKey) -> Bool) {
    guard case .ids(let ids) = scope, ids.count < ready.count else { return ready.forEach(body) }
    let records = ids.lazy.compactMap(record).filter { $0.phase == .waiting && $0.notBefore == nil }
    for key in records.map(RankKey.init).sorted() where !body(key) { return }
  }

  mutating func save(_ record: DownloadRecord, _ fields: RecordFields, owner: String, at now: Date) -> Bool {
    guard var entry = entry(record.id), entry.record.generation == record.generation, entry.record.owner == owner
    else { return false }
    entry.record.write(fields, of: record, ranking: rankings.toWrite(owner))
    entry.record.updatedAt = now
    entry.candidate = entry.record.candidate
    set(entry)
    return true
  }

  // MARK: Many at once

  private func chosen(_ selection: LedgerSelection) -> [Int64] {
    switch selection {
    case .all: Array(entries.keys)
    case .tag(let tag): entries.values.filter { $0.candidate.tags.contains(tag) }.map(\.record.generation)
    case .ids(let ids): Array(Set(ids.compactMap { generations[$0] }))
    }
  }

  mutating func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, owner: String, at now: Date
  ) -> LedgerTransitionResult {
    let moved = update(chosen(selection), at: now) { entry in
      guard entry.record.owner == nil, entry.record.apply(event) else { return false }
      if event != .becameDue { entry.addedBy = owner }
      return true
    }
    return LedgerTransitionResult(ids: moved.prefix(10_000).map(\.id), count: moved.count)
  }

  mutating func remove(_ selection: LedgerSelection, limit: Int, owner: String) -> [DownloadRecord] {
    let records = chosen(selection).compactMap { entries[$0]?.record }
      .filter { $0.owner == nil || $0.owner == owner }.prefix(max(0, limit))
    for record in records { forget(record.generation) }
    return Array(records)
  }

  /// Takes from owners what they hold.
  mutating func giveBack(at now: Date? = nil, where isLost: (_ owner: String) -> Bool) -> Int {
    update(active, at: now) { entry in
      guard let owner = entry.record.owner, isLost(owner) else { return false }
      return entry.record.apply(.leaseLost)
    }.count
  }
}

extension LeaseScope {
  fileprivate func contains(_ entry: MemoryLedgerState.Entry, for owner: String) -> Bool {
    switch self {
    case .all: true
    case .own: entry.addedBy == owner
    case .tag(let tag): entry.candidate.tags.contains(tag)
    case .ids(let ids): ids.contains(entry.record.id)
    }
  }
}

extension DownloadRecord {
  /// Whether it belongs to a location; to any, when that is `nil`.
  fileprivate func belongs(to wanted: String?) -> Bool { wanted == nil || location == nil || location == wanted }

  fileprivate func isElsewhere(than addition: LedgerAddition) -> Bool {
    location != nil && addition.location != nil && location != addition.location
  }

  /// Writes what a save of the fields writes of a record.
  fileprivate mutating func write(
    _ fields: RecordFields, of record: DownloadRecord, ranking: @autoclosure () -> Ranking
  ) {
    if fields.contains(.link) { setLink(of: record, ranking: ranking()) }
    if fields.contains(.checkpoint) { checkpoint = record.checkpoint }
    if fields.contains(.steps) { steps = record.steps }
    guard fields.contains(.state) else { return }
    phase = record.phase
    notBefore = record.notBefore
    isPausedTogether = record.isPausedTogether
    awaited = record.awaited
    error = record.error
    attempts = record.attempts
    consecutiveFailures = record.consecutiveFailures
    repeatedFailures = record.repeatedFailures
    bytesFetched = record.bytesFetched
    resumedFrom = record.resumedFrom
    wasInterrupted = record.wasInterrupted
    if !phase.isActive { owner = nil }
  }
}

extension Date {
  /// The latest time that a download can sensibly wait for: one beyond it comes from a clock that jumped,
  /// and counts as due. No back-off and no `Retry-After` is longer than a year.
  package var furthestDue: Date { addingTimeInterval(400 * 86_400) }
}
