import DownpipeCore
import Foundation
import Synchronization

/// A ledger that checks each lease of a simulated queue: the order, the limits, and the bound of the policy.
///
/// Its store performs one call at a time, so that what a lease took can be compared with what it left.
final class ObservedLedger: Ledger {
  struct State: Sendable {
    /// The ranking in force.
    var ranking: Ranking?
    /// How much later a download may be added and still go first; `nil` if there is no bound.
    var bound: (@Sendable (RankingContext) -> Duration?)?
    /// The limits in force.
    var limits: QueueLimits
    /// The downloads that have ended since they were last added, resumed or restarted.
    var ended: Set<DownloadID> = []
    var store: (any LedgerStore)?
  }

  let base: any Ledger
  let violations: ViolationLog
  private let state: Mutex<State>

  init(_ base: any Ledger, limits: QueueLimits, violations: ViolationLog) {
    self.base = base
    self.violations = violations
    state = Mutex(State(limits: limits))
  }

  var name: String { base.name }

  func open() async throws -> any LedgerStore {
    let store = try await base.open()
    update { $0.store = store }
    return ObservedStore(base: store, ledger: self)
  }

  func update(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }

  var current: State { state.withLock { $0 } }

  /// The records, read without waiting for other calls.
  func records() async throws -> [DownloadRecord] {
    guard let store = current.store else { return [] }
    return try await store.records(DownloadQuery())
  }

  // MARK: Checks

  /// Checks that ranks are those of the policy, and that the records agree with what has ended.
  func check(_ records: [DownloadRecord]) throws {
    guard let ranking = current.ranking else { return }
    for record in records where [.waiting, .paused, .failed].contains(record.phase) {
      let rank = ranking.rank(record.rankingContext)
      guard record.rank != rank else { continue }
      throw Violation(
        property: .ranks,
        text: "\(record.id) has the rank \(record.rank.hexadecimal), but “\(ranking.name)” gives it "
          + "\(rank.hexadecimal), for \(record.rankingContext)")
    }
  }

  /// Checks what a lease took, compared with what it left.
  fileprivate func check(_ leased: [DownloadRecord], _ log: SelectionLog.State, at now: Date, _ all: [DownloadRecord]) {
    let state = current
    let keys = leased.map(Key.init)
    if keys != keys.sorted() {
      violations.add(.order, "\(names(leased)) were leased in this order, which is not that of their ranks")
    }
    let left = all.filter {
      $0.phase == .waiting && ($0.notBefore ?? now) <= now && !log.skipped.contains($0.candidate)
    }
    for record in left {
      if !log.isStopped {
        violations.add(.slots, "the ledger did not offer \(record.id) to a lease, although it waits and is due")
      } else if let last = keys.max(), Key(record) < last {
        violations.add(.order, "\(names(leased)) were leased before \(record.id), whose rank is smaller")
      }
      for first in leased { checkBound(first, before: record, state) }
    }
    let ids = Set(leased.map(\.id))
    var running = RunningDownloads()
    for record in all where record.phase.isActive && !ids.contains(record.id) { running.insert(record.candidate) }
    for record in leased {
      if !state.limits.admit(record.candidate, beside: running) {
        violations.add(.limits, "\(record.id) was leased beside \(running.total) others, with \(state.limits)")
      }
      if state.ended.contains(record.id) {
        violations.add(.ending, "\(record.id) was leased although it had ended")
      }
      running.insert(record.candidate)
    }
  }

  private func checkBound(_ first: DownloadRecord, before record: DownloadRecord, _ state: State) {
    guard let bound = state.bound?(record.rankingContext) else { return }
    let wait = Duration.seconds(first.createdAt.timeIntervalSince(record.createdAt))
    guard wait > bound else { return }
    violations.add(
      .bound, "\(first.id) was leased before \(record.id), which was added \(wait) earlier; the bound is \(bound)")
  }

  private func names(_ records: [DownloadRecord]) -> String { records.map(\.id.rawValue).joined(separator: ", ") }

  private struct Key: Comparable {
    let rank: Rank
    let arrival: Int64
    let generation: Int64

    init(_ record: DownloadRecord) { (rank, arrival, generation) = (record.rank, record.arrival, record.generation) }

    static func < (left: Self, right: Self) -> Bool {
      (left.rank, left.arrival, left.generation) < (right.rank, right.arrival, right.generation)
    }
  }
}

extension Rank {
  fileprivate var hexadecimal: String { String(value, radix: 16) }
}

/// The answers of a lease's `select`.
private final class SelectionLog: Sendable {
  struct State: Sendable {
    var skipped: Set<Candidate> = []
    var isStopped = false
  }
  private let state = Mutex(State())

