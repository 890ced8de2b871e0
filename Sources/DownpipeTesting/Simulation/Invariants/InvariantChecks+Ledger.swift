@_spi(Ledger) import DownpipeCore
import Foundation
import Synchronization

// What a change of the ledger must not break: idleness, the lifecycle, the bytes that it claims, the limits.
extension InvariantChecks {
  /// Takes over what a change of the ledger has written.
  ///
  /// - Parameter ids: The changed downloads; `nil` for all.
  func ledgerHas(
    _ records: [DownloadRecord], _ ids: [DownloadID]?, after change: LedgerChange, _ process: SimulatedProcess
  ) {
    // By the clock of the world.
    let records = process.clockError == 0 ? records : records.map { $0.dueLater(by: -process.clockError) }
    let found = Dictionary(records.map { ($0.id, $0) }) { $1 }
    let all = ids ?? state.withLock { $0.order } + records.map(\.id)
    for id in Set(all).sorted(by: { $0.rawValue < $1.rawValue }) {
      let before = state.withLock { state -> DownloadRecord? in
        defer {
          state.records[id] = found[id]
          if let record = found[id] {
            if !state.order.contains(id) { state.order.append(id) }
            state.urls[id, default: []].formUnion([record.request.url] + record.request.mirrors)
          }
        }
        return state.records[id]
      }
      fetched.withLock { $0.ledgerHas(found[id], since: before, change, id) }
      guard let record = found[id] else { continue }
      if record.phase == .finished { release(by: id) }
      if let error = record.error, error != before?.error { world.coverage.count("failure: \(error.code.rawValue)") }
      checkLifecycle(from: before, to: record, change)
      checkDueTime(from: before, to: record)
      checkMachineFault(from: before, to: record, process)
      noteMovedBytes(from: before, to: record)
      if ids != nil { checkClaims(record) }
    }
    noteIdleness()
    if ids != nil { checkLimits(of: process, after: change, ids ?? []) }
  }

  /// Notes that downloads wait for another one no longer: the ledger changes their records when it has finished.
  private func release(by finished: DownloadID) {
    state.withLock { state in
      for id in state.order { state.records[id]?.waitsFor.remove(finished) }
    }
  }

  /// Notes whether a download runs or can start. The ledger is not asked, because its answer is what the engine relies on.
  private func noteIdleness() {
    state.withLock { state in
      let isBusy = state.records.values.contains { $0.phase.isActive || $0.isQueued }
      // It was idle until this change.
      if !isBusy || !state.isBusy { state.lastIdleStep = world.scheduler.steps }
      state.isBusy = isBusy
    }
  }

  /// Checks that there was nothing to do at some moment since `waitUntilIdle` was called, at a step.
  func checkIdle(since step: Int) {
    guard state.withLock({ $0.isBusy && $0.lastIdleStep <= step }) else { return }
    report(.idle, "waitUntilIdle returned, although downloads have been waiting or running since it was called")
  }

  private func checkLifecycle(from before: DownloadRecord?, to record: DownloadRecord, _ change: LedgerChange) {
    guard let before, before.generation == record.generation else { return }
    world.coverage.count("phase: \(before.phase.rawValue) → \(record.phase.rawValue)")
    // The ledger gives back what a dead owner held, in the change itself or before.
    let isLost = before.phase.isActive && before.owner.map { !isAlive(owner: $0) } ?? false
    let isLegal =
      Self.isLegal(change, from: before.phase, to: record) || isLost && Self.isLegal(change, from: .waiting, to: record)
    if !isLegal {
      report(.lifecycle, "\(record.id) went from \(before.phase) to \(record.phase) by \(change)")
    }
  }

  /// Checks that a download was due that was leased.
  private func checkDueTime(from before: DownloadRecord?, to record: DownloadRecord) {
    guard let before, before.generation == record.generation, before.phase == .waiting, record.phase.isActive,
      let due = before.notBefore
    else { return }
    // What is due within a microsecond counts as due. A ledger finds the difference of two clocks over a network.
    let tolerance = world.configuration.clockDifference == .zero ? 0.001 : 10
    // A calendar that was set makes times early or late that were noted before.
    guard !world.hasJumped, due.timeIntervalSince(world.date) > tolerance else { return }
    report(.dueTimes, "\(record.id) was leased \(due.timeIntervalSince(world.date)) seconds before it is due")
  }

  /// Notes that a run of a process has ended with a fault of its machine.
  func gaveBack(_ id: DownloadID, _ process: ObjectIdentifier) { state.withLock { $0.givenBack[id] = process } }

