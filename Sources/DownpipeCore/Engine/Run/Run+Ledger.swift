internal import Foundation
internal import Synchronization

// What a run writes into the ledger while it works, and how it puts errors into words.
extension Run {
  /// Writes fields of the record.
  /// - Throws: `.notOwner` when another owner has taken the download over.
  func save(_ fields: RecordFields) async throws {
    let saved = try await located(context.ledgerName) {
      try await context.store.save(record, fields, at: context.time.date)
    }
    guard saved else {
      stop(.lostLease)
      throw DownloadError(.notOwner, "another owner has taken this download over", stage: context.ledgerName)
    }
  }

  /// Drops what is on disk from the ledger, before anything else may be written in its place.
  func forgetBytes(because error: DownloadError) async throws {
    announce(.restarted(error))
    forgetBytes()
    try await save([.checkpoint, .steps])
  }

  /// Takes all bytes out of the record: the ledger must not claim them any more.
  func forgetBytes() {
    update { record in
      record.checkpoint = Checkpoint()
      record.steps = StepLog()
    }
    received.store(0, ordering: .relaxed)
  }

  /// Removes the bytes on disk: from the ledger first, so that it never claims what is gone.
  func dropBytes() async {
    forgetBytes()
    do {
      // The task may be cancelled; this has to be done all the same.
      guard try await context.store.save(record, [.checkpoint, .steps], at: context.time.date) else { return }
      try await storage.removePartial(key)
    } catch {
      // The engine does it once the outcome is in the ledger.
      state.withLock { $0.mayHoldBytes = true }
      announce(.attemptFailed(DownloadError(error, as: .storage)))
    }
  }

  /// Runs a stage's work, and gives its errors the stage's name.
  func located<Result>(
    _ stage: @autoclosure () -> String, as code: DownloadError.Code = .storage, _ work: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await work()
    } catch let error where !(error is CancellationError) {
      throw DownloadError(error, as: code, stage: stage())
    }
  }

  // MARK: Failures

  /// Failures after which the bytes are fetched again: the new bytes are no progress.
  private static let startsAgain: Set<DownloadError.Code> = [.contentChanged, .sizeChanged, .digestMismatch]

  /// A failure as the retry policy would see it, were it to end this run.
  func failure(_ error: DownloadError) -> Failure {
    let bytes = read { $0.checkpoint.ranges.prefixLength }
    let progressed =
      bytes > context.furthest.before(id, atLeast: bytesAtStart) && !Self.startsAgain.contains(error.code)
    return read { record in
      Failure(
        error: error, consecutive: progressed ? 1 : record.consecutiveFailures + 1,
        repeated: record.error?.isOfSameKind(as: error) == true && !progressed ? record.repeatedFailures + 1 : 1,
        attempts: record.attempts, random: context.options.random(), now: context.time.date, request: record.request)
    }
  }

  /// What the retry policy says to a failure: the one place where it is asked.
  func decision(on failure: Failure) -> RetryDecision { pipeline.retry.decide(failure) }

  /// Ends the run with a failure.
  func fail(_ error: DownloadError) async -> Outcome {
    let error = read { error.located(stage: nil, url: $0.request.url, attempt: $0.attempts) }
    announce(.attemptFailed(error))
    let failure = failure(error)
    let decision = decision(on: failure)
    context.furthest.note(id, read { $0.checkpoint.ranges.prefixLength })
    update { record in
      record.consecutiveFailures = failure.consecutive
      record.repeatedFailures = failure.repeated
    }
    switch decision {
    case .restart:
      await dropBytes()
    // These bytes are proved not to be the file's: to resume by hand means to fetch others, or it would fail forever.
    case .giveUp where Self.startsAgain.contains(error.code), .refresh where error.code == .digestMismatch:
      await dropBytes()
    case .giveUp, .refresh, .resume, .wait:
      break
    }
    return .failed(error, decision)
  }

  // MARK: Artifacts in the ledger

  /// An artifact as the ledger keeps it.
  func stored(_ artifact: Artifact) -> StoredArtifact { StoredArtifact(artifact, in: storage) }
}

extension StoredArtifact {
  /// An artifact as the ledger keeps it.
  init(_ artifact: Artifact, in storage: any Storage) {
    self.init(
      kind: artifact.kind, path: artifact.path.map(storage.storedPath(for:)), name: artifact.name,
      size: artifact.size.bytes, mediaType: artifact.mediaType, modifiedAt: artifact.modifiedAt)
  }
}

extension DownloadError {
  /// Whether a failure is of the kind that rows of a failure table tell apart.
  fileprivate func isOfSameKind(as other: DownloadError) -> Bool {
    code == other.code && (code != .httpStatus || httpStatus == other.httpStatus)
  }
}

extension Storage {
  /// The artifact behind what the ledger kept of it.
  func artifact(from stored: StoredArtifact) throws -> Artifact {
    let location: Artifact.Location =
      if let path = stored.path { .path(try self.path(forStored: path)) } else { .memory([]) }
    return Artifact(
      kind: stored.kind, location: location, name: stored.name, size: ByteCount(stored.size),
      mediaType: stored.mediaType, modifiedAt: stored.modifiedAt)
  }
}
