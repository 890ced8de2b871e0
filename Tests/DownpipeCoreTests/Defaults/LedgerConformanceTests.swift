import DownpipeCore
import DownpipeTesting
import Foundation
import Synchronization
import Testing

/// The suite finds what is broken: a right ledger with one fault each.
@Suite(.timeLimit(.minutes(1)))
struct LedgerConformanceTests {
  @Test(arguments: Fault.allCases)
  func findsTheFault(_ fault: Fault) async throws {
    let exclusions =
      fault == .namesAll
      ? [] : [ConformanceExclusion("transition-many", because: "ten thousand records for each fault take long")]
    let failure = await #expect(throws: ConformanceFailure.self) {
      try await LedgerConformance(excluding: exclusions) { FaultyLedger(fault: fault) }.run()
    }
    let broken = Set(failure?.brokenRules.map(\.rule) ?? [])
    #expect(fault.rules.isSubset(of: broken), "found \(broken.sorted()) only")
  }

  @Test func anExcludedRuleIsNotChecked() async throws {
    try await LedgerConformance(excluding: [
      ConformanceExclusion("owner-is-unique", because: "this test's ledger has one owner"),
      ConformanceExclusion("claim-once", because: "this test's ledger has one owner"),
    ]) { MemoryLedger() }.run()
  }
}

enum Fault: String, CaseIterable, Sendable {
  case sharesOwner, forgetsOnClose, addsTwice, revivesFinished, losesHeaders, repeatsGeneration
  case claimsEarly, claimsHeld, ignoresSkipHost, ignoresStop, keepsAttempts
  case savesAlways, savesEverything, keepsClaim, reclaimsNothing, reclaimsAll
  case movesHeld, namesAll, removesHeld, ignoresLimit, ignoresOrder, ignoresTag, findsOne, miscounts, neverDue
  case keepsRank

  /// Rules that must be found broken, among others.
  var rules: Set<String> {
    switch self {
    case .sharesOwner: ["owner-is-unique", "reclaim-lapsed"]
    case .forgetsOnClose: ["close-gives-back"]
    case .addsTwice: ["known-is-updated", "add-keeps-order"]
    case .revivesFinished: ["finished-stays"]
    case .losesHeaders: ["request-is-kept"]
    case .repeatsGeneration: ["generation-grows", "save-after-remove"]
    case .claimsEarly: ["not-before-is-honoured"]
    case .claimsHeld: ["claim-once", "claim-takes-over"]
    case .ignoresSkipHost, .ignoresStop: ["select-is-obeyed"]
    case .keepsAttempts: ["claim-takes-over"]
    case .savesAlways: ["save-needs-the-claim", "save-after-remove"]
    case .savesEverything: ["save-state-only", "save-checkpoint-only", "save-steps-only", "save-request-only"]
    case .keepsClaim: ["save-waiting-claim", "save-failed-claim"]
    case .reclaimsNothing, .reclaimsAll: ["reclaim-lapsed", "renewed-is-kept"]
    case .movesHeld: ["transition-leaves-held"]
    case .namesAll: ["transition-many"]
    case .removesHeld: ["remove-leaves-others"]
    case .ignoresLimit: ["remove-is-limited"]
    case .ignoresOrder: ["query-orders"]
    case .ignoresTag: ["query-filters", "odd-text-is-kept"]
    case .findsOne: ["query-ids"]
    case .miscounts: ["counts-are-right"]
    case .neverDue: ["next-due"]
    case .keepsRank: ["rerank"]
    }
  }
}

private struct FaultyLedger: Ledger {
  let fault: Fault
  let real = MemoryLedger()

  func open() async throws -> any LedgerStore {
    FaultyStore(fault: fault, ledger: real, real: try await real.open())
  }
}

private struct FaultyStore: LedgerStore {
  let fault: Fault
  let ledger: MemoryLedger
  let real: any LedgerStore

  var owner: String { fault == .sharesOwner ? "me" : real.owner }

