internal import Foundation
internal import Synchronization

/// One attempt at one download: transfer, steps, publication. It decides nothing about further
/// attempts; it leaves what was reached in `run.record` and throws.
///
/// A class, since everything that works on the attempt holds it, and its parts are many.
final class Attempt: Sendable {
  let run: Run
  let pipeline: Pipeline
  let store: any LedgerStore
  let options: DownloaderOptions
  let hub: EventHub
  let trust: RangeMemory

  init(
    run: Run, pipeline: Pipeline, store: any LedgerStore, options: DownloaderOptions, hub: EventHub,
    trust: RangeMemory
  ) {
    self.run = run
    self.pipeline = pipeline
    self.store = store
    self.options = options
    self.hub = hub
    self.trust = trust
  }

  var storage: any Storage { pipeline.storage }

  /// Works until the artifact is published.
  /// - Throws: whatever ended the attempt; bytes received by then are in the record's checkpoint.
  func perform() async throws -> Artifact {
    if run.read({ $0.awaited }) == .link { try await refreshLink() }
    let record = run.record
    // A file that is there already is as good as a downloaded one, unless it has to have a digest: then the
    // bytes are fetched and verified, and the storage keeps the old file when they are the same.
    if record.checkpoint.ranges.isEmpty, record.steps.artifact == nil, record.request.expectedDigests.isEmpty,
      let existing = try await located(storage.name, { try await storage.existing(for: record.request) })
    {
      return existing
    }
    if let stored = record.steps.artifact {
      let artifact = try storage.artifact(from: stored)
      // A step that left a note knows better what became of its input; of one in memory nothing is left. Asked before
      // the partial is held, which makes it where it is missing.
      let hasNote = record.steps.note != nil && stored.path != nil
      let isThere = await storage.contains(artifact)
      if isThere || hasNote {
        try await hold()
        return try await process(artifact)
      }
      try await forgetBytes(because: DownloadError(.storage, "the complete file has disappeared from the storage"))
    }
    return try await process(try await Transfer(attempt: self).perform())
  }

  /// Holds the partial while its finished bytes, or what steps have made of them, are worked on.
  private func hold() async throws {
    try await located(storage.name) {
      try run.finish(try await storage.openPartial(run.key, isNew: false))
    }
  }

  /// Has a dead link renewed; the fresh one is in the ledger before it is used.
  private func refreshLink() async throws {
    guard let refresher = pipeline.refresher else { return }
    let record = run.record
    let fresh: FreshLink
    do {
      fresh = try await refresher.refresh(
        ExpiredLink(request: record.request, error: record.error, received: record.checkpoint.ranges.byteCount))
    } catch let error where !(error is CancellationError) {
      // What others' errors say of themselves may hold the link.
      throw error as? DownloadError
        ?? DownloadError(
          .linkExpired, "there is no fresh link: \(type(of: error)) was thrown", stage: refresher.name, cause: error)
    }
    var request = record.request
    request.url = fresh.url
    request.headers = fresh.headers ?? request.headers
    try Engine.check(request, sources: pipeline.sources)
    run.state.withLock { $0.hasFreshLink = true }
    run.update { record in
      record.request.url = fresh.url
      if let headers = fresh.headers { record.request.headers = headers }
      record.awaited = nil
    }
    try await save([.link, .state])
    announce(.linkRefreshed(to: fresh.url.redacted))
  }

  // MARK: The ledger

  /// Writes fields of the record.
  /// - Throws: `.notOwner` when somebody else has taken the download over.
  func save(_ fields: RecordFields) async throws {
    let saved = try await located(pipeline.ledger.name) {
      try await store.save(run.record, fields, at: options.time.date)
    }
    guard saved else {
      run.stopSignal.stop(.lostOwnership)
      throw DownloadError(.notOwner, "another owner has taken this download over", stage: pipeline.ledger.name)
    }
  }

  /// Drops what is on disk from the ledger, before anything else may be written in its place.
  func forgetBytes(because error: DownloadError) async throws {
    announce(.restarted(error))
    run.forgetBytes()
    try await save([.checkpoint, .steps])
  }

  // MARK: Events

  /// Tells those who watch.
  func announce(_ kind: DownloadEvent.Kind) {
    hub.publish(kind, of: run)
  }

  /// Tells those who watch about a new state.
  func announce(state: DownloadState) {
    run.state.withLock { $0.publicState = state }
    announce(.state(state))
  }

  /// Runs a stage's work, and gives its errors the stage's name.
  func located<Result>(
    _ stage: @autoclosure () -> String, _ work: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await work()
    } catch let error where !(error is CancellationError) {
      throw DownloadError(error, as: .storage, stage: stage())
    }
  }

  // MARK: Artifacts in the ledger

  func stored(_ artifact: Artifact) -> StoredArtifact {
    StoredArtifact(
      kind: artifact.kind, path: artifact.path.map(storage.storedPath(for:)), name: artifact.name,
      size: artifact.size.bytes, mediaType: artifact.mediaType, modifiedAt: artifact.modifiedAt)
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
