@_spi(Ledger) import DownpipeCore
import Foundation
import Synchronization

/// A ledger that checks each lease of a simulated queue: the order, the limits, and the bound of the policy.
///
/// Its store performs one call at a time, so that what a lease took can be compared with what it left.
final class ObservedLedger: Ledger {
  struct State: Sendable {
    /// The ranking in force; `nil` while it is replaced.
    var ranking: Ranking?
    /// How much later a download may be added and still go first; `nil` if there is no bound.
    var bound: (@Sendable (RankingContext) -> Duration?)?
    /// The limits in force.
    var limits: QueueLimits
    /// The downloads that have ended since they were last added, resumed or restarted.
    var ended: Set<DownloadID> = []
    /// The downloads whose last lease was a start by hand.
    var forced: Set<DownloadID> = []
    /// The candidates that the ledger need not offer before an instant, while leases have the same version of the rules.
    var held: [Candidate: Duration] = [:]
    var rulesVersion = 0
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

  func begin(rulesVersion: Int) {
    update { state in
      if rulesVersion != state.rulesVersion { (state.rulesVersion, state.held) = (rulesVersion, [:]) }
    }
  }

  func hold(_ candidates: [Candidate: Duration]) { update { $0.held.merge(candidates) { $1 } } }

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
  func check(
    _ leased: [DownloadRecord], _ log: SelectionLog.State, of request: LeaseRequest, _ all: [DownloadRecord]
  ) {
    let state = current
    let now = request.now
    let held = state.held.filter { $0.value > request.instant }
    let keys = leased.map(Key.init)
    if keys != keys.sorted() {
      violations.add(.order, "\(names(leased)) were leased in this order, which is not that of their ranks")
    }
    let left = all.filter {
      $0.phase == .waiting && $0.waitsFor.isEmpty && ($0.notBefore ?? now) <= now
        && !log.skipped.contains($0.candidate.withoutSize) && held[$0.candidate.withoutSize] == nil
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

  /// The running downloads that limits should stop: those that do not fit beside the ones that go before them.
  func stops(by limits: QueueLimits, of records: [DownloadRecord]) -> Set<DownloadID>? {
    let state = current
    guard let ranking = state.ranking else { return nil }
    let active = records.filter(\.phase.isActive).map { record in
      // The size counts from the moment at which the server has stated it, which the ledger may learn later.
      var context = record.rankingContext
      let announced = QueueSource.announcedSize(of: record.id)
      if announced != .unknown { context.size = announced }
      return (record: record, key: Key(record, rank: ranking.rank(context)), isForced: state.forced.contains(record.id))
    }
    var running = RunningDownloads()
    var stopped: Set<DownloadID> = []
    // What was started by hand comes first.
    for run in active.sorted(by: { $0.isForced == $1.isForced ? $0.key < $1.key : $0.isForced }) {
      if limits.admit(run.record.candidate, beside: running) {
        running.insert(run.record.candidate)
      } else {
        stopped.insert(run.record.id)
      }
    }
    return stopped
  }

  private func names(_ records: [DownloadRecord]) -> String { records.map(\.id.rawValue).joined(separator: ", ") }

  private struct Key: Comparable {
    let rank: Rank
    let arrival: Int64
    let generation: Int64

    init(_ record: DownloadRecord) { self.init(record, rank: record.rank) }

    init(_ record: DownloadRecord, rank: Rank) {
      (self.rank, arrival, generation) = (rank, record.arrival, record.generation)
    }

    static func < (left: Self, right: Self) -> Bool {
      (left.rank, left.arrival, left.generation) < (right.rank, right.arrival, right.generation)
    }
  }
}

extension Rank {
  fileprivate var hexadecimal: String { String(value, radix: 16) }
}
