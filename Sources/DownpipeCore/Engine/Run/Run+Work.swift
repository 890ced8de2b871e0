internal import Foundation
internal import Synchronization

// The work of a run: link, transfer, steps, publication.
extension Run {
  /// Works until the artifact is published or the work fails or is stopped. The record has the progress.
  func work() async -> Outcome {
    defer { context.room.release(self) }
    do {
      return .published(try await produce())
    } catch {
      switch stopReason {
      case .tooSlow(let failure):
        if let outcome = await nextPlace(after: failure) { return outcome }
        return await fail(failure)
      case let reason?:
        return await stopped(for: reason)
      case nil where Task.isCancelled:
        return .stopped(.shutdown)
      case nil:
        let error = DownloadError(error, as: .processing)
        return error.code == .notOwner ? .notOwned : await fail(error)
      }
    }
  }

  /// Continues with the next mirror, if the retry policy would not retry a URL that is too slow. This task has been
  /// cancelled, so a new task does the work.
  private func nextPlace(after failure: DownloadError) async -> Outcome? {
    let place = state.withLock { $0.place }
    guard let next = self.place(from: place + 1), case .giveUp = decision(on: self.failure(failure)) else { return nil }
    announce(.attemptFailed(failure))
    let task = state.withLock { state -> Task<Outcome, Never>? in
      // A stop for another reason has precedence.
      guard case .tooSlow = state.stopReason else { return nil }
      state.stopReason = nil
      state.place = next
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
  private func stopped(for reason: StopReason) async -> Outcome {
    if reason == .lostLease { return .notOwned }
    if reason == .cancel || reason == .remove || reason == .restart { await dropBytes() }
    return .stopped(reason)
  }

  private func produce() async throws -> Artifact {
    // The pipeline may have changed since the request was added: nothing may finish unchecked.
    try request.checkDigests(against: pipeline.steps)
    // A restart begins anew.
    if read({ $0.attempts }) <= 1 { context.excludedPlaces.forget(key) }
    if read({ $0.awaited }) == .link { try await refreshLink() }
    try await prepareRefresh()
    if let artifact = try await existing() { return artifact }
    while true {
      do {
        let artifact = try await fetchAndPublish()
        context.excludedPlaces.forget(key)
        return artifact
      } catch let error as DownloadError {
        guard try await goesOn(after: error) else { throw error }
      }
    }
  }

  private func fetchAndPublish() async throws -> Artifact {
    guard var file = try await completeFile() else { return try unchangedArtifact() }
    do {
      try await process(&file)
      await file.following?.end()
      let artifact = try await publish(file)
      await removeEarlierArtifact(unlessAt: artifact)
      // The partial and the workspace are no longer needed. They are deleted before the download is recorded as
      // finished, because a finished download is not visited again. A storage deletes only closed partials; the lease
      // keeps other owners from opening it meanwhile.
      file.close()
      if file.mayLeaveTraces { try? await storage.removePartial(key) }
      return artifact
    } catch {
      await file.following?.end()
      await keep(file)
      throw error
    }
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
    let request = read { record in
      // What exists may be the artifact that is to be replaced.
      record.checkpoint.ranges.isEmpty && record.steps.artifact == nil && !record.request.expectsDigest
        && record.earlierArtifact == nil && record.refreshing == nil
        && record.request.headStart?.proof != .digests ? record.request : nil
    }
    guard let request else { return nil }
    return try await located(storageName) { try await storage.existing(for: request) }
  }

  /// The complete bytes, from an earlier run or a transfer; `nil` if a refreshed file has not changed.
  private func completeFile() async throws -> CompleteFile? {
    if !read({ $0.isAsking }), let file = try await earlierFile() { return file }
    return try await Transfer(self).perform()
  }

  /// The complete bytes of an earlier run, or the artifact of its last completed step; `nil` if there is none.
  private func earlierFile() async throws -> CompleteFile? {
    guard let stored = read({ $0.steps.artifact }) else { return nil }
    let record = record
    let chain = chain
    let isSameChain = chain.names.starts(with: record.steps.completed)
    let artifact = try storage.artifact(from: stored)
    // A step with a note can find its input even if the storage cannot. An artifact in memory is lost in any case.
    let note = record.steps.note.map(StepNote.init(stored:))
    let next = try await nextStep(of: chain, after: record.steps.completed.count, artifact)
    let hasNote = stored.path != nil && note?.isFor(next) == true
    if note != nil, !hasNote { update { $0.steps.note = nil } }
    let isThere = await storage.contains(artifact)
    if isSameChain, hasNote || isThere {
      return CompleteFile(
        artifact: artifact, partial: try await heldPartial(), isUntouched: false, mayLeaveTraces: true)
    }
    return try await restartChain(record, isSameChain: isSameChain)
  }

  /// The name of the next step, or that of the storage if only publication is left.
  private func nextStep(of chain: RunChain, after done: Int, _ artifact: Artifact) async throws -> String {
    for link in chain.links.dropFirst(done) {
      let name = link.step.name
      guard link.isDecoder || read({ $0.request.steps.contains(name) }) else { continue }
      let context = try await processingContext(for: artifact, of: name, digests: link.digests, withWorkspace: false)
      if link.step.isNeeded(context) { return name }
    }
    return storageName
  }

  /// Starts the chain of steps again from the partial, because the chain has changed or its artifact no longer exists;
  /// `nil` if the partial is not complete.
  private func restartChain(_ record: DownloadRecord, isSameChain: Bool) async throws -> CompleteFile? {
    let partial = try await heldPartial()
    let checkpoint = record.checkpoint
    if case .known(let total) = checkpoint.total, checkpoint.ranges.prefixLength == total,
      (try? partial.size()) == total, try checkpoint.marks.allSatisfy({ try partial.matches($0) })
    {
      update { $0.dropSteps() }
      try await save([.steps, .state])
      // As after a transfer: the steps may change the permissions of the file, and nothing else does any more.
      try partial.finish()
      let artifact = try partial.artifact(name: nameOfBytes, mediaType: checkpoint.mediaType)
      return CompleteFile(artifact: artifact, partial: partial, isUntouched: true, mayLeaveTraces: true)
    }
    try? partial.close()
    try await forgetBytes(
      because: DownloadError(
        .storage,
        isSameChain
          ? "the complete file no longer exists in the storage"
          : "the steps of the pipeline have changed, and the bytes they start from no longer exist"))
    return nil
  }

  /// The partial, kept open while its complete bytes, or the artifacts of steps, are processed.
  private func heldPartial() async throws -> any Partial {
    try await located(storageName) { try await storage.openPartial(key, isNew: false) }
  }

  private func publish(_ file: CompleteFile) async throws -> Artifact {
    guard storage.isStaged(file.artifact) else { return file.artifact }
    try checkLength(of: file)
    let chain = chain
    if chain.links.isEmpty { announce(state: .processing(step: storageName)) }
    update { _ = $0.apply(.bytesComplete) }
    let context = try await processingContext(
      for: file.artifact, of: storageName, digests: chain.digests, withWorkspace: false)
    return try await located(storageName) {
      try await storage.publish(
        file.artifact, of: file.isUntouched ? file.partial : nil, at: context.request.destination, in: context)
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
    guard let earlier = read({ $0.earlierArtifact }) else { return }
    let new = stored(artifact)
    if new.path == earlier.path, new.path != nil || new.name == earlier.name { return }
    do {
      try await storage.remove(try storage.artifact(from: earlier))
    } catch {
      announce(.refused(DownloadError(error, as: .storage, stage: storageName)))
    }
  }

  // MARK: The link

  /// Refreshes an expired link. The fresh link is saved in the ledger before it is used.
  private func refreshLink() async throws {
    guard let refresher = pipeline.refresher else { return }
    let record = record
    let fresh: FreshLink
    do {
      fresh = try await refresher.refresh(
        ExpiredLink(request: record.request, error: record.error, received: record.checkpoint.ranges.byteCount))
    } catch let error where !(error is CancellationError) {
      // The descriptions of other errors may contain the link, which is a secret: only the type is shown.
      throw error as? DownloadError
        ?? DownloadError(
          .linkExpired, "the link could not be refreshed: \(type(of: error))", stage: refresher.name, cause: error)
    }
    var request = record.request
    request.url = fresh.url
    if let headers = fresh.headers {
      request.headers = headers
    } else {
      request.bindHeaders(givenFor: record.request.url)
    }
    try request.check(against: pipeline)
    try await keep(request, inPlaceOf: record.request)
    update { $0.awaited = nil }
    try await save([.state])
    announce(.linkRefreshed(to: fresh.url.redacted))
  }

  /// Saves a fresh link, unless the URL of the request was changed meanwhile.
  private func keep(_ fresh: DownloadRequest, inPlaceOf expired: DownloadRequest) async throws {
    let saved = try await located(context.ledgerName) { [generation = key.generation] in
      try await context.store.update(id, at: context.time.date) { saved in
        guard saved.generation == generation, !saved.request.hasOtherURL(than: expired) else { return }
        saved.request.url = fresh.url
        saved.request.headers = fresh.headers
      }
    }
    if let saved, saved.generation == key.generation, saved.request.hasOtherURL(than: fresh) {
      stop(.changed)
      throw CancellationError()
    }
    state.withLock { state in
      state.hasFreshLink = true
      state.request.url = fresh.url
      state.request.headers = fresh.headers
      state.record.request.url = fresh.url
      state.record.request.headers = fresh.headers
    }
  }
}

/// Complete bytes while the steps process them.
struct CompleteFile: Sendable {
  var artifact: Artifact
  /// The partial of the bytes, kept open until the artifact is published.
  let partial: any Partial
  /// Whether the artifact is the partial's own bytes.
  var isUntouched: Bool
  /// Whether there may be a named partial or a workspace to delete.
  var mayLeaveTraces: Bool
  /// What followed the transfer of the bytes; `nil` if they are of an earlier run.
  var following: Following?

  /// Closes the partial. Errors are ignored: flushing the bytes has reported them before.
  func close() { try? partial.close() }
}

extension DownloadError {
  /// Another program has cut the partial while it was written.
  static func shortened(to size: Int64, of written: Int64) -> DownloadError {
    DownloadError(
      .storage,
      "another program has cut the unfinished file: it has \(size) of the \(written) bytes written to it. Resume the "
        + "download to fetch the file again")
  }
}
