import DownpipeCore
import Foundation

/// A downloader with fakes for its other stages, on which a sequence of operations is performed.
actor QueueSimulation {
  /// The stages that are tested.
  struct Subject: Sendable {
    var policy: @Sendable () -> any SchedulingPolicy
    var limits: @Sendable (QueueLimits) -> any AdmissionPolicy
    var ledger: @Sendable () async throws -> any Ledger
    var bound: (@Sendable (RankingContext) -> Duration?)?
  }

  private static let firstLimits = QueueLimits(concurrent: 3, perHost: 2, even: 2)
  private let subject: Subject
  private let violations = ViolationLog()
  private let time = VirtualTime()
  private let start: Date
  private let storage = FakeStorage()
  private let gate = FakeGate()
  private let source: QueueSource
  private let ledger: ObservedLedger
  private var downloader: Downloader
  private var limits = firstLimits
  private var isByArrival = false
  private var isGateOpen = true
  private var isSuspended = false
  /// Whether a download was started by hand since the limits were set, so that more may run than they permit.
  private var mayExceed = false

  init(_ subject: Subject) async throws {
    self.subject = subject
    start = time.date
    source = QueueSource(limits: Self.firstLimits, violations: violations)
    ledger = ObservedLedger(try await subject.ledger(), limits: Self.firstLimits, violations: violations)
    downloader = try await Self.open(source, gate, storage, ledger, time)
    try await setUp()
  }

  /// Opens a downloader that starts nothing until it is set up.
  private static func open(
    _ source: QueueSource, _ gate: FakeGate, _ storage: FakeStorage, _ ledger: ObservedLedger, _ time: VirtualTime
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

  private func replaceLimits() async {
    let policy = subject.limits(limits)
    await downloader.replace(policy)
  }

  private func replacePolicy() async throws {
    ledger.update { $0.bound = nil }
    let policy = isByArrival ? Arrival() : subject.policy()
    try await downloader.replace(policy)
    if !isByArrival { ledger.update { [bound = subject.bound] in $0.bound = bound } }
  }

  private struct Arrival: SchedulingPolicy {
    func rank(_ context: RankingContext) -> Rank { Rank().ascending(context.arrival) }
  }

  private static func id(_ number: Int) -> DownloadID { DownloadID("d\(number)") }

  // MARK: Operations

  /// Performs an operation, and checks the properties that hold at any time.
  func perform(_ operation: QueueOperation) async throws {
    try await carryOut(operation)
    try violations.check()
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
    case .limit(let new): await set(new)
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
        violations.add(.paused, "\(source.active.map(\.rawValue).sorted()) run although all downloads are suspended")
      }
    case .advance(let seconds): time.advance(by: .seconds(seconds))
    case .reopen:
      await downloader.shutdown()
      if !source.active.isEmpty || storage.openPartials > 0 {
        violations.add(.slots, "\(source.active.map(\.rawValue).sorted()) outlived the shutdown")
      }
      downloader = try await Self.open(source, gate, storage, ledger, time)
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
    try await forbidResting()
  }

  private func set(_ new: QueueLimits) async {
    // A run that begins while the limits change may obey the old limits or the new ones.
    let either = limits.union(new)
    source.allow(either)
    ledger.update { $0.limits = either }
    limits = new
    await replaceLimits()
    source.allow(new)
    ledger.update { $0.limits = new }
    mayExceed = false
  }

  // MARK: Checks

  /// Waits until the engine has nothing left to do, and checks that each download that may run runs.
  private func settle() async throws {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(10)
    var looks = 0
    while let reason = try await unsettled() {
      try violations.check()
      looks += 1
      if looks > 2_000, clock.now > end { throw Violation(property: .slots, text: reason) }
      await Task.yield()
    }
    try ledger.check(try await ledger.records())
  }

  /// What the engine has yet to do; `nil` if there is nothing.
  private func unsettled() async throws -> String? {
    let holding = source.holding
    let records = try await ledger.records()
    let active = records.filter(\.phase.isActive)
    if let idle = active.first(where: { !holding.contains($0.id) }) {
      return "\(idle.id) is \(idle.phase) but transfers nothing"
    }
    if let id = holding.subtracting(active.map(\.id)).first { return "\(id) transfers, but is not active" }
    guard isGateOpen, !isSuspended else {
      return active.first.map { "\($0.id) runs although the gate is closed or all downloads are suspended" }
    }
    var running = RunningDownloads()
    for record in active {
      if !mayExceed, !limits.admit(record.candidate, beside: running) {
        return "\(active.map(\.id.rawValue)) run although the limits were lowered to \(limits)"
      }
      running.insert(record.candidate)
    }
    let now = time.date
    let next = records.first { record in
      record.phase == .waiting && (record.notBefore ?? now) <= now && limits.admit(record.candidate, beside: running)
    }
    return next.map { "\($0.id) waits although \(limits) permit it beside \(active.map(\.id.rawValue))" }
  }

  /// Releases everything and checks that all downloads end.
  func end() async throws {
    try await settle()
    isGateOpen = true
    gate.open()
    source.finishAll()
    isSuspended = false
    await downloader.setSuspended(false)
    await set(QueueLimits(concurrent: 1, perHost: 1, even: 1))
    try await downloader.resumeAll()
    let clock = Task { [time] in
      while !Task.isCancelled {
        await time.advanceToNextSleeper()
        await Task.yield()
      }
    }
    defer { clock.cancel() }
    try await downloader.waitUntilIdle()
    // A slot that is still taken would hold this download back.
    let number = QueueOperation.downloads
    let last = try await downloader.add(QueueSource.request(number))
    _ = try await last.value
    try await downloader.waitUntilIdle()
    try violations.check()
    try await checkEnds()
  }

  private func checkEnds() async throws {
    let statuses = try await downloader.statuses()
    for status in statuses {
      guard status.state.phase.isFinal else {
        throw Violation(property: .ending, text: "\(status.id) is \(status.state.phase) when no download waits or runs")
      }
      if status.state.phase == .finished, storage.published[status.id.rawValue] != QueueSource.bytes(of: status.id) {
        throw Violation(property: .ending, text: "\(status.id) has finished, but its file is missing or wrong")
      }
    }
    let failed = Set(statuses.filter { $0.state.phase == .failed }.map(\.id))
    if let key = storage.partials.keys.first(where: { !failed.contains($0.id) }) {
      throw Violation(property: .ending, text: "the partial of \(key.id) is left, although it has not failed")
    }
    if !source.active.isEmpty || storage.openPartials > 0 {
      throw Violation(
        property: .slots, text: "\(source.active.map(\.rawValue)) run, and \(storage.openPartials) partials are open")
    }
  }

  /// Shuts the downloader down.
  func close() async {
    source.finishAll()
    await downloader.shutdown()
  }
}
