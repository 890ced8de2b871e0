@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

/// The suite finds faults: each case is a correct ledger with one fault.
@Suite(.endsHangs)
struct LedgerConformanceTests {
  @Test(arguments: Fault.allCases)
  func findsTheFault(_ fault: Fault) async throws {
    // The rule needs thousands of records, or waits for a notification that never comes.
    let exclusions = [
      "transition-many", "update-all-many", "ranking-many", "ranking-last-counts", "query-all", "changes-by-others",
    ]
    .filter { !fault.rules.contains($0) }
    .map { ConformanceExclusion($0, because: "it would take too long for each fault") }
    let failure = await #expect(throws: ConformanceFailure.self) {
      var suite = LedgerConformance(excluding: exclusions) { FaultyLedger(fault: fault) }
      // In the long form also that the other rules end.
      if !LongForm.isSelected { suite.only = fault.rules }
      try await suite.run()
    }
    let broken = Set(failure?.brokenRules.map(\.rule) ?? [])
    #expect(fault.rules.isSubset(of: broken), "the suite reported only \(broken.sorted())")
  }

  @Test func anExcludedRuleIsNotChecked() async throws {
    try await LedgerConformance(excluding: [
      ConformanceExclusion("owner-is-unique", because: "this test's ledger has one owner"),
      ConformanceExclusion("lease-once", because: "this test's ledger has one owner"),
    ]) { MemoryLedger() }.run()
  }
}

private final class FaultyLedger: Ledger {
  let fault: Fault
  private let real = MemoryLedger()
  private let stores = Mutex<[Held]>([])

  init(fault: Fault) { self.fault = fault }

  private struct Held: Sendable {
    weak var store: FaultyStore?
  }

  func open() async throws -> any LedgerStore {
    let store = FaultyStore(fault: fault, ledger: self, real: try await real.open())
    stores.withLock { $0.append(Held(store: store)) }
    return store
  }

  /// Takes all downloads from their owners.
  func takeAll() async throws {
    for held in stores.withLock({ $0 }) { try await held.store?.replace(with: try await real.open()) }
  }
}

private final class FaultyStore: LedgerStoreWrapper {
  let fault: Fault
  let ledger: FaultyLedger
  private let present: Mutex<any LedgerStore>
  private let hasRanked = Atomic(false)
  private let held = Mutex<Set<Candidate>>([])

  init(fault: Fault, ledger: FaultyLedger, real: any LedgerStore) {
    self.fault = fault
    self.ledger = ledger
    present = Mutex(real)
  }

  var base: any LedgerStore { present.withLock { $0 } }

  func replace(with store: any LedgerStore) async throws {
    let old = present.withLock { present in
      defer { present = store }
      return present
    }
    try await old.close()
  }

  var owner: String { fault == .sharesOwner ? "me" : base.owner }

  func add(_ additions: [LedgerAddition], at now: Date, number: Int64?) async throws -> [LedgerAddOutcome] {
    var additions = additions
    for index in additions.indices {
      if fault == .losesHeaders { additions[index].request.headers = [] }
      if fault == .ignoresAfter { additions[index].request.after = [] }
      if fault == .forgetsLost { additions[index].lost = nil }
      if fault == .forgetsLocation { additions[index].location = nil }
      if fault == .keepsNothing { additions[index].ifKnown = .update }
      if fault == .overwrites {
        let request = additions[index].request
        _ = try await base.update(request.id, at: now) { record in
          record.request = request
          record.added = nil
        }
      }
    }
    var outcomes = try await base.add(additions, at: now, number: seen(number))
    for index in outcomes.indices {
      if fault == .addsTwice { outcomes[index].isNew = true }
      if fault == .repeatsGeneration { outcomes[index].record.generation = 1 }
      if fault == .revivesCancelled, outcomes[index].record.phase == .cancelled {
        _ = try await base.transition(.ids([outcomes[index].record.id]), .restart, at: now)
      }
      if fault == .revivesFinished, outcomes[index].record.phase == .finished {
        _ = try await base.transition(.ids([outcomes[index].record.id]), .artifactLost, at: now)
      }
    }
    return outcomes
  }

  func restore(_ records: [DownloadRecord], at now: Date) async throws -> [Bool] {
    switch fault {
    case .restoresAdded:
      let additions = records.map { LedgerAddition(request: $0.request, arrival: $0.arrival, location: $0.location) }
      return try await base.add(additions, at: now).map(\.isNew)
    case .restoresOver:
      _ = try await base.remove(.ids(records.map(\.id)))
      return try await base.restore(records, at: now)
    case .restoresBackwards: return try await base.restore(records.reversed(), at: now).reversed()
    case .restoresWithoutOrder:
      return try await base.restore(records.map { $0.with { $0.waitsFor = [] } }, at: now)
    default: return try await base.restore(records, at: now)
    }
  }

