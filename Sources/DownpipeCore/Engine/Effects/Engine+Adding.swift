internal import Foundation

// Adding downloads and looking them up.
extension Engine {
  // MARK: Adding

  func add(_ requests: [DownloadRequest], ifKnown: KnownDownload, paused: Bool) async throws -> [Download.Ticket] {
    try checkOpen()
    for request in requests { try check(request) }
    // An earlier removal that waits for a run would remove what is added now.
    let ids = state.commands.concerned(of: requests.map(\.id))
    let number = ids.isEmpty ? nil : beginCommand(for: ids)
    defer { if let number { state.commands.end(number) } }
    while let number, let earlier = state.commands.last(before: number, where: ids.contains) {
      try await earlier.end.wait()
    }
    return try await add(requests, ifKnown: ifKnown, paused: paused, if: nil)
  }

  /// Adds downloads without waiting for commands: a run that adds others must not wait for itself.
  /// - Parameter check: Performed in the turn that adds; if it throws, nothing is added.
  func add(
    _ requests: [DownloadRequest], ifKnown: KnownDownload, paused: Bool = false,
    if check: (@Sendable (isolated Engine) async throws -> Void)?
  ) async throws -> [Download.Ticket] {
    try await rankOnce()
    let now = time.date
    let lost = ifKnown == .keep ? [:] : try await lostDependencies(among: requests)
    let additions = requests.map { request in
      LedgerAddition(
        request: request, arrival: context.nextArrival(at: now), location: context.storage.location,
        lost: lost[request.id], ifKnown: ifKnown, isPaused: paused)
    }
    var outcomes = try await context.mailbox.add(additions, if: check)
    // The disks are asked here, not in a turn: they may not answer.
    for index in outcomes.indices
    where !outcomes[index].isNew && outcomes[index].record.phase == .finished && ifKnown != .keep {
      guard let lost = await lostArtifact(of: outcomes[index].record) else { continue }
      var addition = additions[index]
      addition.lost = lost
      let again = try await context.mailbox.perform { [addition] in try await $0.addLost(addition) }
      if let again { outcomes[index] = again }
    }
    return outcomes.map { Download.Ticket(id: $0.record.id, isNew: $0.isNew) }
  }

  /// Adds a download again whose artifact is lost, in a turn; `nil` if the download was removed meanwhile, or a rename has
  /// moved the artifact, which the ledger may not know.
  private func addLost(_ addition: LedgerAddition) async throws -> LedgerAddOutcome? {
    guard let present = try await store.record(addition.request.id), present.steps.note == nil else { return nil }
    let outcome = try await store.add([addition], at: time.date).first
    noteChange(of: CollectionOfOne(addition.request.id))
    return outcome
  }

  /// What was added in a turn.
  struct Added {
    var outcomes: [LedgerAddOutcome] = []
    /// The requests of the runs before.
    var before: [DownloadID: DownloadRequest] = [:]
    /// The downloads that are new or have changed.
    var changed: Set<DownloadID> = []
    var answers: [Mailbox.Answer] = []
  }

  /// Adds what callers have asked for.
  func addWaiting() async -> Added {
    let waiting = waitingAdditions
    waitingAdditions = []
    var added = Added()
    guard !waiting.isEmpty else { return added }
    for run in state.slots.runs.values { added.before[run.id] = run.read { $0.request } }
    let isUnconditional = waiting.allSatisfy { $0.check == nil }
    for group in isUnconditional ? [waiting] : waiting.map({ [$0] }) { await add(group, to: &added) }
    return added
  }

  /// Adds what several callers have asked for in one transaction of the ledger; one after the other if it is refused.
  private func add(_ group: [Mailbox.Addition], to added: inout Added) async {
    let now = time.date
    do {
      for addition in group { try await addition.check?(self) }
      var outcomes = try await addLostFirst(group.flatMap(\.additions), at: now)[...]
      note(outcomes, at: now, in: &added)
      for addition in group {
        let own = Array(outcomes.prefix(addition.additions.count))
        outcomes = outcomes.dropFirst(own.count)
        added.answers.append { addition.answer(.success(own)) }
      }
    } catch let error as DownloadError where error.code != .ledger && group.count > 1 {
      for addition in group { await add([addition], to: &added) }
    } catch {
      added.answers.append { for addition in group { addition.answer(.failure(error)) } }
    }
  }

  private func note(_ outcomes: ArraySlice<LedgerAddOutcome>, at now: Date, in added: inout Added) {
    added.outcomes += outcomes
    for outcome in outcomes {
      // What others have changed is left to its readers.
      if outcome.isNew || outcome.isChanged(by: now) { added.changed.insert(outcome.record.id) }
      if !outcome.isNew { noteDelay(of: outcome.record) }
      // A watcher that comes later learns why they wait even if nothing else happens.
      if !outcome.record.request.after.isEmpty { state.reasons.mayHaveChanged = true }
    }
    state.mode.mayLease = true
  }

