package import Foundation

/// The records of a ``MemoryLedger`` and the indexes over them. Every change goes through
/// ``update(_:_:)``, ``insert(_:)`` or ``delete(_:)``, which keep the indexes right.
struct MemoryLedgerState: Sendable {
  /// A record, and what only the ledger knows of it.
  struct Entry: Sendable {
    var record: DownloadRecord
    var lease: Date?
    /// Kept because it costs a parse of the URL, and claims ask each candidate.
    var host: String
    /// The store that it was added or resumed through last.
    var addedBy: String
  }

  /// Sorts waiting downloads; those of one rank in the order of arrival.
  struct RankKey: Comparable, Sendable {
    var rank: Rank
    var arrival: Int64
    var generation: Int64

    static func < (left: Self, right: Self) -> Bool {
      (left.rank, left.arrival, left.generation) < (right.rank, right.arrival, right.generation)
    }
  }

  /// Sorts by a time or a number.
  struct Key<Value: Comparable & Sendable>: Comparable, Sendable {
    var value: Value
    var generation: Int64

    static func < (left: Self, right: Self) -> Bool {
      (left.value, left.generation) < (right.value, right.generation)
    }
  }

  /// The owners that may still save.
  var openOwners: Set<String> = []

  private(set) var entries: [Int64: Entry] = [:]
  private(set) var generations: [DownloadID: Int64] = [:]
  private var lastGeneration: Int64 = 0
  private var tally: [DownloadState.Phase: Int] = [:]
  /// Waiting and due: claims read this index only, however many others wait for their time.
  private var ready = SortedKeys<RankKey>()
  /// Waiting for a time; ``promote(at:)`` makes them ready.
  private var delayed = SortedKeys<Key<Date>>()
  private(set) var arrivals = SortedKeys<Key<Int64>>()
  private(set) var active: Set<Int64> = []

  // MARK: Upkeep

  func entry(_ id: DownloadID) -> Entry? { generations[id].flatMap { entries[$0] } }

  private mutating func insert(_ entry: Entry) {
    let generation = entry.record.generation
    entries[generation] = entry
    generations[entry.record.id] = generation
    arrivals.insert(Key(value: entry.record.arrival, generation: generation))
    index(entry.record)
  }

  mutating func delete(_ generation: Int64) -> DownloadRecord? {
    guard let entry = entries.removeValue(forKey: generation) else { return nil }
    generations[entry.record.id] = nil
    arrivals.remove(Key(value: entry.record.arrival, generation: generation))
    unindex(entry.record)
    return entry.record
  }

  mutating func update(_ generation: Int64, _ change: (inout Entry) -> Void) {
    guard var entry = entries[generation] else { return }
    unindex(entry.record)
    change(&entry)
    index(entry.record)
    entries[generation] = entry
  }

  private mutating func index(_ record: DownloadRecord) {
    tally[record.phase, default: 0] += 1
    if record.phase.isActive { active.insert(record.generation) }
    guard record.phase == .waiting else { return }
    if let notBefore = record.notBefore {
      delayed.insert(Key(value: notBefore, generation: record.generation))
    } else {
      ready.insert(RankKey(rank: record.rank, arrival: record.arrival, generation: record.generation))
    }
  }

  private mutating func unindex(_ record: DownloadRecord) {
    tally[record.phase] = tally[record.phase].flatMap { $0 > 1 ? $0 - 1 : nil }
    active.remove(record.generation)
    guard record.phase == .waiting else { return }
    if let notBefore = record.notBefore {
      delayed.remove(Key(value: notBefore, generation: record.generation))
    } else {
      ready.remove(RankKey(rank: record.rank, arrival: record.arrival, generation: record.generation))
    }
  }

  /// Sets a lease; no index knows it.
  mutating func setLease(_ lease: Date, of generation: Int64) { entries[generation]?.lease = lease }

  // MARK: Adding and asking