  func records(after generation: Int64, limit: Int) async throws -> [DownloadRecord] {
    guard fault == .readsPagesByArrival else { return try await base.records(after: generation, limit: limit) }
    let later = try await base.records(DownloadQuery()).filter { $0.generation > generation }
    return Array(later.prefix(limit))
  }

  func record(_ id: DownloadID) async throws -> DownloadRecord? {
    var record = try await base.record(id)
    if fault == .repeatsGeneration { record?.generation = 1 }
    if fault == .staysInterrupted, record?.attempts ?? 0 > 0 { record?.wasInterrupted = true }
    return record
  }

  func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
    try await base.records(of: fault == .findsOne ? Array(ids.prefix(1)) : ids)
  }

  func records(_ query: DownloadQuery) async throws -> [DownloadRecord] {
    var query = query
    if fault == .ignoresOrder { query.order = .arrival }
    query.filter = seen(query.filter)
    if fault == .ignoresTag { query.filter.tag = nil }
    if fault == .ignoresLocation { query.location = nil }
    if fault == .pages { query.limit = query.limit ?? 1_000 }
    return try await base.records(query)
  }

  func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int] {
    try await base.counts(fault == .miscounts ? .all : seen(filter))
  }

  /// A filter without the condition that the fault ignores.
  private func seen(_ filter: DownloadFilter) -> DownloadFilter {
    var filter = filter
    if fault == .ignoresHost { filter.host = nil }
    if fault == .ignoresIntent { filter.intent = nil }
    if fault == .ignoresPhases { filter.phases = nil }
    return filter
  }

  private func seen(_ selection: LedgerSelection) -> LedgerSelection {
    if case .matching(let filter) = selection { .matching(seen(filter)) } else { selection }
  }

  private func seen(_ number: Int64?) -> Int64? { fault == .makesChangesAgain ? nil : number }

  func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
    if fault == .leasesHeld { try await ledger.takeAll() }
    if fault == .leasesDependents {
      for record in try await base.records(DownloadQuery()) where !record.waitsFor.isEmpty {
        _ = try await base.update(record.id, at: record.updatedAt) { $0.request.after = [] }
      }
    }
    let stopped = Mutex(false)
    let (fault, select) = (fault, request.select)
    var request = request
    if fault == .leasesEarly { request.now += 3_600 }
    switch (request.scope, fault) {
    case (.own, .ignoresScope), (.tag, .ignoresTagScope), (.ids, .ignoresIDScope): request.scope = .all
    default: break
    }
    if fault == .ignoresLocation { request.location = nil }
    if fault == .ignoresPrecedence { request.order = nil }
    request.select = { candidate in
      if fault == .ignoresStop, stopped.withLock({ $0 }) { return .take }
      if fault == .asksTwice { _ = select(candidate) }
      if fault == .holdsForever, self.held.withLock({ $0.contains(candidate) }) { return .skip }
      let selection = select(candidate)
      if case .hold = selection { self.held.withLock { _ = $0.insert(candidate) } }
      if fault == .ignoresSkip, selection == .skip { return .take }
      if fault == .ignoresStop, selection == .stop {
        stopped.withLock { $0 = true }
        return .skip
      }
      return selection
    }
    var records = try await base.lease(request)
    if fault == .keepsAttempts { for index in records.indices { records[index].attempts = 0 } }
    if fault == .repeatsGeneration { for index in records.indices { records[index].generation = 1 } }
    return records
  }

  func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
  ) async throws -> LedgerExchange {
    var exchange = LedgerExchange()
    if fault == .leasesFirst, let request { exchange.leased = try await lease(request) }
    for save in saves { exchange.saved.append(try await self.save(save.record, save.fields, at: now)) }
    exchange.mayHaveReleasedDelayed = fault != .hidesDelays
    if fault != .leasesFirst, let request { exchange.leased = try await lease(request) }
    return exchange
  }

  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
    var record = record
    if fault == .repeatsGeneration, let known = try await base.record(record.id) {
      record.generation = known.generation
    }
    let all: RecordFields = [.state, .checkpoint, .steps, .link]
    if fault == .keepsLease {
      return try await base.save(record, fields.subtracting(.state), at: now)
    }
    if fault == .neverReleases, record.phase == .finished, let known = try await base.record(record.id) {
      // The dependents wait for a download that never finishes.
      let dependents = try await base.records(DownloadQuery()).filter { $0.waitsFor.contains(known.id) }
      for dependent in dependents { _ = try await base.update(dependent.id, at: now) { $0.request.after = ["never"] } }
    }
    let saved = try await base.save(record, fault == .savesEverything ? all : fields, at: now)
    return fault == .savesAlways ? true : saved
  }

  func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date, number: Int64?
  ) async throws -> LedgerBulkResult {
    if fault == .movesHeld { try await ledger.takeAll() }
    let now = fault == .movesSilently ? Date(timeIntervalSince1970: 0) : now
    var result = try await base.transition(seen(selection), event, at: now, number: seen(number))
    if fault == .namesAll, result.count > result.ids.count { result.ids.append("one more") }
    return result
  }

  func remove(
    _ selection: LedgerSelection, number: Int64?,
    leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
  ) async throws -> LedgerRemoval {
    if fault == .removesHeld { try await ledger.takeAll() }
    let fault = fault
    return try await base.remove(
      seen(selection), number: seen(number),
      leaving: { record in
        let left = choose(record) ?? (fault == .ignoresChoice ? LedgerDeletion(id: record.id) : nil)
        return fault == .forgetsLeft ? left.map { LedgerDeletion(id: $0.id) } : left
      })
  }

  func forget(deletions numbers: [Int64]) async throws {
    if fault != .keepsLeft { try await base.forget(deletions: numbers) }
  }

  func update(
    _ selection: LedgerSelection, at now: Date, number: Int64?,
    _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> LedgerBulkResult {
    let fault = fault
    let calls = Mutex(0)
    let refusal = Mutex<(any Error)?>(nil)
    let result = try await base.update(seen(selection), at: now, number: seen(number)) { record in
      let call = calls.withLock { calls in
        calls += 1
        return calls
      }
      if fault == .updatesOne, call > 1 { return }
      guard fault == .updatesUntilRefused else { return try change(&record) }
      let before = record
      do { try change(&record) } catch {
        record = before
        refusal.withLock { $0 = error }
      }
    }
    if let error = refusal.withLock({ $0 }) { throw error }
    return result
  }

  func leaseRates(_ wants: [RateWant], for duration: Duration, at now: Date) async throws -> [RateShare] {
    switch fault {
    case .leasesWholeRate:
      return wants.map { RateShare(bytesPerSecond: min($0.wanted, $0.rate.bytesPerSecond), validity: duration) }
    case .confusesRates:
      return try await base.leaseRates(wants.sorted { $0.key < $1.key }, for: duration, at: now)
    case .endsSharesEarly:
      return try await base.leaseRates(wants, for: duration / 1_000, at: now).map {
        RateShare(bytesPerSecond: $0.bytesPerSecond, validity: duration)
      }
    default: return try await base.leaseRates(wants, for: duration, at: now)
    }
  }

  func reclaim(at now: Date) async throws -> Int {
    switch fault {
    case .reclaimsNothing: return 0
    case .reclaimsAll:
      let before = try await base.counts(.all)[.transferring] ?? 0
      try await ledger.takeAll()
      return before
    default: return try await base.reclaim(at: now)
    }
  }

  func nextDue(after now: Date) async throws -> Date? {
    fault == .neverDue ? nil : try await base.nextDue(after: now)
  }

  func isBusy() async throws -> Bool { fault == .alwaysBusy ? true : try await base.isBusy() }

  func rank(by ranking: Ranking) async throws {
    switch fault {
    case .keepsRank: break
    case .forgetsRanking: try await base.rank(by: Ranking(name: "\(DownloadID())", rank: ranking.rank))
    case .ranksOnce:
      if !hasRanked.exchange(true, ordering: .relaxed) { try await base.rank(by: ranking) }
    case .ranksWaitingOnly:
      let others = try await base.records(DownloadQuery()).filter { $0.phase != .waiting }
      let ranks = Dictionary(uniqueKeysWithValues: others.map { ($0.id, $0.rank) })
      try await base.rank(by: Ranking(name: ranking.name) { ranks[$0.id] ?? ranking.rank($0) })
    default: try await base.rank(by: ranking)
    }
  }

  func keep(settings: Data) async throws {
    if fault != .forgetsSettings { try await base.keep(settings: settings) }
  }

  func update(
    _ id: DownloadID, at now: Date, number: Int64?, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> DownloadRecord? {
    let fault = fault
    if fault == .updatesAll { try await ledger.takeAll() }
    let now = fault == .updatesSilently ? Date(timeIntervalSince1970: 0) : now
    let updated = try await base.update(id, at: now, number: seen(number)) {
      if fault == .losesRefusal { try? change(&$0) } else { try change(&$0) }
    }
    // Replaces the request as added by the current request.
    return fault == .loses ? try await base.update(id, at: now) { $0.added = nil } : updated
  }

  func totals(_ filter: DownloadFilter) async throws -> DownloadTotals {
    var totals = try await base.totals(seen(filter))
    if fault == .sumsCancelled { totals.expected += Int64(totals.counts[.cancelled] ?? 0) }
    return totals
  }

  func unsettledMoves() async throws -> [DownloadRecord] {
    fault == .findsNoMoves ? [] : try await base.unsettledMoves()
  }

  var changesByOthers: AsyncStream<Void>? {
    guard fault == .hearsNothing else { return base.changesByOthers }
    return AsyncStream { $0.finish() }
  }

  func close() async throws {
    if fault != .forgetsOnClose { try await base.close() }
  }
}

extension DownloadRecord {
  fileprivate func with(_ change: (inout DownloadRecord) -> Void) -> DownloadRecord {
    var copy = self
    change(&copy)
    return copy
  }
}
