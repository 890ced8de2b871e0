internal import Foundation
internal import Synchronization

// What users ask of a downloader: add, look up, pause, resume, cancel, remove, replace.
extension Engine {
  // MARK: Adding

  /// Checks what can be checked before anything is stored.
  nonisolated static func check(_ request: DownloadRequest, sources: [any Source]) throws(DownloadError) {
    let url = request.url
    let length = request.id.rawValue.utf8.count
    guard length > 0, length <= 255 else {
      throw DownloadError(.invalidRequest, "a download's id has 1 to 255 bytes of UTF-8, this one has \(length)")
    }
    for url in [url] + request.mirrors where !sources.contains(where: { $0.accepts(url) }) {
      throw DownloadError(
        .unsupportedURL,
        url.scheme == nil
          ? "the URL has no scheme: write it in full, such as https://example.org/file"
          : "no source of this pipeline takes this “\(url.scheme ?? "")” URL"
      ).located(
        stage: nil, url: url, attempt: nil)
    }
    if let field = request.headers.fields.first(where: { !$0.isValid }) {
      throw DownloadError(.invalidRequest, "“\(field.name.prefix(50))” is not a valid header field")
    }
    if let size = request.expectedSize, size < 0 {
      throw DownloadError(.invalidRequest, "the expected size is \(size) bytes; leave it out if it is unknown")
    }
  }

  func add(_ requests: [DownloadRequest]) async throws -> [Download.Ticket] {
    try checkOpen()
    for request in requests { try Engine.check(request, sources: startedSources) }
    let now = options.time.date
    let additions = requests.map { addition($0, at: now) }
    var outcomes = try await store.add(additions, at: now)
    for index in outcomes.indices where outcomes[index].record.phase == .finished && !outcomes[index].isNew {
      if let again = try await addAgainIfLost(outcomes[index].record, additions[index], at: now) {
        outcomes[index] = again
      }
    }
    for outcome in outcomes {
      let record = outcome.record
      running[record.id]?.update { $0.request = record.request }
      let isDue = record.phase == .waiting && record.notBefore == nil
      if hub.isWatched(record.id), isDue {
        hub.publish(stateOf: DownloadStatus(record: record, state: .waiting(.turn)))
      }
    }
    wake()
    return outcomes.map { Download.Ticket(id: $0.record.id, isNew: $0.isNew) }
  }

  /// - Throws: `.shutDown` once the downloader ends.
  func checkOpen() throws(DownloadError) {
    guard !isStopping else { throw DownloadError(.shutDown, "the downloader was shut down") }
  }

  private func addition(_ request: DownloadRequest, at now: Date) -> LedgerAddition {
    lastArrival = max(lastArrival + 1, Int64(now.timeIntervalSince1970 * 1_000_000))
    let context = RankingContext(
      id: request.id, priority: request.priority, intent: request.intent, arrival: lastArrival, createdAt: now,
      expectedSize: request.expectedSize)
    let rank = pipeline.scheduling?.rank(context) ?? Rank().ascending(lastArrival)
    return LedgerAddition(request: request, rank: rank, arrival: lastArrival, location: storage.location)
  }

  /// A finished download whose file is gone is downloaded again, as a new generation.
  private func addAgainIfLost(
    _ record: DownloadRecord, _ addition: LedgerAddition, at now: Date
  ) async throws -> LedgerAddOutcome? {
    // What was kept in memory is gone with the process, and is not asked for.
    guard let stored = record.steps.artifact, stored.path != nil else { return nil }
    if let artifact = try? storage.artifact(from: stored), await storage.contains(artifact) { return nil }
    var addition = addition
    addition.lost = stored
    return try await store.add([addition], at: now).first
  }

  // MARK: Looking up

  func status(of id: DownloadID) async throws -> DownloadStatus? {
    try checkOpen()
    if let run = running[id] { return run.status }
    guard let record = try await store.record(id) else { return nil }
    return presentStatus(of: record)
  }

  func statuses(of ids: [DownloadID]) async throws -> [DownloadID: DownloadStatus] {
    try checkOpen()
    let records = try await store.records(of: ids)
    return Dictionary(records.map { ($0.id, presentStatus(of: $0)) }) { $1 }
  }

  func statuses(_ query: LedgerQuery) async throws -> [DownloadStatus] {
    try checkOpen()
    return try await store.records(query).map(presentStatus)
  }

  /// It may have been claimed since the ledger was asked.
  private func presentStatus(of record: DownloadRecord) -> DownloadStatus {
    running[record.id]?.status ?? status(of: record)
  }

  private func status(of record: DownloadRecord) -> DownloadStatus {
    DownloadStatus(record: record, state: state(of: record))
  }

