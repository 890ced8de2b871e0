internal import Foundation
internal import Synchronization

// The work of a run: link, transfer, steps, publication.
extension Run {
  /// Works until the artifact is published or the work fails or is stopped. The record has the progress.
  func work() async -> Outcome {
    // The calls of its partials would block, too.
    if storage.mayBlock { await context.executors.blocking { await self.attempt() } } else { await attempt() }
  }

  private func attempt() async -> Outcome {
    defer { context.room.release(self) }
    do {
      return .published(try await produce())
    } catch {
      switch stopReason {
      case .tooSlow(let failure):
        let judged = judge(failure)
        if let outcome = await nextPlace(after: judged) { return outcome }
        return await fail(judged)
      case let reason?:
        return await stopped(for: reason)
      case nil where Task.isCancelled:
        return .stopped(.shutdown)
      case nil:
        if let judged = error as? JudgedFailure { return await fail(judged) }
        let error = DownloadError(error, as: .processing)
        return error.code == .notOwner ? .notOwned : await fail(judge(error))
      }
    }
  }

  /// Continues with the next mirror, if the retry policy would not retry a URL that is too slow. This task has been
  /// cancelled, so a new task does the work.
  private func nextPlace(after judged: JudgedFailure) async -> Outcome? {
    let places = places
    guard let next = places.next(after: places.current), isFinal(judged, at: places.current) else { return nil }
    announce(.attemptFailed(judged.error))
    let task = state.withLock { state -> Task<Outcome, Never>? in
      // A stop for another reason has precedence.
      guard case .tooSlow = state.stopReason else { return nil }
      state.stopReason = nil
      findings.withLock { $0.places.current = next }
      let task = context.executors.start { [self] in await work() }
      state.task = context.executors.start {
        _ = await withTaskCancellationHandler {
          await task.value
        } onCancel: {
          task.cancel()
        }
      }
      return task
    }
    return if let task { await task.value } else { await stopped(for: stopReason ?? .shutdown) }
  }

  /// The outcome of a stopped run.
  func stopped(for reason: StopReason) async -> Outcome {
    if reason == .lostLease { return .notOwned }
    if reason == .changed {
      let (record, more) = (record, fetched.load(ordering: .relaxed))
      let origins = findings.withLock { $0.origins }
      context.placeMemory.keep(origins, of: record, fetched: record.bytesFetched.addingSaturated(more))
    }
    if reason == .cancel || reason == .remove || reason == .restart { await dropBytes(ofAllVersions: true) }
    return .stopped(reason)
  }

  private func produce() async throws -> Artifact {
    if let failure = context.policies.gateFailure { throw failure }
    // The pipeline may have changed since the request was added: nothing may finish unchecked.
    try request.checkDigests(against: pipeline.steps)
    let (isNew, hasBytes) = read { ($0.attempts <= 1 && $0.bytesFetched == 0, !$0.partialRanges.isEmpty) }
    if isNew {
      // Also after a restart.
      context.placeMemory.forget(key)
    } else if let origins = context.placeMemory.takeOrigins(of: record), hasBytes {
      findings.withLock { $0.origins = origins }
    }
    if !read({ $0.isAsking }) { goBackFromEmptyVersion() }
    if read({ $0.awaited }) == .link { try await LinkRefresh(run: self).perform() }
    try await prepareRefresh()
    if let artifact = try await existing() {
      // A restart leaves the partial to the next transfer, which is not needed.
      try? await storage.removePartials(read { $0.partialKeys })
      context.placeMemory.forget(key)
      return artifact
    }
    while true {
      do {
        let artifact = try await fetchAndPublish()
        context.placeMemory.forget(key)
        return artifact
      } catch let error where !(error is CancellationError) {
        let known = (error as? JudgedFailure)?.error ?? error as? DownloadError
        guard let known, try await goesOn(after: known) else { throw error }
      }
    }
  }

