@_spi(Ledger) import DownpipeCore
import Foundation

/// A downloader with fakes for its other stages, on which a sequence of operations is performed.
actor QueueSimulation {
  /// The stages that are tested.
  struct Subject: Sendable {
    var policy: @Sendable () -> any SchedulingPolicy
    var limits: @Sendable (QueueLimits) -> any AdmissionPolicy
    var ledger: @Sendable () async throws -> any Ledger
    var bound: (@Sendable (RankingContext) -> Duration?)?
    /// Wraps the gate, for tests of the property.
    var gate: @Sendable (FakeGate) -> any Gate = { $0 }
    /// Changes what happens to downloads beyond lowered limits, for tests of the property.
    var excess: @Sendable (Excess) -> Excess = { $0 }
  }

  private static let firstLimits = QueueLimits(concurrent: 3, perHost: 2, even: 2)
  private let subject: Subject
  let violations = ViolationLog()
  let time = VirtualTime()
  private let start: Date
  let storage = FakeStorage()
  let gate = FakeGate()
  let source: QueueSource
  let ledger: ObservedLedger
  var downloader: Downloader
  var limits = firstLimits
  private var isByArrival = false
  var isGateOpen = true
  var isSuspended = false
  /// Whether more may run than the limits permit: a download was started by hand since they were set, or those that ran
  /// beyond them may finish.
  var mayExceed = false
  /// Whether the last operation was ``QueueOperation/settle``.
  private var hasSettled = false

  /// How long to wait for the engine to settle.
  let patience: Duration

  init(_ subject: Subject, patience: Duration) async throws {
    self.subject = subject
    self.patience = patience
    start = time.date
    source = QueueSource(limits: Self.firstLimits, violations: violations)
    ledger = ObservedLedger(try await subject.ledger(), limits: Self.firstLimits, violations: violations)
    downloader = try await Self.open(source, subject.gate(gate), storage, ledger, time)
    try await setUp()
  }

  /// Opens a downloader that starts nothing until it is set up.
  private static func open(
    _ source: QueueSource, _ gate: any Gate, _ storage: FakeStorage, _ ledger: ObservedLedger, _ time: VirtualTime
  ) async throws -> Downloader {
    let options = DownloaderOptions(
      time: time, random: { 0.5 }, resumeValidation: .overlap(1_000), minimumSpeed: nil, startsSuspended: true)
    return try await Downloader(options: options) {
      source
      gate
      FakeRetryPolicy { failure in
        switch failure.attempts % 3 {
        case 0: .giveUp
        case 1: .resume(after: .zero)
        default: .restart(after: .seconds(1))
        }
      }
      storage
      ledger
    }
  }

  private func setUp() async throws {
    await replaceLimits()
    try await replacePolicy()
    await downloader.setSuspended(isSuspended)
  }

  private func replaceLimits(_ excess: Excess = .stops) async {
    let policy = subject.limits(limits)
    await downloader.replace(policy, excess: subject.excess(excess))
  }

  private func replacePolicy() async throws {
    ledger.update { ($0.ranking, $0.bound) = (nil, nil) }
    let policy = isByArrival ? Arrival() : subject.policy()
    try await downloader.replace(policy)
    let bound = isByArrival ? nil : subject.bound
    ledger.update { ($0.ranking, $0.bound) = (Ranking(policy), bound) }
  }

  private struct Arrival: SchedulingPolicy {
    func rank(_ context: RankingContext) -> Rank { Rank().ascending(context.arrival) }
  }

  private static func id(_ number: Int) -> DownloadID { DownloadID("d\(number)") }

  // MARK: Operations

  /// Performs an operation, and checks the properties that hold at any time.
  func perform(_ operation: QueueOperation) async throws {
    try await carryOut(operation)
    hasSettled = operation == .settle
    try violations.check()
    try ledger.check(try await ledger.records())
  }

  private func carryOut(_ operation: QueueOperation) async throws {
    switch operation {
    case .add(let number, let priority, let size, let deadline):
      var request = QueueSource.request(number)
      request.priority = priority
      request.sizeHint = ByteCount(size)
      request.deadline = deadline.map { start.addingTimeInterval(Double($0)) }
      try await downloader.add(request)
    case .setPriority(let number, let priority):
      try await tolerant { try await downloader.update(Self.id(number)) { $0.priority = priority } }
    case .pause(let number):
      try await stopping { try await self.downloader.pause(Self.id(number)) }
    case .resume(let number):
      source.permit([Self.id(number)])
      try await tolerant { try await downloader.resume(Self.id(number)) }
    case .start(let number, let preemption):
      try await startByHand(Self.id(number), preemption)
    case .restart(let number):
      source.permit([Self.id(number)])
      try await tolerant { try await downloader.restart(Self.id(number)) }
    case .cancel(let number):
      try await stopping { try await self.downloader.cancel(Self.id(number)) }
    case .remove(let number):
      try await downloader.remove(Self.id(number))
      if source.active.contains(Self.id(number)) {
        violations.add(.paused, "\(Self.id(number)) runs although it was removed")
      }
      source.permit([Self.id(number)])
    case .pauseAll(let even):
      try await stopping { try await self.downloader.pauseAll(even ? .tag("even") : .all) > 0 }
    case .resumeAll(let even):
      source.permit((0..<QueueOperation.downloads).map(Self.id))
      try await downloader.resumeAll(even ? .tag("even") : .all)
      try await forbidResting()
    case .cancelAll(let even):
      try await stopping { try await self.downloader.cancelAll(even ? .tag("even") : .all) > 0 }
    case .finish(let number): source.finish(Self.id(number))
    case .fail(let number): source.fail(Self.id(number))
    case .limit(let new, let excess): try await limit(to: new, excess)
    case .replacePolicy(let byArrival):
      isByArrival = byArrival
      try await replacePolicy()
    case .gate(let isOpen):
      isGateOpen = isOpen
      if isOpen { gate.open() } else { gate.close("the simulation has closed it") }
    case .suspend(let isSuspended):
      self.isSuspended = isSuspended
      await downloader.setSuspended(isSuspended)
      if isSuspended, !source.active.isEmpty {
        violations.add(.gates, "\(source.active.map(\.rawValue).sorted()) run although all downloads are suspended")
      }
    case .advance(let seconds): time.advance(by: .seconds(seconds))
    case .reopen:
      await downloader.shutdown(waitingAtMost: nil)
      if !source.active.isEmpty || storage.openPartials > 0 {
        violations.add(.slots, "\(source.active.map(\.rawValue).sorted()) outlived the shutdown")
      }
      downloader = try await Self.open(source, subject.gate(gate), storage, ledger, time)
      try await setUp()
    case .settle: try await settle()
    }
  }

  /// Performs a command that an unknown download refuses.
  private func tolerant(_ command: () async throws -> some Any) async throws {
    do { _ = try await command() } catch let error as DownloadError where error.code == .invalidRequest {}
  }

  /// Performs a command that stops downloads; the stopped ones must not run afterwards.
  private func stopping(_ command: () async throws -> Bool) async throws {
    try await tolerant(command)
    let resting = try await forbidResting()
    for id in source.active.intersection(resting) {
      violations.add(.paused, "\(id) runs although it was paused or cancelled")
    }
  }

  /// Forbids the paused and cancelled downloads to run, which only a command for them ends.
  @discardableResult
  private func forbidResting() async throws -> [DownloadID] {
    let resting = try await ledger.records().filter { [.paused, .cancelled].contains($0.phase) }.map(\.id)
    source.forbid(resting)
    return resting
  }

  private func startByHand(_ id: DownloadID, _ preemption: Preemption) async throws {
    source.permit([id])
    source.setForced(id, true)
    mayExceed = true
    var isRunning = false
    try await tolerant { isRunning = try await downloader.start(id, preempting: preemption) }
    if !isRunning { source.setForced(id, false) }
    // A start may still find a run that is about to be stopped, unless the engine has settled before.
    if isRunning, hasSettled, !isGateOpen || isSuspended {
      violations.add(.gates, "\(id) was started by hand although the gate is closed or all downloads are suspended")
    }
    try await forbidResting()
  }

  /// Replaces the limits. When the engine had nothing left to do, the stopped downloads are known exactly.
  private func limit(to new: QueueLimits, _ excess: Excess) async throws {
    let stops = hasSettled ? ledger.stops(by: new, of: try await ledger.records()) : nil
    let expected = excess == .stops ? stops : hasSettled ? [] : nil
    source.forgetStops()
    try await set(new, excess)
    guard let expected else { return }
    try await settle()
    let stopped = source.stops
    guard stopped != expected else { return }
    func names(_ ids: Set<DownloadID>) -> String { ids.map(\.rawValue).sorted().description }
    throw Violation(property: .stops, text: "\(new) stopped \(names(stopped)) and not \(names(expected))")
  }

  func set(_ new: QueueLimits, _ excess: Excess = .stops) async throws {
    // A run that begins while the limits change may obey the old limits or the new ones.
    let either = limits.union(new)
    source.allow(either)
    ledger.update { $0.limits = either }
    limits = new
    await replaceLimits(excess)
    // A run that was leased under the old limits may finish, and its transfer has perhaps not begun.
    let leased = excess == .finishes ? try await ledger.records().filter(\.phase.isActive).map(\.id) : []
    source.allow(new, excess: Set(leased))
    ledger.update { $0.limits = new }
    // Downloads that were started by hand may still run, too.
    mayExceed = excess == .finishes
  }
}