  func add(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome] {
    var additions = additions
    if fault == .losesHeaders { for index in additions.indices { additions[index].request.headers = [] } }
    var outcomes = try await real.add(additions, at: now)
    for index in outcomes.indices {
      if fault == .addsTwice { outcomes[index].isNew = true }
      if fault == .repeatsGeneration { outcomes[index].record.generation = 1 }
      if fault == .revivesFinished, outcomes[index].record.phase == .finished {
        _ = try await real.transition(.ids([outcomes[index].record.id]), from: [.finished], to: .waiting, at: now)
      }
    }
    return outcomes
  }

  func record(_ id: DownloadID) async throws -> DownloadRecord? {
    var record = try await real.record(id)
    if fault == .repeatsGeneration { record?.generation = 1 }
    return record
  }

  func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
    try await real.records(of: fault == .findsOne ? Array(ids.prefix(1)) : ids)
  }

  func records(_ query: LedgerQuery) async throws -> [DownloadRecord] {
    var query = query
    if fault == .ignoresOrder { query.order = .arrival }
    if fault == .ignoresTag { query.tag = nil }
    return try await real.records(query)
  }

  func counts(tag: String?) async throws -> [DownloadState.Phase: Int] {
    try await real.counts(tag: fault == .miscounts ? nil : tag)
  }

  func claim(
    at now: Date, lease: Date, select: @escaping @Sendable (Candidate) -> ClaimSelection
  ) async throws -> [DownloadRecord] {
    if fault == .claimsHeld { _ = try await real.reclaim(at: .distantFuture) }
    let stopped = Mutex(false)
    let fault = fault
    var records = try await real.claim(at: fault == .claimsEarly ? now.addingTimeInterval(3_600) : now, lease: lease) {
      candidate in
      if fault == .ignoresStop, stopped.withLock({ $0 }) { return .take }
      let selection = select(candidate)
      if fault == .ignoresSkipHost, selection == .skipHost { return .skip }
      if fault == .ignoresStop, selection == .stop {
        stopped.withLock { $0 = true }
        return .skip
      }
      return selection
    }
    if fault == .keepsAttempts { for index in records.indices { records[index].attempts = 0 } }
    if fault == .repeatsGeneration { for index in records.indices { records[index].generation = 1 } }
    return records
  }

  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
    var record = record
    if fault == .repeatsGeneration, let known = try await real.record(record.id) {
      record.generation = known.generation
    }
    let all: RecordFields = [.state, .checkpoint, .steps, .request]
    if fault == .keepsClaim {
      return try await real.save(record, fields.subtracting(.state), at: now)
    }
    let saved = try await real.save(record, fault == .savesEverything ? all : fields, at: now)
    return fault == .savesAlways ? true : saved
  }

  func transition(
    _ selection: LedgerSelection, from phases: Set<DownloadState.Phase>, to phase: DownloadState.Phase, at now: Date
  ) async throws -> LedgerTransitionResult {
    if fault == .movesHeld { _ = try await real.reclaim(at: .distantFuture) }
    var result = try await real.transition(selection, from: phases, to: phase, at: now)
    if fault == .namesAll, result.count > result.ids.count { result.ids.append("one more") }
    return result
  }

  func remove(_ selection: LedgerSelection, limit: Int) async throws -> [DownloadRecord] {
    if fault == .removesHeld { _ = try await real.reclaim(at: .distantFuture) }
    return try await real.remove(selection, limit: fault == .ignoresLimit ? .max : limit)
  }

  func renewLeases(until lease: Date) async throws { try await real.renewLeases(until: lease) }

  func reclaim(at now: Date) async throws -> Int {
    switch fault {
    case .reclaimsNothing: 0
    case .reclaimsAll: try await real.reclaim(at: .distantFuture)
    default: try await real.reclaim(at: now)
    }
  }

  func nextDue(after now: Date) async throws -> Date? {
    fault == .neverDue ? nil : try await real.nextDue(after: now)
  }

  func rerank(_ rank: @escaping @Sendable (RankingContext) -> Rank) async throws {
    if fault != .keepsRank { try await real.rerank(rank) }
  }

  func close() async throws {
    if fault == .forgetsOnClose { try await real.renewLeases(until: .distantFuture) } else { try await real.close() }
  }
}
