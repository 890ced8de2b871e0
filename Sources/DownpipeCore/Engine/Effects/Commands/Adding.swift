internal import Foundation

// Adding downloads.
extension Engine {
  func add(_ requests: [DownloadRequest], ifKnown: KnownDownload, paused: Bool) async throws -> [Download.Ticket] {
    try checkOpen()
    for request in requests { try check(request) }
    try await rankOnce()
    return try await context.add(requests, ifKnown: ifKnown, paused: paused, afterCommands: true)
  }

  /// Checks a request before it is stored.
  func check(_ request: DownloadRequest) throws(DownloadError) { try request.check(against: pipeline) }
}

extension EngineContext {
  /// - Parameters:
  ///   - afterCommands: Whether earlier commands for these downloads come first: an earlier removal that waits for a run
  ///     would remove what is added now. A run that adds others must not wait for itself.
  ///   - check: Performed in the turn that adds; if it throws, nothing is added.
  fileprivate func add(
    _ requests: [DownloadRequest], ifKnown: KnownDownload, paused: Bool = false, afterCommands: Bool,
    if check: (@Sendable (EngineContext) async throws -> Void)? = nil
  ) async throws -> [Download.Ticket] {
    let (now, location) = (time.date, try storage.location)
    let lost = ifKnown == .keep ? [:] : try await lostDependencies(among: requests, for: location)
    let additions = requests.map { request in
      LedgerAddition(
        request: request, arrival: nextArrival(at: now), location: location, lost: lost[request.id],
        ifKnown: ifKnown, isPaused: paused)
    }
    var outcomes = try await mailbox.add(additions, afterCommands: afterCommands, if: check)
    // The disks are asked here, not in a turn: they may not answer.
    for index in outcomes.indices
    where !outcomes[index].isNew && outcomes[index].record.phase == .finished && ifKnown != .keep {
      guard let lost = await lostArtifact(of: outcomes[index].record, for: location) else { continue }
      var addition = additions[index]
      addition.lost = lost
      let again = try await mailbox.perform { [addition] context, changes in
        try await context.addLost(addition, &changes)
      }
      if let again { outcomes[index] = again }
    }
    return outcomes.map { Download.Ticket(id: $0.record.id, isNew: $0.isNew) }
  }

  /// Adds descendants of a running download, unless they would be too many.
  ///
  /// - Parameter check: Performed in the turn that adds; if it throws, nothing is added.
  func add(
    _ children: [DownloadRequest], following root: DownloadID, atMost maximum: Int,
    if check: @escaping @Sendable () throws -> Void
  ) async throws {
    let pipeline = try await mailbox.call(for: []) { _ in { state, _ in .over(state.stages.current.pipeline) } }
    for child in children { try child.check(against: pipeline) }
    let ids = children.map(\.id)
    _ = try await add(children, ifKnown: .update, afterCommands: false) { context in
      try check()
      let known = try await context.store.records(of: ids).filter { $0.request.lineage?.root == root }
      let before = try await context.store.counts(.tag(FollowUp.tag(of: root))).values.reduce(0, +)
      let count = before + Set(ids).subtracting(known.map(\.id)).count
      guard count <= maximum else {
        throw DownloadError(
          .followUpLimit,
          "\(count) downloads would follow from “\(root)”, but at most \(maximum) may: raise the count of "
            + "FollowUpLimits if its manifests are trustworthy")
      }
    }
  }

  // MARK: Lost artifacts

  /// The artifacts that no longer exist, of finished downloads that are added together with a download that waits for
  /// them.
  ///
  /// They have to be known before the addition: otherwise the download that waits would start although the file is
  /// downloaded again.
  private func lostDependencies(
    among requests: [DownloadRequest], for location: String?
  ) async throws -> [DownloadID: StoredArtifact] {
    let needed = requests.reduce(into: Set<DownloadID>()) { $0.formUnion($1.after) }
    let ids = requests.map(\.id).filter(needed.contains)
    guard !ids.isEmpty else { return [:] }
    var lost: [DownloadID: StoredArtifact] = [:]
    for record in try await store.records(of: ids) where record.phase == .finished {
      lost[record.id] = await lostArtifact(of: record, for: location)
    }
    return lost
  }

