internal import Foundation

// The files of finished downloads: whether they are still as they were downloaded.
extension Engine {
  func verify(_ id: DownloadID, repairing isRepairing: Bool) async throws -> Verification {
    try checkOpen()
    // In a turn: a rename must not be completed while it is being made.
    let found = try await context.mailbox.perform { engine -> DownloadRecord? in
      guard let record = try await engine.record(id) else { return nil }
      return await engine.renamed(record)
    }
    guard let record = found else { throw DownloadError.unknownDownload(id) }
    guard record.phase == .finished, let stored = record.steps.artifact else {
      throw DownloadError(
        .invalidRequest, "“\(id)” has not finished: only the files of finished downloads are verified")
    }
    let artifact = await context.storage.current(try context.storage.artifact(from: stored))
    let result = try await verification(of: artifact, record)
    guard isRepairing else { return result }
    switch result {
    case .intact, .unverifiable: break
    case .missing: try await repair(record, artifact, fromPieces: false)
    case .damaged(let error): try await repair(record, artifact, fromPieces: error.code == .pieceMismatch)
    }
    return result
  }

  private func verification(of artifact: Artifact?, _ record: DownloadRecord) async throws -> Verification {
    guard let artifact else { return .missing }
    if let url = artifact.remoteURL { return .unverifiable("it is at \(url.redacted), and not on this machine") }
    guard artifact.kind == .file else { return .unverifiable("it is a folder, which has no digest") }
    let steps = pipeline.steps
    let request = record.request
    // The request's digests are those of the decoded file, the server's those of the coded one.
    let isDecoded =
      record.checkpoint.contentCoding != nil
      && record.steps.completed.contains { $0.hasPrefix(PipelineStep.decoderPrefix) }
    let digests = request.expectedDigests + (isDecoded ? [] : record.checkpoint.digests)
    let question = ProcessingContext(
      request: request, workspace: nil, digests: digests, durability: self.context.storage.durability,
      bytesReceived: record.checkpoint.total.bytes, lastModified: record.checkpoint.validator?.lastModified)
    for name in record.steps.completed {
      guard let step = steps.first(where: { $0.name == name }) else {
        if isDecoded, name.hasPrefix(PipelineStep.decoderPrefix) { continue }
        return .unverifiable("the step \(name), which has worked on it, is not in this pipeline")
      }
      // The log also has steps that had nothing to do.
      guard !step.keepsContent, request.steps.contains(name), step.isNeeded(question) else { continue }
      return .unverifiable("the step \(name) has changed the bytes that were downloaded")
    }
    let size = isDecoded ? request.expectedSize : record.checkpoint.total
    if case .known(let expected) = size, artifact.size != .known(expected) {
      return .damaged(
        DownloadError(
          .lengthMismatch, "the file has \(artifact.size.bytes ?? 0) bytes, and was downloaded with \(expected)"))
    }
    let verifying = steps.filter { $0.verifiesDigests && $0.isNeeded(question) }
    guard !digests.isEmpty || request.pieces != nil, !verifying.isEmpty else {
      return .unverifiable(
        verifying.isEmpty && !digests.isEmpty
          ? "no step of this pipeline verifies digests" : "neither its request nor its server has a digest of it")
    }
    for step in verifying {
      do {
        _ = try await withTaskExecutorPreference(self.context.executors.blocking) {
          try await step.process(artifact, question)
        }
      } catch let error as DownloadError where [.digestMismatch, .pieceMismatch].contains(error.code) {
        return .damaged(error.located(stage: step.name, url: nil, attempt: nil))
      } catch let error as DownloadError {
        throw error.located(stage: step.name, url: nil, attempt: nil)
      }
    }
    return .intact
  }

  /// Fetches a file again that was found damaged or missing.
  ///
  /// One change of the record says what the file is now and that it is fetched again: after a kill in between, a damaged
  /// file would be the download's own.
  /// - Parameter fromPieces: Whether the right pieces are taken from the file.
  private func repair(_ record: DownloadRecord, _ artifact: Artifact?, fromPieces: Bool) async throws {
    let (generation, stored) = (record.generation, record.steps.artifact)
    let present = artifact.map { StoredArtifact($0, in: context.storage) }
    // Without bytes, it is the wish to fetch the file again.
    var headStart = DownloadRequest.HeadStart(file: "", count: 0, proof: .digests)
    if fromPieces, let path = artifact?.path, case .known(let size)? = artifact?.size {
      headStart = .init(
        file: path, count: size, validator: record.checkpoint.validator, total: .known(size), proof: .digests)
      let isCoded = record.checkpoint.contentCoding != nil
      if isCoded { headStart.validator = nil }
      headStart.known = .init(
        resource: isCoded ? nil : record.checkpoint.resource, name: record.checkpoint.name,
        mediaType: record.checkpoint.mediaType, digests: isCoded ? [] : record.checkpoint.digests,
        freshUntil: record.checkpoint.freshUntil)
    }
    let (id, date) = (record.id, time.date)
    let saved = try await context.mailbox.perform { [headStart] engine -> DownloadRecord? in
      // Not while a rename moves the file, and not while a run ends.
      guard engine.state.slots.runs[id] == nil else { return nil }
      let saved = try await engine.store.update(id, at: date) { saved in
        guard saved.generation == generation, saved.phase == .finished, saved.steps.artifact == stored,
          saved.steps.note == nil
        else { return }
        // What is replaced is the file as it is now, not as it was published.
        if let present { saved.steps.artifact = present }
        saved.request.headStart = headStart
      }
      guard let saved, saved.generation == generation, saved.phase != .finished, saved.request.headStart == headStart
      else { return nil }
      engine.state.mode.mayLease = true
      engine.noteChange(of: CollectionOfOne(id))
      return saved
    }
    guard saved != nil else {
      throw DownloadError(.inUse, "“\(id)” was changed while its file was verified: verify it again")
    }
  }
}