  private func state(of record: DownloadRecord) -> DownloadState {
    switch record.phase {
    case .waiting: return .waiting(reason(for: record))
    case .transferring, .processing:
      // Ours are in `running`; what is not belongs to somebody else.
      return record.owner == store.owner ? .transferring : .waiting(.elsewhere)
    case .paused: return .paused
    case .cancelled: return .cancelled
    case .failed:
      return .failed(record.error ?? DownloadError(.processing, "the reason was not recorded"))
    case .finished:
      let stored = record.steps.artifact
      let path = stored?.path.flatMap { try? storage.path(forStored: $0) }
      return .finished(
        Artifact(
          kind: stored?.kind ?? .file, location: path.map { .path($0) } ?? .memory([]), name: stored?.name ?? "",
          size: ByteCount(stored?.size), mediaType: stored?.mediaType))
    }
  }

  /// Why a waiting download waits, asked in the order in which it would be refused.
  private func reason(for record: DownloadRecord) -> WaitingReason {
    if let due = record.notBefore, due > options.time.date, let error = record.error {
      return WaitingReason(record.awaited, until: due, after: error)
    }
    if isSuspended { return .suspended }
    let candidate = record.candidate
    for slot in gates {
      if case .closed(let reason) = slot.rule.verdict(for: candidate) { return .gate(reason) }
    }
    for policy in pipeline.limits {
      switch policy.admit(candidate, beside: counts) {
      case .admitted: continue
      case .full(let reason), .hostFull(let reason), .refused(let reason): return .limit(reason)
      }
    }
    return .turn
  }

  // MARK: One download

  /// Ends the work on a download, if there is any, and waits until that is in the ledger.
  private func stop(_ id: DownloadID, _ reason: StopReason) async -> Bool {
    guard let run = running[id] else { return false }
    run.stopSignal.stop(reason)
    await run.settlement()
    return true
  }

  /// Applies a command to a download, whether it runs or not.
  /// - Returns: whether it meant anything in the phase the download was in.
  func command(_ event: Lifecycle.Event, to phase: DownloadState.Phase, reason: StopReason?, _ id: DownloadID)
    async throws -> Bool
  {
    try checkOpen()
    // Between two looks it may have begun or ended; what is found then is looked at again.
    for _ in 0..<4 {
      if let reason, let run = running[id] {
        run.stopSignal.stop(reason)
        await run.settlement()
        // Something else may have stopped it first.
        if run.record.phase == phase { return true }
      } else if let run = running[id], !run.record.phase.isActive {
        // It has ended, and is about to be let go of.
        await run.settlement()
      }
      let result = try await store.transition(.ids([id]), event, at: options.time.date)
      if result.count > 0 {
        await carriedOut(event, phase, on: result.ids)
        return true
      }
      guard let record = try await store.record(id) else {
        throw DownloadError(.invalidRequest, "there is no download “\(id)”")
      }
      guard reason != nil, record.phase.isActive, record.owner == store.owner else { return false }
      if isClaiming, running[id] == nil {
        // The ledger has handed it out, and the main loop is about to register it.
        await claimIsOver()
      }
    }
    return false
  }

  private func carriedOut(_ event: Lifecycle.Event, _ phase: DownloadState.Phase, on ids: [DownloadID]) async {
    for id in ids where event == .cancel || hub.isWatched(id) {
      guard let record = try? await store.record(id), record.phase == phase else { continue }
      if event == .cancel, running[id] == nil { try? await storage.removePartial(record.partialKey) }
      let status = status(of: record)
      hub.publish(stateOf: status)
    }
    wake()
  }

  func remove(_ id: DownloadID, deletingFile: Bool) async throws -> Bool {
    try checkOpen()
    _ = await stop(id, .remove)
    let removed = try await store.remove(.ids([id]), limit: 1)
    try await cleanUp(after: removed, deletingFiles: deletingFile)
    return !removed.isEmpty
  }

  private func cleanUp(after records: [DownloadRecord], deletingFiles: Bool) async throws {
    var failure: (any Error)?
    for record in records {
      // It may have begun to run before it was removed: its work ends first.
      if record.phase.isActive, await !stop(record.id, .remove) { latched[record.partialKey] = .remove }
      let state = state(of: record)
      do {
        try await storage.removePartial(record.partialKey)
        if deletingFiles, case .finished(let artifact) = state { try await storage.remove(artifact) }
      } catch {
        failure = failure ?? error
      }
      hub.finish(record.id)
    }
    wake()
    if let failure { throw failure }
  }

  // MARK: Many downloads

  /// Applies a command to every download, or to those with a tag; what waits changes all at once.
  func commandAll(_ event: Lifecycle.Event, to phase: DownloadState.Phase, reason: StopReason?, tag: String?)
    async throws -> Int
  {
    try checkOpen()
    // First what waits, so that nothing new starts while the running ones end; then what had begun meanwhile.
    let selection = tag.map(LedgerSelection.tag) ?? .all
    var result = try await store.transition(selection, event, at: options.time.date)
    var count = result.count
    if let reason {
      count += await stopAll(tag: tag, reason, ending: phase)
      let rest = try await store.transition(selection, event, at: options.time.date)
      count += rest.count
      result.ids += rest.ids
    }
    await carriedOut(event, phase, on: result.ids)
    return count
  }

