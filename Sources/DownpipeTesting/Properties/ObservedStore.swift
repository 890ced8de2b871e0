@_spi(Ledger) import DownpipeCore
import Foundation
import Synchronization

/// The answers of a lease's `select`.
final class SelectionLog: Sendable {
  struct State: Sendable {
    var skipped: Set<Candidate> = []
    /// The candidates that the ledger need not offer again before an instant.
    var held: [Candidate: Duration] = [:]
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
        case .skip: state.skipped.insert(candidate.withoutSize)
        case .hold(let until): state.held[candidate.withoutSize] = until ?? .seconds(Int64.max)
        case .stop: state.isStopped = true
        }
      }
      return answer
    }
    return request
  }
}

/// The store of an ``ObservedLedger``.
struct ObservedStore: LedgerStoreWrapper {
  let base: any LedgerStore
  let ledger: ObservedLedger
  private let turns = Turns()

  init(base: any LedgerStore, ledger: ObservedLedger) {
    self.base = base
    self.ledger = ledger
  }

  func add(_ additions: [LedgerAddition], at now: Date, number: Int64?) async throws -> [LedgerAddOutcome] {
    try await turns.take {
      ledger.update { $0.ended.subtract(additions.map(\.request.id)) }
      return try await base.add(additions, at: now, number: number)
    }
  }

  func update(
    _ id: DownloadID, at now: Date, number: Int64?, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> DownloadRecord? {
    try await turns.take { try await base.update(id, at: now, number: number, change) }
  }

  func update(
    _ selection: LedgerSelection, at now: Date, number: Int64?,
    _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
  ) async throws -> LedgerBulkResult {
    try await turns.take { try await base.update(selection, at: now, number: number, change) }
  }

  func records(of ids: [DownloadID]) async throws -> [DownloadRecord] { try await base.records(of: ids) }

  func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
    try await turns.take {
      let leased = try await base.lease(request)
      noteForced(leased)
      return leased
    }
  }

  /// Notes a start by hand: neither the order nor the limits apply to it.
  private func noteForced(_ leased: [DownloadRecord]) {
    ledger.update { state in
      state.ended.subtract(leased.map(\.id))
      state.forced.formUnion(leased.map(\.id))
    }
  }

  func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
    try await turns.take {
      let isSaved = try await base.save(record, fields, at: now)
      note([LedgerSave(record, fields)], [isSaved])
      return isSaved
    }
  }

  /// Downloads whose requests have changed may run again after they have ended, and no others.
  private func noteReopened(_ exchange: LedgerExchange, _ saves: [LedgerSave]) async throws {
    for save in saves where exchange.reopened.contains(save.record.id) {
      guard let record = try await base.record(save.record.id),
        record.request.changesWork(begunFor: save.record.request)
      else { continue }
      ledger.update { $0.ended.remove(record.id) }
    }
  }

  func exchange(
    _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
  ) async throws -> LedgerExchange {
    try await turns.take {
      guard let request else {
        let exchange = try await base.exchange(saves, leasing: nil, at: now, number: number)
        note(saves, exchange.saved)
        try await noteReopened(exchange, saves)
        return exchange
      }
      if request.isByHand {
        let exchange = try await base.exchange(saves, leasing: request, at: now, number: number)
        note(saves, exchange.saved)
        try await noteReopened(exchange, saves)
        noteForced(exchange.leased)
        return exchange
      }
      let log = SelectionLog()
      ledger.begin(rulesVersion: request.rulesVersion)
      let exchange = try await base.exchange(saves, leasing: log.observing(request), at: now, number: number)
      note(saves, exchange.saved)
      try await noteReopened(exchange, saves)
      ledger.update { $0.forced.subtract(exchange.leased.map(\.id)) }
      ledger.hold(log.value.held)
      ledger.check(exchange.leased, log.value, of: request, try await base.records(DownloadQuery()))
      return exchange
    }
  }

  func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date, number: Int64?
  ) async throws -> LedgerBulkResult {
    try await turns.take {
      let result = try await base.transition(selection, event, at: now, number: number)
      let isEnd = Lifecycle.next(.waiting, event)?.isFinal == true
      ledger.update { isEnd ? $0.ended.formUnion(result.ids) : $0.ended.subtract(result.ids) }
      return result
    }
  }

  func remove(
    _ selection: LedgerSelection, number: Int64?,
    leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
  ) async throws -> LedgerRemoval {
    try await turns.take {
      let removed = Mutex<[DownloadID]>([])
      let removal = try await base.remove(
        selection, number: number,
        leaving: { record in
          let left = choose(record)
          if left != nil { removed.withLock { $0.append(record.id) } }
          return left
        })
      let ids = removed.withLock { $0 }
      ledger.update { $0.ended.subtract(ids) }
      return removal
    }
  }

  func reclaim(at now: Date) async throws -> Int { try await turns.take { try await base.reclaim(at: now) } }

  func rank(by ranking: Ranking) async throws {
    try await turns.take {
      ledger.update { $0.ranking = nil }
      try await base.rank(by: ranking)
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
