/// The complete bytes that an earlier run has left, and the artifacts that its steps have made of them.
struct EarlierFile: Sendable {
  let run: Run
  private var storage: any Storage { run.storage }

  init(run: Run) { self.run = run }

  /// The artifact of the last completed step, or the complete bytes; `nil` if there is neither.
  func open() async throws -> CompleteFile? {
    guard let stored = run.read({ $0.steps.artifact }) else { return nil }
    let record = run.record
    let chain = run.chain
    let isSameChain = chain.names.starts(with: record.steps.completed)
    let artifact = try storage.artifact(from: stored)
    // A step with a note can find its input even if the storage cannot. An artifact in memory is lost in any case.
    let note = record.steps.note.map(StepNote.init(stored:))
    let next = try run.nextStep(in: chain, from: record.steps.completed.count, for: artifact)
    let reader = next.map { chain.links[$0].step.name } ?? run.storageName
    let hasNote = stored.path != nil && note?.isFor(reader) == true
    let isForLater = note?.isFor(later: chain.names.dropFirst(record.steps.completed.count)) == true
    if note != nil, !hasNote, !isForLater || !isSameChain { run.update { $0.steps.note = nil } }
    let isThere = run.isHere(stored) ? await isComplete(artifact) : false
    if isSameChain, hasNote || isThere {
      return CompleteFile(
        artifact: artifact, partial: try await partial(), isUntouched: false, mayLeaveTraces: true,
        lastSeenBy: isThere ? nil : reader)
    }
    return try await restart(
      because: DownloadError(
        .storage,
        isSameChain
          ? "the complete file no longer exists in the storage"
          : "the steps of the pipeline have changed, and the bytes they start from no longer exist"))
  }

  /// Whether an artifact is there, and its companions, if they are still to be published with it.
  private func isComplete(_ artifact: Artifact) async -> Bool {
    guard await storage.contains(artifact) else { return false }
    guard storage.isStaged(artifact) else { return true }
    for companion in artifact.companionFiles where await !storage.contains(companion) { return false }
    return true
  }

  /// Starts the chain of steps again from the partial, because the chain has changed or its artifact no longer exists;
  /// `nil` if the partial is not complete: the bytes are forgotten then.
  func restart(because error: DownloadError) async throws -> CompleteFile? {
    let record = run.record
    let partial = try await partial()
    do {
      if let file = try await complete(partial, of: record.checkpoint) { return file }
    } catch {
      try? partial.close()
      throw error
    }
    try? partial.close()
    try await run.forgetBytes(because: error)
    return nil
  }

  /// The complete bytes of a partial; `nil` if it has not all of them, or others.
  private func complete(_ partial: any Partial, of checkpoint: Checkpoint) async throws -> CompleteFile? {
    guard case .known(let total) = checkpoint.total, checkpoint.ranges.prefixLength == total,
      (try? partial.size()) == total, try checkpoint.marks.allSatisfy({ try partial.matches($0) })
    else { return nil }
    run.update { $0.dropSteps() }
    try await run.save([.steps, .state])
    // As after a transfer: the steps may change the permissions of the file, and nothing else does any more.
    try partial.finish()
    let artifact = try partial.artifact(name: run.nameOfBytes, mediaType: checkpoint.mediaType)
    return CompleteFile(artifact: artifact, partial: partial, isUntouched: true, mayLeaveTraces: true)
  }

  /// The partial, kept open while its complete bytes, or the artifacts of steps, are processed.
  private func partial() async throws -> any Partial {
    try await run.located(run.storageName) { try await storage.openPartial(run.partialKey, isNew: false) }
  }
}