  /// Ends the work on everything, or on everything with a tag.
  /// - Returns: how many are in `phase` now.
  private func stopAll(tag: String?, _ reason: StopReason, ending phase: DownloadState.Phase) async -> Int {
    if isClaiming { latchedForAll.append((tag, reason)) }
    let affected = running.values.filter { run in tag.map(run.candidate.tags.contains) ?? true }
    for run in affected { run.stopSignal.stop(reason) }
    for run in affected { await run.settlement() }
    return affected.count { $0.record.phase == phase }
  }

  func removeAll(tag: String?, deletingFiles: Bool) async throws -> Int {
    try checkOpen()
    holds += 1
    defer {
      holds -= 1
      wake()
    }
    _ = await stopAll(tag: tag, .remove, ending: .cancelled)
    var count = 0
    var failure: (any Error)?
    while true {
      let removed = try await store.remove(tag.map(LedgerSelection.tag) ?? .all, limit: 1000)
      if removed.isEmpty { break }
      count += removed.count
      do { try await cleanUp(after: removed, deletingFiles: deletingFiles) } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
    return count
  }

  /// Sends everything that runs back to waiting, and starts nothing until ``unsuspend()``.
  func suspend() async {
    isSuspended = true
    _ = await stopAll(tag: nil, .suspend, ending: .waiting)
  }

  func unsuspend() {
    isSuspended = false
    wake()
  }

  // MARK: Replacing stages

  func replace(gate: any Gate) {
    if let index = gates.firstIndex(where: { $0.gate.name == gate.name }) {
      gates[index].stop.stop(())
      gates.remove(at: index)
      pipeline.gates.removeAll { $0.name == gate.name }
    }
    pipeline.gates.append(gate)
    gates.append(GateSlot(gate))
    wake()
  }

  func removeGate(named name: String) -> Bool {
    guard let index = gates.firstIndex(where: { $0.gate.name == name }) else { return false }
    gates[index].stop.stop(())
    gates.remove(at: index)
    pipeline.gates.removeAll { $0.name == name }
    wake()
    return true
  }

  func replace(admission policy: any AdmissionPolicy) {
    if let index = pipeline.admission.firstIndex(where: { $0.name == policy.name }) {
      pipeline.admission[index] = policy
    } else {
      pipeline.admission.append(policy)
    }
    if isClaiming { limitsHaveChanged = true }
    enforceLimits()
    wake()
  }

  /// Admits those that run anew, the best rank first; who is left over goes back to waiting.
  func enforceLimits() {
    takeFreedPlaces()
    var admitted = RunningDownloads()
    for run in running.values.filter(\.hasPlace).sorted(by: { $0.rank < $1.rank }) {
      var refusal: String?
      for policy in pipeline.admission where refusal == nil {
        switch policy.admit(run.candidate, beside: admitted) {
        case .admitted: break
        case .full(let reason), .hostFull(let reason), .refused(let reason): refusal = reason
        }
      }
      if let refusal { run.stopSignal.stop(.limit(refusal)) } else { admitted.insert(run.candidate) }
    }
  }

  func replace(scheduling policy: any SchedulingPolicy) async throws {
    pipeline.scheduling = policy
    try await store.rerank { policy.rank($0) }
    wake()
  }

  func replace(retry policy: any RetryPolicy) { pipeline.retry = policy }

  func replace(source: any Source) async throws {
    try checkOpen()
    let started = try await source.start(in: pipeline.sourceContext)
    guard !isStopping else {
      await started.stop()
      throw DownloadError(.shutDown, "the downloader was shut down")
    }
    if let index = pipeline.sources.firstIndex(where: { $0.name == source.name }) {
      pipeline.sources[index] = source
      retiredSources.append((sourceEpoch, startedSources[index]))
      sourceEpoch += 1
      startedSources[index] = started
    } else {
      pipeline.sources.append(source)
      startedSources.append(started)
    }
    wake()
  }

  // MARK: The end

  /// Stops the sources and closes the ledger, after the main loop has ended.
  func close() async {
    for source in startedSources + retiredSources.map(\.source) { await source.stop() }
    try? await store.close()
  }
}

extension Pipeline {
  /// What sources may know of the pipeline they serve.
  var sourceContext: SourceContext {
    let total = limits.compactMap(\.maximumConcurrent).min() ?? 64
    let perHost = limits.compactMap(\.maximumPerHost).min() ?? total
    return SourceContext(concurrentDownloads: total, downloadsPerHost: min(perHost, total))
  }
}