  private func fetchAndPublish() async throws -> Artifact {
    guard let file = try await completeFile() else { return try unchangedArtifact() }
    return try await finish(file)
  }

  /// Runs the steps, and publishes.
  private func finish(_ complete: CompleteFile) async throws -> Artifact {
    var file = complete
    do {
      try await removeLeftArtifacts(unlessAt: file.artifact)
      try await process(&file)
      await file.following?.end()
      let artifact = try await publish(file)
      guard await isKept(artifact) else {
        file.lastSeenBy = storageName
        throw DownloadError(
          .storage, "the file was deleted with a removed download at the same place", stage: storageName)
      }
      await removeEarlierArtifact(unlessAt: artifact)
      // The partial and the workspace are no longer needed. They are deleted before the download is recorded as
      // finished, because a finished download is not visited again. The partial is closed before: not every storage
      // deletes one that is open. The lease keeps other owners from opening it meanwhile.
      file.close()
      if file.mayLeaveTraces || read({ $0.versions.hasOther }) {
        try? await storage.removePartials(read { $0.partialKeys })
      }
      return artifact
    } catch {
      await file.following?.end()
      if let error = error as? DownloadError, await isGone(file, error) {
        file.close()
        if let again = try await EarlierFile(run: self).restart(because: error) { return try await finish(again) }
        try await transferAgain()
        return try await fetchAndPublish()
      }
      await keep(file)
      throw error
    }
  }

  /// Whether the stage that has left a note about an artifact does not find it, so that only the partial or another transfer
  /// helps: another machine has it, or another program has removed it.
  private func isGone(_ file: CompleteFile, _ error: DownloadError) async -> Bool {
    guard let stage = file.lastSeenBy, error.stage == stage, [.storage, .processing].contains(error.code),
      stopReason == nil
    else { return false }
    return await !storage.contains(file.artifact)
  }

  /// Leaves the steps for another transfer, after the bytes have been forgotten.
  private func transferAgain() async throws {
    update { _ = $0.apply(.bytesWrong) }
    state.withLock { ($0.stepProgress, $0.shownStepProgress) = (nil, nil) }
    try await save([.state])
    announce(state: .transferring)
  }

  /// Keeps the complete bytes for the next run, because they could not be published.
  private func keep(_ file: CompleteFile) async {
    if file.isUntouched, read({ !$0.checkpoint.ranges.isEmpty }) {
      do { try file.partial.persist() } catch { forgetBytes() }
      markTail(of: file.partial)
    }
    file.close()
  }

  /// The file that exists at the destination, if it may take the place of a download.
  ///
  /// If the request expects a digest, the bytes are downloaded and verified all the same; the storage keeps the
  /// existing file if it is the same.
  private func existing() async throws -> Artifact? {
    let request = state.withLock { state -> DownloadRequest? in
      let record = state.record
      // What exists may be the artifact that is to be replaced.
      guard
        record.checkpoint.ranges.isEmpty && record.steps.artifact == nil && !record.request.expectsDigest
          && record.earlierArtifact == nil && record.refreshing == nil && record.request.headStart?.proof != .digests
      else { return nil }
      state.request.destination = record.request.destination
      return record.request
    }
    guard let request else { return nil }
    let artifact = try await located(storageName) { try await storage.existing(for: request) }
    guard let artifact, await isKept(artifact) else { return nil }
    return artifact
  }

  /// Whether a file that has been published or found is there. From now on no deletion takes it for that of a removed download.
  private func isKept(_ artifact: Artifact) async -> Bool {
    guard let path = artifact.path.map(storage.storedPath(for:)) else { return true }
    state.withLock { $0.place = path }
    return await context.deletions.keep(path) ? await storage.contains(artifact) : true
  }

