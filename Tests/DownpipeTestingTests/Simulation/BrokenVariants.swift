@_spi(Ledger) import DownpipeCore
@testable import DownpipeTesting
import Foundation
import Synchronization
import Testing

/// A ledger with one defect, or none.
struct BrokenLedger: Ledger {
  enum Defect: Sendable {
    /// A checkpoint has more bytes than those that are saved.
    case claimsMore
    /// A finished download is not saved, although the ledger says so.
    case forgetsOutcomes
    /// A pause is answered like one that was carried out, but nothing is paused.
    case forgetsPauses
    /// The same for pauses of several downloads.
    case forgetsPausesTogether
    /// A pause of one download pauses all that wait.
    case pausesOthers
    /// Paused downloads are leased.
    case leasesPaused
    /// Downloads are leased that another owner holds.
    case leasesHeld
    /// The limits are not asked for.
    case ignoresLimits
    /// Downloads of owners that have ended are not released.
    case neverReclaims
    /// A removal is answered like one that was carried out, but nothing is removed.
    case forgetsRemovals
    /// A download that has finished waits again.
    case restartsFinished
    /// It always says that nothing waits or runs.
    case saysIdle
    /// A change of the URL is answered like one that was made.
    case forgetsURLs
    /// Checkpoints are not saved, although the ledger says so.
    case forgetsCheckpoints
  }

  let base: any Ledger
  let defect: Defect?

  func open() async throws -> any LedgerStore { Store(base: try await base.open(), defect: defect) }

  private struct Store: LedgerStoreWrapper {
    let base: any LedgerStore
    let defect: Defect?

    func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
      var request = request
      switch defect {
      case .ignoresLimits: request.select = { _ in .take }
      case .leasesPaused:
        _ = try await base.transition(.matching(DownloadFilter(phases: [.paused])), .resume, at: request.now)
      case .leasesHeld:
        let held = try await base.records(DownloadQuery(phases: [.transferring])).filter { $0.owner != owner }
        return held + (try await base.lease(request))
      default: break
      }
      return try await base.lease(request)
    }

    func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
      var record = record
      if defect == .claimsMore, record.phase.isActive, let end = record.checkpoint.ranges.ranges.last?.upperBound {
        record.checkpoint.ranges.insert(contentsOf: end..<end + 4096)
      }
      let isFinished = fields.contains(.state) && record.phase == .finished
      if defect == .forgetsOutcomes, isFinished { return true }
      if defect == .forgetsCheckpoints, fields == [.checkpoint] { return true }
      let isSaved = try await base.save(record, fields, at: now)
      if defect == .restartsFinished, isFinished {
        _ = try await base.transition(.ids([record.id]), .artifactLost, at: now)
      }
      return isSaved
    }

    func isBusy() async throws -> Bool { defect == .saysIdle ? false : try await base.isBusy() }

    func update(
      _ id: DownloadID, at now: Date, number: Int64?,
      _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
    ) async throws -> DownloadRecord? {
      if defect == .forgetsURLs, let record = try await base.record(id) {
        var changed = record
        try change(&changed)
        if changed.request.url != record.request.url { return changed }
      }
      return try await base.update(id, at: now, number: number, change)
    }

    func transition(
      _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date, number: Int64?
    ) async throws -> LedgerBulkResult {
      if defect == .forgetsPausesTogether, event == .pauseAll { return LedgerBulkResult(ids: [], count: 0) }
      if event == .pause, case .ids(let ids) = selection {
        switch defect {
        case .forgetsPauses: return LedgerBulkResult(ids: ids, count: ids.count)
        case .pausesOthers:
          return try await base.transition(.matching(DownloadFilter(phases: [.waiting])), event, at: now)
        default: break
        }
      }
      return try await base.transition(selection, event, at: now, number: number)
    }

    func remove(
      _ selection: LedgerSelection, number: Int64?,
      leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
    ) async throws -> LedgerRemoval {
      guard defect == .forgetsRemovals, case .ids(let ids) = selection else {
        return try await base.remove(selection, number: number, leaving: choose)
      }
      var removal = LedgerRemoval()
      for record in try await base.records(of: ids) where choose(record) != nil { removal.note(nil) }
      return removal
    }

    func reclaim(at now: Date) async throws -> Int {
      defect == .neverReclaims ? 0 : try await base.reclaim(at: now)
    }
  }
}

/// A storage with one defect, or none.
struct BrokenStorage: StorageWrapper {
  enum Defect: Sendable {
    /// A flush does nothing.
    case forgetsFlushes
    /// A flush only gives the partial its name, and its marks match any bytes.
    case forgetsFlushesUnnoticed
    /// The bytes that continue a partial are written one byte too far.
    case shiftsContinued
    /// Some writes are lost.
    case losesWrites
    /// A file is published before its last byte is there.
    case publishesEarly
    /// A published file disappears.
    case forgetsFiles
    /// Partials are not removed.
    case keepsPartials
    /// Partials are not closed.
    case keepsOpen
    /// A partial that is opened again has lost its bytes.
    case losesPartials
  }

  let base: any Storage
  let defect: Defect?
  let disk: SimulatedDisk

  func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    let partial = try await base.openPartial(key, isNew: isNew)
    if defect == .losesPartials, !isNew { try partial.truncate(to: 0) }
    return BrokenPartial(base: partial, defect: defect, isContinued: !isNew)
  }

  func removePartial(_ key: PartialKey) async throws {
    if defect != .keepsPartials { try await base.removePartial(key) }
  }

  func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    if defect == .publishesEarly { cut(artifact) }
    let own = (partial as? BrokenPartial)?.base ?? partial
    let published = try await base.publish(artifact, of: own, at: destination, in: context)
    if defect == .forgetsFiles, let path = published.path {
      disk.withState { state in state.files[path] = nil }
    }
    return published
  }

  private func cut(_ artifact: Artifact) {
    guard let path = artifact.path else { return }
    disk.withState { state in
      if let key = SimulatedPartial.key(of: path, among: state.partials.keys), let bytes = state.partials[key]?.bytes {
        state.partials[key]?.bytes.truncate(to: bytes.size - 1)
      } else if let bytes = state.files[path]?.bytes {
        state.files[path]?.bytes.truncate(to: bytes.size - 1)
      }
    }
  }
}