  /// The artifact of a finished download if it no longer exists, or is not where it is wanted; otherwise `nil`. Not in a turn,
  /// because the disk may not answer.
  ///
  /// - Parameter location: The location for which the download is added; `nil` for any: then the file may be in another storage,
  ///   and only that one can tell whether it still exists.
  private func lostArtifact(of record: DownloadRecord, for location: String?) async -> StoredArtifact? {
    var record = record
    if record.steps.note != nil {
      // It was read before or during a rename.
      let present = try? await mailbox.recordAfterRenaming(record.id, for: [], isContinuation: true)
      guard let present, present.phase == .finished else { return nil }
      record = present
    }
    // An artifact in memory ends with its process and does not count as lost.
    guard let stored = record.steps.artifact, stored.path != nil else { return nil }
    let isHere = await storage.mayTell(of: stored, record)
    guard isHere || location != nil else { return nil }
    guard isHere, let artifact = try? storage.artifact(from: stored) else { return stored }
    return await storage.contains(artifact) ? nil : stored
  }
}

extension EngineContext {
  /// Adds a download again whose artifact is lost, in a turn; `nil` if the download was removed or has another artifact
  /// meanwhile, or a rename has moved it, which the ledger may not know.
  fileprivate func addLost(_ addition: LedgerAddition, _ changes: inout Changes) async throws -> LedgerAddOutcome? {
    // A later addition may have asked for another file, or have changed the request.
    guard let present = try await store.record(addition.request.id), present.phase == .finished,
      present.steps.note == nil, present.steps.artifact == addition.lost
    else { return nil }
    var addition = addition
    addition.request = present.added ?? present.request
    let outcome = try await addAll([addition], at: time.date).first
    changes.ids.append(addition.request.id)
    return outcome
  }

  /// Adds what callers have asked for: together if nothing has to be checked before.
  func add(_ additions: Additions) async -> Added {
    var added = Added(before: additions.before)
    let isUnconditional = additions.all.allSatisfy { $0.check == nil }
    for group in isUnconditional ? [additions.all] : additions.all.map({ [$0] }) where !group.isEmpty {
      await add(group, to: &added)
    }
    return added
  }

  /// Adds what several callers have asked for in one transaction of the ledger; one after the other if it is refused.
  private func add(_ group: [Addition], to added: inout Added) async {
    let now = time.date
    do {
      for addition in group { try await addition.check?(self) }
      var outcomes = try await addLostFirst(group.flatMap(\.additions), at: now)[...]
      added.note(outcomes, at: now)
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

  /// Adds downloads, those with a lost artifact first: a download that is added with them then waits for them.
  private func addLostFirst(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome] {
    guard additions.contains(where: { $0.lost != nil }) else { return try await addAll(additions, at: now) }
    let (lost, others) = (
      additions.indices.filter { additions[$0].lost != nil }, additions.indices.filter { additions[$0].lost == nil }
    )
    let order = lost + others
    let outcomes = try await addAll(order.map { additions[$0] }, at: now)
    return zip(order, outcomes).sorted { $0.0 < $1.0 }.map(\.1)
  }

  /// - Throws: The errors of the ledger, and `.ledger` if it has answered for another number of downloads.
  private func addAll(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome] {
    let outcomes = try await change { try await store.add(additions, at: now, number: $0) }
    try checkAnswers(outcomes.count, to: additions.count, "additions")
    return outcomes
  }

  /// Checks that the ledger has answered each of several questions.
  /// - Throws: `.ledger` with the ledger's name.
  func checkAnswers(_ answers: Int, to questions: Int, _ what: String) throws(DownloadError) {
    guard answers != questions else { return }
    throw DownloadError(
      .ledger, "\(ledgerName) has given \(answers) answers to \(questions) \(what): it must give one to each",
      stage: ledgerName)
  }
}