  /// The complete bytes, from an earlier run or a transfer; `nil` if a refreshed file has not changed.
  private func completeFile() async throws -> CompleteFile? {
    if !read({ $0.isAsking }), let file = try await EarlierFile(run: self).open() { return file }
    var transfer = Transfer(self)
    var versions = 0
    while true {
      do { return try await transfer.perform() } catch let error where !(error is CancellationError) {
        transfer.opened?.discard()
        guard versions < Self.mostVersions, let version = anotherVersion(after: error) else {
          goBackFromEmptyVersion()
          guard let version = error as? AnotherVersion else { throw error }
          version.discard()
          throw version.error
        }
        versions += 1
        do { try await begin(version) } catch {
          version.discard()
          throw error
        }
        transfer = Transfer(self, with: version)
      }
    }
  }

  private func publish(_ file: CompleteFile) async throws -> Artifact {
    guard storage.isStaged(file.artifact) else { return file.artifact }
    try checkLength(of: file)
    let chain = chain
    if chain.links.isEmpty { announce(state: .processing(step: storageName)) }
    beginSteps()
    try checkLease()
    let context = try processingContext(for: file.artifact, of: storageName, digests: chain.digests)
    let artifact = try await located(storageName) {
      try await storage.publish(
        file.artifact, of: file.isUntouched ? file.partial : nil, at: context.request.destination, in: context)
    }
    notePlaced(artifact)
    return artifact
  }

  /// Checks that no other owner may have taken over the download since it was leased.
  func checkLease() throws {
    guard let end = state.withLock({ $0.leaseEnd }), end <= context.time.now else { return }
    stop(.leaseEnds)
    throw CancellationError()
  }

  /// The lease for a source, which checks it once more before it sends.
  var requestLease: RequestLease {
    context.store.leasesExpire ? RequestLease { (try? self.checkLease()) != nil } : .unlimited
  }

  /// Notes that the lease was renewed.
  ///
  /// - Parameter now: When the ledger's answer arrived. A lease that had ended by then may have been another owner's when
  ///   the ledger renewed.
  func renewLease(until end: Duration, at now: Duration) {
    state.withLock { state in
      if let before = state.leaseEnd, before > now { state.leaseEnd = max(before, end) }
    }
  }

  /// Checks that the partial still has all bytes that were written to it.
  ///
  /// - Throws: ``DownloadError`` with `.storage` if another program has cut it. Its bytes are forgotten then.
  func checkLength(of file: CompleteFile) throws {
    guard file.isUntouched, let written = file.artifact.size.bytes else { return }
    let size = try file.partial.size()
    guard size < written else { return }
    forgetBytes()
    throw DownloadError.shortened(to: size, of: written).located(stage: storageName, url: nil, attempt: nil)
  }

  /// Removes the artifact of an earlier fetch, unless the new one has taken its place.
  private func removeEarlierArtifact(unlessAt artifact: Artifact) async {
    // A folder that could not be discarded may have the user's files in it by now.
    guard let earlier = read({ $0.earlierArtifact?.replaceable }) else { return }
    let new = stored(artifact)
    if new.path == earlier.path, new.path != nil || new.name == earlier.name {
      // The new one has not replaced the companions that it does not have.
      let kept = Set(new.files.map(\.path))
      for companion in earlier.files.dropFirst() where !kept.contains(companion.path) { await remove(companion) }
      return
    }
    await remove(earlier)
  }

  /// Removes what fetches that were given up have left in other places than the earlier artifact. Done before the steps, which
  /// may give the same names again.
  private func removeLeftArtifacts(unlessAt artifact: Artifact) async throws {
    let left = read { $0.leftArtifacts }
    guard !left.isEmpty else { return }
    try checkLease()
    let present = stored(artifact).path
    for stored in left where stored.path != present { await remove(stored) }
    update { $0.leftArtifacts = [] }
    try await save([.state])
  }

  /// Removes an artifact of a fetch before this one. The run goes on if that fails.
  private func remove(_ stored: StoredArtifact) async {
    do {
      try await storage.remove(stored)
    } catch {
      announce(.refused(DownloadError(error, as: .storage, stage: storageName)))
    }
  }
}