  /// Tells runs and watchers about additions.
  func tell(_ added: Added) {
    // A run whose download was added twice in this turn takes over what the later addition has made of it.
    var latest: [DownloadID: DownloadRecord] = [:]
    for outcome in added.outcomes where state.slots.runs[outcome.record.id] != nil {
      latest[outcome.record.id] = outcome.record
    }
    for outcome in added.outcomes {
      let record = outcome.record
      if state.slots.runs[record.id] != nil {
        guard let last = latest.removeValue(forKey: record.id) else { continue }
        decide { state, _ in state.takeOver(last, since: added.before[record.id]) }
        state.reasons.noteChange(of: CollectionOfOne(record.id))
      } else if outcome.isNew, record.waitsFor.isEmpty {
        state.reasons.noteChange(of: CollectionOfOne(record.id))
        publish(record, isNew: true)
      } else if added.changed.contains(record.id) || record.phase.isActive {
        noteChange(of: CollectionOfOne(record.id))
      }
    }
  }

  /// Checks a request before it is stored.
  func check(_ request: DownloadRequest) throws(DownloadError) {
    try request.check(against: pipeline)
  }

  // MARK: Looking up

  func status(of id: DownloadID) async throws -> DownloadStatus? {
    try checkOpen()
    takeRules()
    if let run = state.slots.runs[id] { return run.status }
    guard let record = try await record(id) else { return nil }
    return await presentStatuses(of: [record]).first
  }

  /// The record of a download at this location; `nil` if there is none.
  func record(_ id: DownloadID) async throws -> DownloadRecord? {
    try await store.record(id).flatMap { belongsHere($0) ? $0 : nil }
  }

  /// Whether a download is at this storage's location: paths of other locations are meaningless here.
  func belongsHere(_ record: DownloadRecord) -> Bool { record.belongs(to: context.storage.location) }

  func statuses(of ids: [DownloadID]) async throws -> [DownloadID: DownloadStatus] {
    try checkOpen()
    takeRules()
    let statuses = try await presentStatuses(of: store.records(of: ids).filter(belongsHere))
    return Dictionary(statuses.map { ($0.id, $0) }) { $1 }
  }

  func statuses(_ query: DownloadQuery) async throws -> [DownloadStatus] {
    try checkOpen()
    takeRules()
    var query = query
    query.location = query.location ?? context.storage.location
    return try await presentStatuses(of: store.records(query))
  }

  func totals(_ filter: DownloadFilter) async throws -> DownloadTotals {
    try checkOpen()
    var totals = try await store.totals(filter)
    for saved in try await store.records(of: state.slots.runs(matching: filter).map(\.id)) where filter.matches(saved) {
      guard let run = state.slots.runs[saved.id], saved.phase == .transferring else { continue }
      let record = run.record
      guard record.phase == .transferring else { continue }
      let progress = run.progress
      totals.replace(saved, by: record, received: progress.received)
      if let speed = progress.bytesPerSecond { totals.bytesPerSecond = (totals.bytesPerSecond ?? 0) + speed }
    }
    return totals
  }

  /// The statuses of records, or of their runs if they have started since the records were read.
  private func presentStatuses(of records: [DownloadRecord]) async -> [DownloadStatus] {
    let dependencies = await dependencies(of: records)
    return records.map { state.slots.runs[$0.id]?.status ?? status(of: $0, dependencies) }
  }

  func status(of record: DownloadRecord, _ dependencies: Dependencies = .unread) -> DownloadStatus {
    DownloadStatus(record: record, state: state(of: record, dependencies), in: context.storage)
  }

  func state(of record: DownloadRecord, _ dependencies: Dependencies = .unread) -> DownloadState {
    switch record.phase {
    case .waiting: return .waiting(reason(for: record, dependencies))
    case .transferring, .processing:
      // The runs of this owner are in the slots; others are of other owners.
      return record.owner == store.owner ? .transferring : .waiting(.elsewhere)
    case .paused: return .paused
    case .cancelled: return .cancelled
    case .failed:
      return .failed(record.error ?? DownloadError(.processing, "the reason was not recorded"))
    case .finished:
      let artifact = record.steps.artifact.map(context.storage.shownArtifact)
      return .finished(artifact ?? Artifact(kind: .file, location: .memory([]), name: ""))
    }
  }

