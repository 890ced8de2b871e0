internal import Foundation

// The files of finished downloads: whether they are still as they were downloaded.
extension Engine {
  nonisolated func verify(_ id: DownloadID, repairing isRepairing: Bool) async throws -> Verification {
    let record = try await context.mailbox.recordAfterRenaming(id, for: [id])
    guard record.phase == .finished, let stored = record.steps.artifact else {
      throw DownloadError(
        .invalidRequest, "“\(id)” has not finished: only the files of finished downloads are verified")
    }
    guard await context.storage.mayTell(of: stored, record) else {
      return .unverifiable("another downloader has put it into its own storage: verify it there")
    }
    let artifact = await context.storage.current(try context.storage.artifact(from: stored))
    let result = try await context.verification(of: artifact, record, await pipeline.steps)
    guard isRepairing else { return result }
    switch result {
    case .intact, .unverifiable: break
    case .missing: try await repair(record, artifact, fromPieces: false)
    case .damaged(let error): try await repair(record, artifact, fromPieces: error.code == .pieceMismatch)
    }
    return result
  }

  /// Fetches a file again that was found damaged or missing.
  ///
  /// One change of the record says what the file is now and that it is fetched again: after a kill in between, a damaged
  /// file would be the download's own.
  /// - Parameter fromPieces: Whether the right pieces are taken from the file.
  private nonisolated func repair(_ record: DownloadRecord, _ artifact: Artifact?, fromPieces: Bool) async throws {
    var present = artifact.map { StoredArtifact($0, in: context.storage) }
    present?.location = record.steps.artifact?.location
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
    let saved = try await context.mailbox.call(for: []) { [headStart, present] _ in
      { state, _ in
        // Not while a rename moves the file, and not while a run ends.
        guard state.slots.runs[record.id] == nil else { return .over(false) }
        return .job { context, changes in
          let isSaved = try await context.keep(headStart, for: record, present)
          if isSaved { changes.ids.append(record.id) }
          return { _, _ in .over(isSaved) }
        }
      }
    }
    guard saved else {
      throw DownloadError(.inUse, "“\(record.id)” was changed while its file was verified: verify it again")
    }
  }
}

extension EngineContext {
  /// Notes the wish to fetch a file again; `false` if its download has changed meanwhile.
  /// - Parameter present: The file as it is now, which is not as it was published.
  fileprivate func keep(
    _ headStart: DownloadRequest.HeadStart, for record: DownloadRecord, _ present: StoredArtifact?
  ) async throws -> Bool {
    let saved = try await store.update(record.id, at: time.date) { saved in
      guard saved.generation == record.generation, saved.phase == .finished,
        saved.steps.artifact == record.steps.artifact, saved.steps.note == nil
      else { return }
      // What is replaced is the file as it is now, not as it was published.
      if let present { saved.steps.artifact = present }
      saved.request.headStart = headStart
    }
    guard let saved else { return false }
    return saved.generation == record.generation && saved.phase != .finished && saved.request.headStart == headStart
  }

  /// - Parameter steps: The steps of the pipeline.
  fileprivate func verification(
    of artifact: Artifact?, _ record: DownloadRecord, _ steps: [PipelineStep]
  ) async throws -> Verification {
    guard let artifact else { return .missing }
    if let url = artifact.remoteURL { return .unverifiable("it is at \(url.redacted), and not on this machine") }
    guard artifact.kind == .file else { return .unverifiable("it is a folder, which has no digest") }
    let request = record.request
    // The request's digests are those of the decoded file, the server's those of the coded one.
    let isDecoded =
      record.checkpoint.contentCoding != nil
      && record.steps.completed.contains { $0.hasPrefix(PipelineStep.decoderPrefix) }
    let published = record.steps.verified.filter { ![.request, .server].contains($0.origin) }.compactMap(\.digest)
    let digests = request.expectedDigests + (isDecoded ? [] : record.checkpoint.digests) + published
    let question = ProcessingContext(
      request: request, workspace: nil, digests: digests, durability: storage.durability,
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
        _ = try await executors.blocking { try await step.process(artifact, question) }
      } catch let error as DownloadError where [.digestMismatch, .pieceMismatch].contains(error.code) {
        return .damaged(error.located(stage: step.name, url: nil, attempt: nil))
      } catch let error as DownloadError {
        throw error.located(stage: step.name, url: nil, attempt: nil)
      }
    }
    return .intact
  }
}
