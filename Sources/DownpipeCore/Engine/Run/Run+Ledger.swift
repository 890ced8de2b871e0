internal import Foundation
internal import Synchronization

// What a run saves in the ledger while it works.
extension Run {
  /// Saves fields of the record in the ledger.
  /// - Throws: `.notOwner` if another owner has taken over the download.
  func save(_ fields: RecordFields) async throws {
    let saved = try await located(context.ledgerName) {
      try await context.store.save(record, fields, at: context.time.date)
    }
    guard saved else {
      stop(.lostLease)
      throw lostLease
    }
  }

  private var lostLease: DownloadError {
    DownloadError(.notOwner, "another owner has taken over this download", stage: context.ledgerName)
  }

  /// Tells watchers that the outcome of this run does not count: what they hear next of the download is another owner's.
  func announceLoss() { announce(.attemptFailed(lostLease)) }

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
        record.forgetBytes()
      }
      return record.earlierArtifact != nil
    }
    findings.withLock { $0.origins = ByteOrigins() }
    return hasEarlier ? [.checkpoint, .steps, .state] : [.checkpoint, .steps]
  }

  /// Removes all bytes of the version in use, first from the ledger, then from the disk, so that the ledger never claims
  /// deleted bytes. The bytes of the version before are used again, if there are any.
  func dropBytes(ofAllVersions: Bool = false) async {
    var keys = read { $0.partialKeys }
    let fields = forgetBytes()
    let isEarlier = update { record in
      guard !ofAllVersions, record.goBackToEarlierVersion() else {
        record.versions = VersionLog(hasOther: record.versions.hasOther, mayChange: record.versions.mayChange)
        return false
      }
      return true
    }
    if isEarlier { keys = [keys[0]] }
    do {
      // Not through `save(_:)`: this has to be done even if the task is cancelled.
      guard try await context.store.save(record, fields, at: context.time.date) else { return }
      try await storage.removePartials(keys)
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

  /// Like the other one, for work that does not wait.
  func located<Result>(
    _ stage: @autoclosure () -> String, as code: DownloadError.Code = .storage, _ work: () throws -> Result
  ) throws -> Result {
    do {
      return try work()
    } catch let error where !(error is CancellationError) {
      throw DownloadError(error, as: code, stage: stage())
    }
  }
}
