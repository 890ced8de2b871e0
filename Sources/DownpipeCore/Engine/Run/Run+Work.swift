internal import Foundation
internal import Synchronization

// The way of one download: link, transfer, steps, publication.
extension Run {
  /// Works until the artifact is published or something ends the work. What was reached is in the record.
  func work() async -> Outcome {
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

  /// Goes on at the next mirror, if the retry policy would not try a place again that is too slow. This task was
  /// cancelled, so that another one has to do the work.
  private func nextPlace(after failure: DownloadError) async -> Outcome? {
    let count = read { 1 + $0.request.mirrors.count }
    let place = state.withLock { $0.place }
    guard place + 1 < count, case .giveUp = decision(on: self.failure(failure)) else { return nil }
    announce(.attemptFailed(failure))
    let task = state.withLock { state -> Task<Outcome, Never>? in
      // A stop for another reason comes first.
      guard case .tooSlow = state.stopReason else { return nil }
      state.stopReason = nil
      state.place = place + 1
      let task = Task { await work() }
      state.task = Task {
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

  /// What becomes of a run that was told to stop.
  private func stopped(for reason: StopReason) async -> Outcome {
    if reason == .lostLease { return .notOwned }
    if reason == .cancel || reason == .remove || reason == .restart { await dropBytes() }
    return .stopped(reason)
  }

  private func produce() async throws -> Artifact {
    if read({ $0.awaited }) == .link { try await refreshLink() }
    if let artifact = try await existing() { return artifact }
    var file = try await completeFile()
    do {
      try await process(&file)
      let artifact = try await publish(file)
      // What is left of the partial and what the steps left lying is of no use any more. A finished download is not
      // looked at again, so it goes first, and a storage removes nothing that is open; the lease keeps others away.
      file.close()
      if file.mayLeaveTraces { try? await storage.removePartial(key) }
      return artifact
    } catch {
      await keep(file)
      throw error
    }
  }

  /// Keeps complete bytes that could not be published for the next run.
  private func keep(_ file: CompleteFile) async {
    if file.isUntouched, read({ !$0.checkpoint.ranges.isEmpty }) {
      do { try file.partial.persist() } catch { forgetBytes() }
      markTail(of: file.partial)
    }
    file.close()
  }

  /// A file that is there already is as good as a downloaded one, unless it has to have a digest: then the bytes are
  /// fetched and verified, and the storage keeps the old file when they are the same.
  private func existing() async throws -> Artifact? {
    let request = read { record in
      record.checkpoint.ranges.isEmpty && record.steps.artifact == nil && record.request.expectedDigests.isEmpty
        ? record.request : nil
    }
    guard let request else { return nil }
    return try await located(storage.name) { try await storage.existing(for: request) }
  }

  /// The complete bytes: those of an earlier run, or of a transfer.
  private func completeFile() async throws -> CompleteFile {
    if let file = try await earlierFile() { return file }
    return try await Transfer(self).perform()
  }

  /// What an earlier run has completed, with what steps have made of it; `nil` when there is nothing of the kind.
  private func earlierFile() async throws -> CompleteFile? {
    let record = record
    guard let stored = record.steps.artifact else { return nil }
    let names = pipeline.steps.map(\.name)
    let isSameChain = names.starts(with: record.steps.completed)
    let artifact = try storage.artifact(from: stored)
    // A step that left a note knows better what became of its input; of one in memory nothing is left.
    let note = record.steps.note.map(StepNote.init(stored:))
    let next = try await nextStep(after: record.steps.completed.count, artifact)
    let hasNote = stored.path != nil && note?.isFor(next) == true
    if note != nil, !hasNote { update { $0.steps.note = nil } }
    let isThere = await storage.contains(artifact)
    if isSameChain, hasNote || isThere {
      return CompleteFile(
        artifact: artifact, partial: try await heldPartial(), isUntouched: false, mayLeaveTraces: true)
    }
    return try await restartChain(record, isSameChain: isSameChain)
  }

  /// The name of the step that is next, or of the storage, which publishes.
  private func nextStep(after done: Int, _ artifact: Artifact) async throws -> String {
    for step in pipeline.steps.dropFirst(done) {
      guard read({ $0.request.steps.contains(step.name) }) else { continue }
      if step.isNeeded(try await processingContext(for: artifact, of: step.name, withWorkspace: false)) {
        return step.name
      }
    }
    return storage.name
  }

  /// The chain has changed since, or what it stood at is gone: it starts again from the partial, if that is complete.
  private func restartChain(_ record: DownloadRecord, isSameChain: Bool) async throws -> CompleteFile? {
    let partial = try await heldPartial()
    let checkpoint = record.checkpoint
    if case .known(let total) = checkpoint.total, checkpoint.ranges.prefixLength == total,
      (try? partial.size()) == total, try checkpoint.marks.allSatisfy({ try partial.matches($0) })
    {
      update { $0.steps = StepLog() }
      try await save([.steps])
      let artifact = try partial.artifact(name: nameOfBytes, mediaType: checkpoint.mediaType)
      return CompleteFile(artifact: artifact, partial: partial, isUntouched: true, mayLeaveTraces: true)
    }
    try? partial.close()
    try await forgetBytes(
      because: DownloadError(
        .storage,
        isSameChain
          ? "the complete file has disappeared from the storage"
          : "the steps of the pipeline have changed, and the bytes that they begin with are gone"))
    return nil
  }

  /// The partial, held while its finished bytes, or what steps have made of them, are worked on.
  private func heldPartial() async throws -> any Partial {
    try await located(storage.name) { try await storage.openPartial(key, isNew: false) }
  }

  private func publish(_ file: CompleteFile) async throws -> Artifact {
    guard storage.isStaged(file.artifact) else { return file.artifact }
    if pipeline.steps.isEmpty { announce(state: .processing(step: storage.name)) }
    update { _ = $0.apply(.bytesComplete) }
    let context = try await processingContext(for: file.artifact, of: storage.name, withWorkspace: false)
    return try await located(storage.name) {
      try await storage.publish(
        file.artifact, of: file.isUntouched ? file.partial : nil, at: context.request.destination, in: context)
    }
  }

  // MARK: The link

  /// Has a dead link renewed; the fresh one is in the ledger before it is used.
  private func refreshLink() async throws {
    guard let refresher = pipeline.refresher else { return }
    let record = record
    let fresh: FreshLink
    do {
      fresh = try await refresher.refresh(
        ExpiredLink(request: record.request, error: record.error, received: record.checkpoint.ranges.byteCount))
    } catch let error where !(error is CancellationError) {
      // What other errors say of themselves may hold the link.
      throw error as? DownloadError
        ?? DownloadError(
          .linkExpired, "there is no fresh link: \(type(of: error)) was thrown", stage: refresher.name, cause: error)
    }
    var request = record.request
    request.url = fresh.url
    request.headers = fresh.headers ?? request.headers
    try request.check(against: pipeline)
    state.withLock { $0.hasFreshLink = true }
    update { record in
      record.request.url = fresh.url
      if let headers = fresh.headers { record.request.headers = headers }
      record.awaited = nil
    }
    try await save([.link, .state])
    announce(.linkRefreshed(to: fresh.url.redacted))
  }
}

/// Complete bytes on their way through the steps.
struct CompleteFile: Sendable {
  var artifact: Artifact
  /// The partial that they came from, held until the artifact is published.
  let partial: any Partial
  /// Whether the artifact is the partial's own bytes.
  var isUntouched: Bool
  /// Whether there may be a named partial or a workspace to be removed.
  var mayLeaveTraces: Bool

  /// Lets go of the partial; its errors have come to light before.
  func close() { try? partial.close() }
}