  var value: State { state.withLock { $0 } }

  func observing(_ request: LeaseRequest) -> LeaseRequest {
    var request = request
    let select = request.select
    request.select = { candidate in
      let answer = select(candidate)
      self.state.withLock { state in
        switch answer {
        case .take: break
        case .skip, .hold: state.skipped.insert(candidate)
        case .stop: state.isStopped = true
        }
      }
      return answer
    }
    return request
  }
}

private struct ObservedStore: LedgerStoreWrapper {
  let base: any LedgerStore
  let ledger: ObservedLedger
  private let turns = Turns()

  init(base: any LedgerStore, ledger: ObservedLedger) {
    self.base = base
    self.ledger = ledger
  }

  func add(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome] {
    try await turns.take {
      ledger.update { $0.ended.subtract(additions.map(\.request.id)) }
      return try await base.add(additions, at: now)
    }
  }

  func update(
    _ id: DownloadID, at now: Date, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> DownloadRecord? {
    try await turns.take { try await base.update(id, at: now, change) }
  }

  func update(
    _ selection: LedgerSelection, at now: Date, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> LedgerBulkResult {
    try await turns.take { try await base.update(selection, at: now, change) }
  }

  func records(of ids: [DownloadID]) async throws -> [DownloadRecord] { try await base.records(of: ids) }

  func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
    try await turns.take {
      let leased = try await base.lease(request)
      // A start by hand: neither the order nor the limits apply to it.
      ledger.update { $0.ended.subtract(leased.map(\.id)) }
      return leased
    }
  }

  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
    try await turns.take {
      let isSaved = try await base.save(record, fields, at: now)
      note([LedgerSave(record, fields)], [isSaved])
      return isSaved
    }
  }

  func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date
  ) async throws -> LedgerExchange {
    try await turns.take {
      guard let request else {
        let exchange = try await base.exchange(saves, leasing: nil, at: now)
        note(saves, exchange.saved)
        return exchange
      }
      let log = SelectionLog()
      let exchange = try await base.exchange(saves, leasing: log.observing(request), at: now)
      note(saves, exchange.saved)
      ledger.check(exchange.leased, log.value, at: request.now, try await base.records(DownloadQuery()))
      return exchange
    }
  }

  func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
  ) async throws -> LedgerBulkResult {
    try await turns.take {
      let result = try await base.transition(selection, event, at: now)
      let isEnd = Lifecycle.next(.waiting, event)?.isFinal == true
      ledger.update { isEnd ? $0.ended.formUnion(result.ids) : $0.ended.subtract(result.ids) }
      return result
    }
  }

  func remove(
    _ selection: LedgerSelection, _ choose: @escaping @Sendable (DownloadRecord) -> Bool
  ) async throws -> Int {
    try await turns.take {
      let removed = Mutex<[DownloadID]>([])
      let count = try await base.remove(selection) { record in
        let isChosen = choose(record)
        if isChosen { removed.withLock { $0.append(record.id) } }
        return isChosen
      }
      let ids = removed.withLock { $0 }
      ledger.update { $0.ended.subtract(ids) }
      return count
    }
  }

  func reclaim(at now: Date) async throws -> Int { try await turns.take { try await base.reclaim(at: now) } }

  func rank(by ranking: Ranking) async throws {
    try await turns.take {
      ledger.update { $0.ranking = nil }
      try await base.rank(by: ranking)
      ledger.update { $0.ranking = ranking }
    }
  }

  func close() async throws { try await turns.take { try await base.close() } }

  /// Notes the downloads that have ended.
  private func note(_ saves: [LedgerSave], _ saved: [Bool]) {
    for (save, isSaved) in zip(saves, saved)
    where isSaved && save.fields.contains(.state) && save.record.phase.isFinal {
      let id = save.record.id
      if ledger.current.ended.contains(id) { ledger.violations.add(.ending, "\(id) ended twice") }
      ledger.update { _ = $0.ended.insert(id) }
    }
  }
}

/// Performs one piece of work at a time, in the order of arrival.
private final class Turns: Sendable {
  private struct State {
    var isTaken = false
    var waiters: [CheckedContinuation<Void, Never>] = []
  }
  private let state = Mutex(State())

  func take<Result>(_ work: () async throws -> Result) async rethrows -> Result {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        if state.isTaken { state.waiters.append(continuation) }
        defer { state.isTaken = true }
        return !state.isTaken
      }
      if isFree { continuation.resume() }
    }
    defer {
      let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
        guard !state.waiters.isEmpty else {
          state.isTaken = false
          return nil
        }
        return state.waiters.removeFirst()
      }
      next?.resume()
    }
    return try await work()
  }
}
