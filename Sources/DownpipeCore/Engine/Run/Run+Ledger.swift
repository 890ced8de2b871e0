internal import Foundation
internal import Synchronization

// What a run saves in the ledger while it works, and how it ends with a failure.
extension Run {
  /// Saves fields of the record in the ledger.
  /// - Throws: `.notOwner` if another owner has taken over the download.
  func save(_ fields: RecordFields) async throws {
    let saved = try await located(context.ledgerName) {
      try await context.store.save(record, fields, at: context.time.date)
    }
    guard saved else {
      stop(.lostLease)
      throw DownloadError(.notOwner, "another owner has taken over this download", stage: context.ledgerName)
    }
  }

  /// Removes all bytes from the record in the ledger, before they are overwritten on disk.
  func forgetBytes(because error: DownloadError) async throws {
    announce(.restarted(error))
    try await save(forgetBytes())
  }

  /// Removes all bytes from the record, without saving it.
  ///
  /// - Returns: The fields to save.
  @discardableResult
  func forgetBytes() -> RecordFields {
    let hasEarlier = update { record in
      if record.isAsking {
        record.fetchAnew()
      } else {
        record.checkpoint = Checkpoint()
        record.dropSteps()
      }
      return record.earlierArtifact != nil
    }
    state.withLock { $0.origins = ByteOrigins() }
    received.store(0, ordering: .relaxed)
    return hasEarlier ? [.checkpoint, .steps, .state] : [.checkpoint, .steps]
  }

  /// Removes all bytes, first from the ledger, then from the disk, so that the ledger never claims deleted bytes.
  func dropBytes() async {
    let fields = forgetBytes()
    do {
      // Not through `save(_:)`: this has to be done even if the task is cancelled.
      guard try await context.store.save(record, fields, at: context.time.date) else { return }
      try await storage.removePartial(key)
    } catch {
      // The engine deletes the bytes after the outcome has been saved.
      state.withLock { $0.mayHoldBytes = true }
      announce(.attemptFailed(DownloadError(error, as: .storage)))
    }
  }

  /// Runs the work of a stage, and adds the stage's name to its errors.
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

  /// Failures after which the file is downloaded again from the first byte, so that the bytes do not count as progress.
  private static let startsAgain: Set<DownloadError.Code> = [.contentChanged, .sizeChanged, .digestMismatch, .damaged]
  /// Those of them that say that the server has another file now.
  private static let changes: Set<DownloadError.Code> = [.contentChanged, .sizeChanged]

  /// Describes an error for the retry policy, as if it ended this run.
  func failure(_ error: DownloadError) -> Failure {
    let bytes = read { $0.partialRanges.byteCount }
    let progressed =
      bytes > context.furthest.before(id, atLeast: bytesAtStart) && !Self.startsAgain.contains(error.code)
    return read { record in
      let repeated = record.error?.isOfSameKind(as: error) == true && !progressed ? record.repeatedFailures + 1 : 1
      var consecutive = progressed ? 1 : record.consecutiveFailures + 1
      // To notice that the file has changed is no failure of the server, unless it happens again.
      if repeated == 1, Self.changes.contains(error.code) { consecutive = max(1, record.consecutiveFailures) }
      return Failure(
        error: error, consecutive: consecutive, repeated: repeated,
        attempts: record.attempts, random: context.options.random(), now: context.time.date, request: record.request)
    }
  }

  /// The retry policy's decision. The policy is not called from anywhere else.
  func decision(on failure: Failure) -> RetryDecision { pipeline.retry.decide(failure) }

  /// Ends the run with a failure.
  func fail(_ error: DownloadError) async -> Outcome {
    let error = naming(error).located(stage: nil, url: read { $0.request.url }, attempt: read { $0.attempts })
    announce(.attemptFailed(error))
    let failure = failure(error)
    let decision = decision(on: failure)
    context.furthest.note(id, read { $0.partialRanges.byteCount })
    update { record in
      record.consecutiveFailures = failure.consecutive
      record.repeatedFailures = failure.repeated
    }
    let isWrong = Self.provesWrongBytes.contains(error.code)
    // Also if an earlier run has got bytes of mirrors.
    if isWrong { context.doubtedMirrors.insert(id) }
    forgetExclusions(after: error, decision)
    switch decision {
    case .restart:
      await dropBytes()
    // These bytes are proved wrong: if they were kept, every resume by hand would fail again.
    case .giveUp where Self.startsAgain.contains(error.code) || state.withLock({ $0.dropsBytes }),
      .refresh where isWrong:
      await dropBytes()
    case .giveUp, .refresh, .resume, .wait:
      break
    }
    return .failed(error, decision)
  }

  // MARK: Artifacts in the ledger

  func stored(_ artifact: Artifact) -> StoredArtifact { StoredArtifact(artifact, in: storage) }
}

extension StoredArtifact {
  /// Creates the form of an artifact that the ledger stores.
  init(_ artifact: Artifact, in storage: any Storage) {
    self.init(
      kind: artifact.kind, path: artifact.path.map(storage.storedPath(for:)), name: artifact.name,
      size: artifact.size.bytes, mediaType: artifact.mediaType, modifiedAt: artifact.modifiedAt,
      isReused: artifact.isReused)
  }

  /// The artifact at a location.
  func artifact(at location: Artifact.Location) -> Artifact {
    var artifact = Artifact(
      kind: kind, location: location, name: name, size: ByteCount(size), mediaType: mediaType, modifiedAt: modifiedAt)
    artifact.isReused = isReused
    return artifact
  }
}

extension DownloadError {
  /// Whether two failures are of the same kind, as the rows of a failure table are.
  func isOfSameKind(as other: DownloadError) -> Bool {
    code == other.code && (code != .httpStatus || httpStatus == other.httpStatus)
  }
}

extension Storage {
  /// The artifact for its form in the ledger.
  func artifact(from stored: StoredArtifact) throws -> Artifact {
    guard let path = stored.path else {
      let described = stored.artifact(at: .memory([]))
      return published(described) ?? described
    }
    return stored.artifact(at: .path(try self.path(forStored: path)))
  }
}