/// A partial of a ``BrokenStorage``.
struct BrokenPartial: PartialWrapper {
  let base: any Partial
  let defect: BrokenStorage.Defect?
  /// Whether the partial existed before it was opened.
  let isContinued: Bool

  func write(_ bytes: RawSpan, at offset: Int64) throws {
    if defect == .losesWrites, offset % 512_000 > 256_000 { return }
    try base.write(bytes, at: defect == .shiftsContinued && isContinued ? offset + 1 : offset)
  }

  func synchronize() async throws {
    switch defect {
    case .forgetsFlushes: break
    case .forgetsFlushesUnnoticed: try base.persist()
    default: try await base.synchronize()
    }
  }

  func close() throws { if defect != .keepsOpen { try base.close() } }

  func matches(_ mark: BlockMark) throws -> Bool {
    try defect == .forgetsFlushesUnnoticed || base.matches(mark)
  }
}

/// A source with one defect, or none.
struct BrokenSource: Source, SourceSession {
  enum Defect: Sendable {
    /// The later chunks of a continued file are shifted by some bytes.
    case shiftsContinued
    /// A body of unknown length ends early, without an error.
    case endsEarly
    /// A cancelled transfer goes on.
    case ignoresCancellation
    /// Calls use the threads of the system.
    case usesThreads
  }

  let base: any Source & SourceSession
  let defect: Defect?
  let executor: SimulatedExecutor

  /// Users replace the source by its name.
  var name: String { "SimulatedSource" }

  func accepts(_ url: URL) -> Bool { base.accepts(url) }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    if defect == .usesThreads { await Task.detached {}.value }
    var reply = try await base.open(request)
    let body = reply.body
    switch defect {
    case .shiftsContinued where (request.range?.start ?? 0) > 0:
      let isFirst = Mutex(true)
      reply.body = Body { sink in
        try await body.forEachChunk { chunk in
          let wasFirst = isFirst.withLock { isFirst in
            defer { isFirst = false }
            return isFirst
          }
          guard !wasFirst else { return try sink(chunk) }
          let bytes = chunk.withUnsafeBytes { Array($0) }
          let shifted = Array(bytes.dropFirst(10) + bytes.prefix(10))
          try sink(shifted.span.bytes)
        }
      }
    case .endsEarly where reply.coverage == .whole:
      reply.length = .unknown
      reply.body = Body { sink in
        let received = Mutex(0)
        try await body.forEachChunk { chunk in
          let count = received.withLock { count in
            count += chunk.byteCount
            return count
          }
          if count <= 256 << 10 { try sink(chunk) }
        }
      }
    case .ignoresCancellation:
      let executor = executor
      reply.body = .pushing { sink in
        try await Task(executorPreference: executor) { try await body.forEachChunk(sink) }.value
      }
    default: break
    }
    return reply
  }
}

/// Limits that admit one download too many at first.
struct BrokenLimits: AdmissionPolicy {
  let base: any AdmissionPolicy
  let excess: Int

  /// Users replace the limits by their name.
  var name: String { "SimulatedLimits" }
  var maximumConcurrent: Int? { base.maximumConcurrent.map { $0 + excess } }

  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    running.total < excess ? .admitted : base.admit(candidate, beside: running)
  }
}

/// A gate that does not report when it closes.
struct BrokenGate: Gate {
  let base: any Gate
  let isBroken: Bool

  /// Users replace the gate by its name.
  var name: String { "SimulatedGate" }

  func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    try await base.watch { publish(isBroken ? .open : $0) }
  }
}

/// A retry policy that waits for hours.
struct BrokenRetry: RetryPolicy {
  let isBroken: Bool

  func decide(_ failure: Failure) -> RetryDecision {
    isBroken ? .resume(after: .seconds(7 * 3600)) : Retry(.exponential(attempts: 6)).decide(failure)
  }
}

/// A step with one defect, or none.
struct BrokenStep: PostProcessor {
  enum Defect: Sendable {
    /// The first byte of the file is wrong.
    case alters
    /// The step does not end.
    case neverEnds
    /// The step returns a file that does not exist.
    case returnsNothing
    /// The step takes a time that no seed decides.
    case isRandom
  }

  let defect: Defect?
  let time: any TimeSource
  let disk: SimulatedDisk

  func isNeeded(in context: ProcessingContext) -> Bool { defect != nil }

  func process(_ input: File, in context: ProcessingContext) async throws -> File {
    guard let path = input.path, let workspace = context.workspace else { return input }
    let output = "\(workspace)/broken"
    switch defect {
    case .neverEnds: try await time.sleep(until: time.now + .seconds(100 * 3600), purpose: SleepPurpose("step"))
    case .isRandom: try await time.sleep(for: .milliseconds(Int.random(in: 1...500)))
    case .alters:
      disk.withState { state in
        guard var stored = state.files[path], let first = stored.bytes.read(0..<1).first else { return }
        let wrong = [~first]
        stored.bytes.write(wrong.span.bytes, at: 0)
        stored.durable = stored.bytes
        state.files[output] = stored
      }
      return File(path: output, name: input.name)
    case .returnsNothing: return File(path: output, name: input.name)
    case nil: break
    }
    return input
  }
}