  mutating func add(
    _ additions: [LedgerAddition], owner: String, at now: Date
  ) throws(DownloadError) -> [LedgerAddOutcome] {
    for addition in additions {
      guard let known = entry(addition.request.id)?.record, belongsElsewhere(known, addition), known.phase.isActive
      else { continue }
      throw DownloadError(
        .inUse, "“\(known.id)” is being downloaded to \(known.location ?? ""): wait until it has ended",
        stage: "MemoryLedger")
    }
    return additions.map { add($0, owner: owner, at: now) }
  }

  private func belongsElsewhere(_ known: DownloadRecord, _ addition: LedgerAddition) -> Bool {
    guard let old = known.location, let new = addition.location else { return false }
    return old != new
  }

  private mutating func add(_ addition: LedgerAddition, owner: String, at now: Date) -> LedgerAddOutcome {
    if let known = entry(addition.request.id)?.record {
      let isLost = known.phase == .finished && addition.lost != nil && known.steps.artifact == addition.lost
      if !isLost, !belongsElsewhere(known, addition) { return update(known, addition, owner: owner, at: now) }
      _ = delete(known.generation)
    }
    lastGeneration += 1
    let record = DownloadRecord(
      request: addition.request, generation: lastGeneration, arrival: addition.arrival, rank: addition.rank,
      location: addition.location, createdAt: now)
    insert(Entry(record: record, lease: nil, host: addition.request.host, addedBy: owner))
    return LedgerAddOutcome(isNew: true, record: record)
  }

  private mutating func update(
    _ known: DownloadRecord, _ addition: LedgerAddition, owner: String, at now: Date
  ) -> LedgerAddOutcome {
    update(known.generation) { entry in
      // The id stays as it was first written: equal ids can differ in their bytes.
      var request = addition.request
      request.id = known.id
      if entry.record.request.url != request.url { entry.record.awaited = nil }
      entry.record.request = request
      entry.record.rank = addition.rank
      entry.record.location = entry.record.location ?? addition.location
      entry.record.updatedAt = now
      entry.host = request.host
      entry.addedBy = owner
      entry.record.apply(.addedAgain)
    }
    return LedgerAddOutcome(isNew: false, record: entries[known.generation]?.record ?? known)
  }

  func records(_ query: LedgerQuery) -> [DownloadRecord] {
    func fits(_ record: DownloadRecord) -> Bool {
      query.phases?.contains(record.phase) ?? true && query.tag.map(record.request.tags.contains) ?? true
    }
    let offset = max(0, query.offset)
    let limit = max(0, query.limit)
    switch query.order {
    case .arrival:
      var found: [DownloadRecord] = []
      var left = offset
      guard limit > 0 else { return [] }
      arrivals.forEach { key in
        guard let record = entries[key.generation]?.record, fits(record) else { return true }
        if left > 0 { left -= 1 } else { found.append(record) }
        return found.count < limit
      }
      return found
    case .rank:
      let found = entries.values.lazy.map(\.record).filter(fits).sorted {
        ($0.rank, $0.arrival, $0.generation) < ($1.rank, $1.arrival, $1.generation)
      }
      return Array(found.dropFirst(offset).prefix(limit))
    case .latestChange:
      let found = entries.values.lazy.map(\.record).filter(fits).sorted {
        ($0.updatedAt, $0.generation) > ($1.updatedAt, $1.generation)
      }
      return Array(found.dropFirst(offset).prefix(limit))
    }
  }

  func counts(tag: String?) -> [DownloadState.Phase: Int] {
    guard let tag else { return tally }
    return entries.values.reduce(into: [:]) { counts, entry in
      if entry.record.request.tags.contains(tag) { counts[entry.record.phase, default: 0] += 1 }
    }
  }

  func nextDue(after now: Date) -> Date? {
    var due: Date?
    delayed.forEach(from: Key(value: now, generation: .max)) { key in
      if key.value > now, key.value <= now.furthestDue { due = key.value }
      return false
    }
    return due
  }

