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
    guard !isStopping else { throw DownloadError(.shutDown, "the downloader was shut down") }
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
        hub.publish(DownloadEvent(id: record.id, kind: .state(.waiting(.turn)))) {
          DownloadStatus(record: record, state: .waiting(.turn))
        }
      }
    }
    wake()
    return outcomes.map { Download.Ticket(id: $0.record.id, isNew: $0.isNew) }
  }

  private func addition(_ request: DownloadRequest, at now: Date) -> LedgerAddition {
    lastArrival = max(lastArrival + 1, Int64(now.timeIntervalSince1970 * 1_000_000))
    let context = RankingContext(
      id: request.id, priority: request.priority, intent: request.intent, arrival: lastArrival, createdAt: now,
      expectedSize: request.expectedSize)
    let rank = pipeline.scheduling?.rank(context) ?? Rank().ascending(lastArrival)
    return LedgerAddition(request: request, rank: rank, arrival: lastArrival)
  }

  /// A finished download whose file is gone is downloaded again, as a new generation.
  private func addAgainIfLost(
    _ record: DownloadRecord, _ addition: LedgerAddition, at now: Date
  ) async throws -> LedgerAddOutcome? {
    if let stored = record.steps.artifact, let path = stored.path, let absolute = try? storage.path(forStored: path),
      await storage.contains(
        Artifact(kind: stored.kind, location: .path(absolute), name: stored.name, size: ByteCount(stored.size)))
    {
      return nil
    }
    guard Lifecycle.next(record.phase, .artifactLost) != nil else { return nil }
    _ = try await store.remove(.ids([record.id]), limit: 1)
    return try await store.add([addition], at: now).first
  }

  // MARK: Looking up

  func status(of id: DownloadID) async throws -> DownloadStatus? {
    if let run = running[id] { return run.status }
    guard let record = try await store.record(id) else { return nil }
    // It may have been claimed meanwhile.
    return running[id]?.status ?? status(of: record)
  }

  func statuses(_ query: LedgerQuery) async throws -> [DownloadStatus] {
    try await store.records(query).map { running[$0.id]?.status ?? status(of: $0) }
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
      return .retry(at: due, after: error)
    }
    if isSuspended { return .suspended }
    let candidate = record.candidate
    for slot in gates {
      if case .closed(let reason) = slot.rule.verdict(for: candidate) { return .gate(reason) }
    }
    for policy in pipeline.admission.isEmpty ? [DefaultLimit()] : pipeline.admission {
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
    if let reason, await stop(id, reason) { return true }
    let now = options.time.date
    let result = try await store.transition(
      .ids([id]), from: Lifecycle.phases(accepting: event).subtracting([.transferring, .processing]), to: phase,
      at: now)
    if result.count == 0 {
      guard let record = try await store.record(id) else {
        throw DownloadError(.invalidRequest, "there is no download “\(id)”")
      }
      guard let reason, record.phase.isActive, record.owner == store.owner else { return false }
      // The ledger has handed it out, and the main loop is about to register it.
      if await stop(id, reason) { return true }
      latched[id] = reason
      wake()
      return true
    }
    await carriedOut(event, phase, on: result.ids)
    return true
  }

  private func carriedOut(_ event: Lifecycle.Event, _ phase: DownloadState.Phase, on ids: [DownloadID]) async {
    for id in ids where event == .cancel || hub.isWatched(id) {
      guard let record = try? await store.record(id), record.phase == phase else { continue }
      if event == .cancel { try? await storage.removePartial(record.partialKey) }
      let status = status(of: record)
      hub.publish(DownloadEvent(id: id, kind: .state(status.state))) { status }
    }
    wake()
  }

  func remove(_ id: DownloadID, deletingFile: Bool) async throws -> Bool {
    _ = await stop(id, .remove)
    let removed = try await store.remove(.ids([id]), limit: 1)
    try await cleanUp(after: removed, deletingFiles: deletingFile)
    return !removed.isEmpty
  }

  private func cleanUp(after records: [DownloadRecord], deletingFiles: Bool) async throws {
    for record in records {
      let state = state(of: record)
      if record.phase != .finished || !pipeline.steps.isEmpty {
        try await storage.removePartial(record.partialKey)
      }
      if deletingFiles, case .finished(let artifact) = state { try await storage.remove(artifact) }
      hub.finish(record.id)
    }
    wake()
  }

  // MARK: Many downloads

  /// Applies a command to every download, or to those with a tag; what waits changes all at once.
  func commandAll(_ event: Lifecycle.Event, to phase: DownloadState.Phase, reason: StopReason?, tag: String?)
    async throws -> Int
  {
    // First what waits, so that nothing new starts while the running ones end.
    let selection = tag.map(LedgerSelection.tag) ?? .all
    let result = try await store.transition(
      selection, from: Lifecycle.phases(accepting: event).subtracting([.transferring, .processing]), to: phase,
      at: options.time.date)
    var count = result.count
    if let reason {
      let affected = running.values.filter { tag == nil || $0.candidate.tags.contains(tag ?? "") }
      for run in affected { run.stopSignal.stop(reason) }
      for run in affected { await run.settlement() }
      count += affected.count
    }
    await carriedOut(event, phase, on: result.ids)
    return count
  }

  func removeAll(tag: String?, deletingFiles: Bool) async throws -> Int {
    let affected = running.values.filter { tag == nil || $0.candidate.tags.contains(tag ?? "") }
    for run in affected { run.stopSignal.stop(.remove) }
    for run in affected { await run.settlement() }
    var count = 0
    while true {
      let removed = try await store.remove(tag.map(LedgerSelection.tag) ?? .all, limit: 1000)
      if removed.isEmpty { return count }
      count += removed.count
      try await cleanUp(after: removed, deletingFiles: deletingFiles)
    }
  }

  /// Sends everything that runs back to waiting, and starts nothing until ``resumeEverything()``.
  func suspend() async {
    isSuspended = true
    let affected = Array(running.values)
    for run in affected { run.stopSignal.stop(.suspend) }
    for run in affected { await run.settlement() }
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
    gates.append(GateSlot(number: nextGate, gate: gate))
    nextGate += 1
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
    // Those that run are admitted anew, the best rank first; who is left over goes back to waiting.
    var admitted = RunningDownloads()
    for run in running.values.sorted(by: { $0.rank < $1.rank }) {
      var refusal: String?
      for policy in pipeline.admission where refusal == nil {
        switch policy.admit(run.candidate, beside: admitted) {
        case .admitted: break
        case .full(let reason), .hostFull(let reason), .refused(let reason): refusal = reason
        }
      }
      if let refusal { run.stopSignal.stop(.limit(refusal)) } else { admitted.insert(run.candidate) }
    }
    wake()
  }

  func replace(scheduling policy: any SchedulingPolicy) async throws {
    pipeline.scheduling = policy
    try await store.rerank { policy.rank($0) }
    wake()
  }

  func replace(retry policy: any RetryPolicy) { pipeline.retry = policy }

  func replace(source: any Source) async throws {
    let started = try await source.start(in: pipeline.sourceContext)
    if let index = pipeline.sources.firstIndex(where: { $0.name == source.name }) {
      pipeline.sources[index] = source
      retiredSources.append(startedSources[index])
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
    for source in startedSources + retiredSources { await source.stop() }
    try? await store.close()
  }
}

extension Pipeline {
  /// What sources may know of the pipeline they serve.
  var sourceContext: SourceContext {
    let policies: [any AdmissionPolicy] = admission.isEmpty ? [DefaultLimit()] : admission
    let total = policies.compactMap(\.maximumConcurrent).min() ?? 64
    let perHost = policies.compactMap(\.maximumPerHost).min() ?? total
    return SourceContext(concurrentDownloads: total, downloadsPerHost: min(perHost, total))
  }
}
