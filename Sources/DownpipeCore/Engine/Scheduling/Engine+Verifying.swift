internal import Foundation

// The files of finished downloads: whether they are still as they were downloaded.
extension Engine {
  func verify(_ id: DownloadID, repairing isRepairing: Bool) async throws -> Verification {
    try checkOpen()
    guard let known = try await record(id) else { throw DownloadError.unknownDownload(id) }
    let record = await renamed(known)
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
    guard artifact.kind == .file else { return .unverifiable("it is a folder, which has no digest") }
    let steps = pipeline.steps
    // The request's digests are those of the decoded file, the server's those of the coded one.
    let decoders = record.steps.completed.filter { name in
      name.hasPrefix(PipelineStep.decoderPrefix) && !steps.contains { $0.name == name }
    }
    for name in record.steps.completed where !decoders.contains(name) {
      guard let step = steps.first(where: { $0.name == name }) else {
        return .unverifiable("the step \(name), which has worked on it, is not in this pipeline")
      }
      guard step.keepsContent else {
        return .unverifiable("the step \(name) has changed the bytes that were downloaded")
      }
    }
    let request = record.request
    let digests = request.expectedDigests + (decoders.isEmpty ? record.checkpoint.digests : [])
    let size = decoders.isEmpty ? record.checkpoint.total : request.expectedSize
    if case .known(let expected) = size, artifact.size != .known(expected) {
      return .damaged(
        DownloadError(
          .lengthMismatch, "the file has \(artifact.size.bytes ?? 0) bytes, and was downloaded with \(expected)"))
    }
    let context = ProcessingContext(
      request: request, workspace: nil, digests: digests, durability: self.context.storage.durability)
    let verifying = steps.filter { $0.verifiesDigests && $0.isNeeded(context) }
    guard !digests.isEmpty || request.pieces != nil, !verifying.isEmpty else {
      return .unverifiable(
        verifying.isEmpty && !digests.isEmpty
          ? "no step of this pipeline verifies digests" : "neither its request nor its server has a digest of it")
    }
    for step in verifying {
      do {
        _ = try await withTaskExecutorPreference(BlockingExecutor.shared) { try await step.process(artifact, context) }
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
  /// - Parameter fromPieces: Whether the right pieces are taken from the file.
  private func repair(_ record: DownloadRecord, _ artifact: Artifact?, fromPieces: Bool) async throws {
    let (generation, stored) = (record.generation, record.steps.artifact)
    let present = artifact.map { StoredArtifact($0, in: context.storage) }
    var headStart: DownloadRequest.HeadStart?
    if fromPieces, let path = artifact?.path, case .known(let size)? = artifact?.size {
      headStart = .init(file: path, count: size, total: .known(size), proof: .digests)
    }
    let saved = try await store.update(record.id, at: time.date) { [headStart] saved in
      guard saved.generation == generation, saved.phase == .finished, saved.steps.artifact == stored else { return }
      // What is replaced is the file as it is now, not as it was published.
      if let present { saved.steps.artifact = present }
      saved.request.headStart = headStart
    }
    guard let saved, saved.generation == generation, saved.phase == .finished, saved.request.headStart == headStart,
      try await command(.restart, stopping: .restart, to: .waiting, record.id)
    else {
      throw DownloadError(.inUse, "“\(record.id)” was changed while its file was verified: verify it again")
    }
  }
}