  // MARK: Claiming and saving

  /// Makes downloads ready whose time has come, or can only come from a clock that jumped.
  private mutating func promote(at now: Date) {
    var due: [Int64] = []
    delayed.forEach { key in
      guard key.value <= now else { return false }
      due.append(key.generation)
      return true
    }
    delayed.forEach(from: Key(value: now.furthestDue, generation: .max)) { key in
      due.append(key.generation)
      return true
    }
    for generation in due { update(generation) { $0.record.notBefore = nil } }
  }

  mutating func lease(_ request: LeaseRequest, owner: String) -> [DownloadRecord] {
    promote(at: request.now)
    var taken: [Int64] = []
    var skipped: Set<Candidate> = []
    ready.forEach { key in
      guard let entry = entries[key.generation], request.scope == .all || entry.addedBy == owner else { return true }
      if let here = request.location, let there = entry.record.location, here != there { return true }
      let wanted = entry.record.request
      let candidate = Candidate(
        host: entry.host, intent: wanted.intent, priority: wanted.priority, tags: wanted.tags)
      if skipped.contains(candidate) { return true }
      switch request.select(candidate) {
      case .take: taken.append(key.generation)
      case .skip: skipped.insert(candidate)
      case .stop: return false
      }
      return true
    }
    return taken.compactMap { generation in
      update(generation) { entry in
        entry.record.apply(.leased)
        entry.record.owner = owner
        entry.record.updatedAt = request.now
        entry.lease = request.until
      }
      return entries[generation]?.record
    }
  }

  mutating func save(_ record: DownloadRecord, _ fields: RecordFields, owner: String, at now: Date) -> Bool {
    guard let held = entry(record.id), held.record.generation == record.generation, held.record.owner == owner
    else { return false }
    update(record.generation) { entry in
      if fields.contains(.request) {
        entry.record.request = record.request
        entry.record.request.id = held.record.id
        entry.record.rank = record.rank
        entry.host = record.request.host
      }
      if fields.contains(.link) {
        entry.record.request.url = record.request.url
        entry.record.request.headers = record.request.headers
        entry.record.request.headStart = record.request.headStart
        entry.host = record.request.host
      }
      if fields.contains(.checkpoint) { entry.record.checkpoint = record.checkpoint }
      if fields.contains(.steps) { entry.record.steps = record.steps }
      if fields.contains(.state) {
        entry.record.phase = record.phase
        entry.record.notBefore = record.notBefore
        entry.record.awaited = record.awaited
        entry.record.error = record.error
        entry.record.attempts = record.attempts
        entry.record.consecutiveFailures = record.consecutiveFailures
        entry.record.repeatedFailures = record.repeatedFailures
        entry.record.bytesFetched = record.bytesFetched
        entry.record.resumedFrom = record.resumedFrom
        entry.record.wasInterrupted = record.wasInterrupted
        if !record.phase.isActive {
          entry.record.owner = nil
          entry.lease = nil
        }
      }
      entry.record.updatedAt = now
    }
    return true
  }

  mutating func rerank(_ rank: (RankingContext) -> Rank) {
    for (generation, entry) in entries where entry.record.phase == .waiting {
      let new = rank(entry.record.rankingContext)
      if new != entry.record.rank { update(generation) { $0.record.rank = new } }
    }
  }
}

extension DownloadRecord {
  /// The record as scheduling policies see it.
  package var rankingContext: RankingContext {
    RankingContext(
      id: request.id, priority: request.priority, intent: request.intent, arrival: arrival, createdAt: createdAt,
      expectedSize: request.expectedSize)
  }
}

extension Date {
  /// The latest time that a download can sensibly wait for: one beyond it comes from a clock that jumped,
  /// and counts as due. No back-off and no `Retry-After` is longer than a year.
  package var furthestDue: Date { addingTimeInterval(400 * 86_400) }
}