  private func checkMachineFault(from before: DownloadRecord?, to record: DownloadRecord, _ process: SimulatedProcess) {
    if let error = record.error, error.scope == .machine {
      report(.machineFaults, "\(record.id) is \(record.phase) after “\(error.message)”")
    }
    guard let before, before.phase != record.phase else { return }
    let givenBack = state.withLock { $0.givenBack.removeValue(forKey: record.id) }
    guard givenBack == ObjectIdentifier(process), before.generation == record.generation, before.phase.isActive else {
      return
    }
    let isAsBefore =
      record.attempts == before.attempts - 1 && record.consecutiveFailures == before.consecutiveFailures
      && record.repeatedFailures == before.repeatedFailures
    if record.phase == .waiting, !isAsBefore {
      report(.machineFaults, "\(record.id) has \(record.attempts) attempts, and had \(before.attempts) with that one")
    }
  }

  private func noteMovedBytes(from before: DownloadRecord?, to record: DownloadRecord) {
    let hadSteps = before.map { $0.steps.artifact != nil || $0.steps.note != nil } ?? false
    let isGivenUp = hadSteps && record.steps.artifact == nil && record.steps.note == nil
    state.withLock { state in
      if isGivenUp {
        state.movedBytes[record.id] = record.checkpoint.ranges
      } else if state.movedBytes[record.id]?.isSuperset(of: record.checkpoint.ranges) != true {
        state.movedBytes[record.id] = nil
      }
    }
  }

  private static func isLegal(
    _ change: LedgerChange, from phase: DownloadState.Phase, to record: DownloadRecord
  ) -> Bool {
    switch change {
    case .exchange(let saved, _) where saved.contains(record.id): phase.isActive
    case .lease: phase == .waiting && record.phase == .transferring
    case .exchange: phase == .waiting && record.phase == .transferring && record.waitsFor.isEmpty
    case .save: phase.isActive
    case .transition(let event): phase == record.phase || Lifecycle.next(phase, event) == record.phase
    case .removal, .other: true
    }
  }

  /// Checks that the bytes that a record claims are on the disk: for a loss of power, that they were flushed.
  func checkClaims(_ record: DownloadRecord) {
    guard state.withLock({ $0.usesDisk }), !record.checkpoint.ranges.isEmpty, record.phase != .finished,
      record.phase != .cancelled, record.steps.artifact == nil, record.refreshing == nil,
      record.request.headStart == nil, state.withLock({ $0.movedBytes[record.id] }) == nil
    else { return }
    let stored = disk.contents.partials[record.partialKey]
    let isForPower = world.configuration.durability == .power
    let bytes = isForPower ? stored?.durable : stored?.bytes
    let has = bytes?.ranges ?? ByteRangeSet()
    guard !has.isSuperset(of: record.checkpoint.ranges) || stored?.isNamed != true else { return }
    report(
      .claims,
      "the ledger claims \(Self.text(record.checkpoint.ranges)) of \(record.id) (\(record.phase)), but the disk has "
        + (stored == nil ? "no partial" : "\(stored?.isNamed == true ? "" : "without a name ")\(Self.text(has))"))
  }

  private static func text(_ ranges: ByteRangeSet) -> String {
    ranges.isEmpty
      ? "nothing" : "bytes " + ranges.ranges.map { "\($0.lowerBound)-\($0.upperBound - 1)" }.joined(separator: ", ")
  }

  // MARK: Limits

  /// Replaces the limits of a downloader by a call. The old ones are permitted, too, until it returns. A downloader that the
  /// process has closed meanwhile has no part in those of the next one.
  func replaceLimits(
    of process: SimulatedProcess, _ downloader: Downloader, by new: SimulatedLimits, _ call: () async -> Void
  ) async {
    guard process.downloader === downloader else { return await call() }
    let number = state.withLock { $0.limits[process.number]?.begin(new) }
    await call()
    guard process.isAlive, let number else { return }
    state.withLock { $0.limits[process.number]?.end(number) }
  }

  private func checkLimits(of process: SimulatedProcess, after change: LedgerChange, _ ids: [DownloadID]) {
    guard case .exchange(let saved, false) = change else { return }
    let (limits, records) = state.withLock { ($0.limits[process.number], $0.records) }
    let leased = ids.compactMap { records[$0] }.filter { $0.phase.isActive && !saved.contains($0.id) }
    guard let limits, let owner = leased.first?.owner else { return }
    let active = records.values.filter { $0.phase.isActive && $0.owner == owner }
    for record in leased {
      // One whose request has changed still works for the earlier one, until it stops.
      let sameHost = active.count { $0.request.host == record.request.host && !$0.isOutdated }
      guard active.count > limits.concurrent || sameHost > limits.perHost else { continue }
      report(
        .limits,
        "\(record.id) was leased although \(active.count) run, \(sameHost) of them from its host; the limits are "
          + "\(limits.concurrent) and \(limits.perHost)")
    }
  }
}