  /// Why a waiting download waits, checked in the order of the checks for a lease.
  private func reason(for record: DownloadRecord, _ dependencies: Dependencies) -> WaitingReason {
    if let reason = dependencies.reason(for: record) { return reason }
    if let due = record.notBefore, due > time.date, let error = record.error {
      return WaitingReason(record.awaited, until: due, after: error)
    }
    return state.reason(for: record.candidate, at: time.now)
  }
}

extension LedgerAddOutcome {
  /// Whether the record was last changed by an addition with this date; ledgers may round dates to milliseconds.
  fileprivate func isChanged(by date: Date) -> Bool { record.updatedAt >= date.addingTimeInterval(-0.001) }
}

extension DownloadRequest {
  /// Checks a request before it is stored.
  ///
  /// - Parameter withDigests: Whether to check that a step verifies the expected digests, too.
  func check(against pipeline: Pipeline, withDigests: Bool = true) throws(DownloadError) {
    try checkContent()
    for url in [url] + mirrors where !pipeline.sources.contains(where: { $0.accepts(url) }) {
      throw DownloadError(
        .unsupportedURL,
        url.scheme == nil
          ? "the URL has no scheme: give the full URL, such as https://example.org/file"
          : "no source of this pipeline accepts this “\(url.scheme ?? "")” URL"
      ).located(stage: nil, url: url, attempt: nil)
    }
    do {
      try pipeline.storage.check(destination)
    } catch {
      throw error.located(stage: pipeline.storage.name, url: url, attempt: nil)
    }
    try steps.check(pipeline.steps)
    if withDigests { try checkDigests(against: pipeline.steps) }
  }

  /// Checks what depends on no pipeline.
  package func checkContent() throws(DownloadError) {
    let length = id.rawValue.utf8.count
    guard length > 0, length <= 255 else {
      throw DownloadError(.invalidRequest, "a download's id must have 1 to 255 bytes of UTF-8, but has \(length)")
    }
    if let field = headers.fields.first(where: { !$0.isValid }) {
      throw DownloadError(.invalidRequest, "“\(field.name.prefix(50))” is not a valid header field")
    }
    try checkDependencies()
    for case .known(let size) in [expectedSize, sizeHint] where size < 0 {
      throw DownloadError(.invalidRequest, "the expected size is \(size) bytes: leave it out if it is unknown")
    }
    if let deadline, !deadline.timeIntervalSince1970.isFinite {
      throw DownloadError(.invalidRequest, "the deadline is not a point in time: leave it out if there is none")
    }
  }

  /// Checks that a selected step verifies each of the expected digests: a file must not finish unchecked.
  func checkDigests(against steps: [PipelineStep]) throws(DownloadError) {
    guard !expectedDigests.isEmpty || pieces != nil else { return }
    let context = ProcessingContext(request: self, workspace: nil, digests: expectedDigests)
    let verifying = steps.filter { $0.mayVerifyDigests && self.steps.contains($0.name) && $0.isNeeded(context) }
    if case .known(let size) = expectedSize, let pieces, !pieces.fit(size) {
      throw DownloadError(
        .invalidRequest,
        "the request expects \(size) bytes, but has the digests of \(pieces.count) pieces of \(pieces.length) bytes")
    }
    if verifying.isEmpty {
      throw DownloadError(
        .invalidRequest,
        "the request expects a digest, but no selected step of this pipeline verifies digests: add one, such as "
          + "VerifyChecksum(), or leave the digest out")
    }
    for digest in expectedDigests + (pieces.map { [$0.digest(at: 0)] } ?? []) {
      guard verifying.contains(where: { $0.verifies(digest.algorithm) }) else {
        throw DownloadError(
          .invalidRequest,
          "no selected step of this pipeline verifies digests of the algorithm “\(digest.algorithm.name.prefix(50))”")
      }
      if let count = digest.algorithm.byteCount, digest.bytes.count != count {
        throw DownloadError(
          .invalidRequest,
          "a \(digest.algorithm) digest has \(count) bytes, but the expected one has \(digest.bytes.count)")
      }
    }
  }

  private func checkDependencies() throws(DownloadError) {
    guard after.count <= Self.mostDependencies else {
      throw DownloadError(
        .invalidRequest,
        "a download can wait for at most \(Self.mostDependencies) others, but “\(id)” waits for \(after.count)")
    }
    guard !after.contains(id) else {
      throw DownloadError(.invalidRequest, "“\(id)” waits for “\(id)”: a download cannot wait for itself")
    }
    if let odd = after.first(where: { !(1...255).contains($0.rawValue.utf8.count) }) {
      throw DownloadError(
        .invalidRequest,
        "a download's id must have 1 to 255 bytes of UTF-8, but one in “after” has \(odd.rawValue.utf8.count)")
    }
  }

  /// The largest number of ids in ``after``.
  static var mostDependencies: Int { 1_000 }
}
