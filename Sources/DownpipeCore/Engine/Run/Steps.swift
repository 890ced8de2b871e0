internal import Synchronization

// Post-processing, by the names of the steps.
extension Run {
  /// Runs the remaining steps and replaces the artifact of `file` with that of the last step.
  ///
  /// The artifact of each step is saved in the ledger before the step's input is deleted, so that after a crash the
  /// chain continues with the next step. The partial is kept until the final artifact is published: if the chain has
  /// changed, it starts again from the partial.
  func process(_ file: inout CompleteFile) async throws {
    let chain = chain
    let done = read { $0.steps.completed.count }
    // The pipeline may have changed since the request was added.
    try read { $0.request.steps }.check(pipeline.steps)
    if let notice = chain.notice, done == 0 { announce(.refused(notice)) }
    if chain.endOfDecoding == 0, file.isUntouched { try checkSize(of: file.artifact) }
    if !chain.links.isEmpty { try checkLength(of: file) }
    var position = done
    while let index = try nextStep(in: chain, from: position, for: file.artifact) {
      try await perform(index, of: chain, on: &file)
      position = index + 1
    }
  }

  /// The position of the next step that the download needs; `nil` if only the publication is left.
  ///
  /// - Parameter position: The number of links of the chain that are behind the artifact.
  func nextStep(in chain: RunChain, from position: Int, for artifact: Artifact) throws -> Int? {
    try chain.links.indices.dropFirst(position).first { index in
      let link = chain.links[index]
      guard link.isDecoder || read({ $0.request.steps.contains(link.step.name) }) else { return false }
      return link.step.isNeeded(try processingContext(for: artifact, of: link.step.name, digests: link.digests))
    }
  }

  /// Runs one step, and records it.
  private func perform(_ index: Int, of chain: RunChain, on file: inout CompleteFile) async throws {
    let link = chain.links[index]
    let step = link.step
    try checkLease()
    beginSteps()
    announce(state: .processing(step: step.name))
    let input = file.artifact
    if let kind = step.input, kind != input.kind {
      throw DownloadError(
        .invalidPipeline, "\(step.name) takes a \(kind.rawValue) but is given a \(input.kind.rawValue)",
        stage: step.name)
    }
    // Steps read their input by path, as does the next run after a crash: the partial needs a name.
    if file.isUntouched {
      try located(storageName) { try file.partial.persist() }
      // If the chain starts again from the partial, the mark proves that its bytes are unchanged.
      if read({ $0.checkpoint.marks.isEmpty }) { markTail(of: file.partial) }
    }
    file.mayLeaveTraces = true
    let follower =
      file.isUntouched ? try await file.following?.follower(of: link, at: index, input: input) : nil
    let workspace = try await located(storageName) { try await storage.workspace(partialKey) }
    let confirmed = ConfirmedDigests()
    let context = try processingContext(
      for: input, of: step.name, digests: link.digests, workspace: workspace, follower: follower, confirmed)
    let output: Artifact
    do {
      output = try await located(step.name, as: .processing) {
        try await self.context.executors.blocking {
          try await step.process(input, context).plainlySpelled
        }
      }
    } catch var error as DownloadError
      where error.code == .pieceMismatch && (!file.isUntouched || error.wrongBytes?.isEmpty != false)
    {
      // Not of the bytes that were downloaded, or not known, so they cannot be fetched again one by one.
      (error.code, error.wrongBytes) = (.digestMismatch, nil)
      throw error
    } catch let error as DownloadError where error.code == .damaged {
      throw judged(error, of: chain.links[..<index])
    }
    if follower != nil { await file.following?.end(at: index) }
    let notice = try await located(storageName) {
      try await checkOutput(output, of: step, from: input, in: context)
    }
    if index + 1 == chain.endOfDecoding { try await checkDecoded(output) }
    // Before the run may be stopped: a step that has moved the file to its final place must not be forgotten.
    if !storage.isStaged(output) { notePlaced(output) }
    let verified = update { record in
      let new = confirmed.digests.filter { !record.steps.verified.contains($0) }
      // The follower of a later step may have kept a note already.
      let note = record.steps.note.flatMap { StepNote(stored: $0).isFor(later: chain.names[(index + 1)...]) ? $0 : nil }
      record.steps = StepLog(
        completed: Array(chain.names[...index]), artifact: stored(output), note: note,
        verified: record.steps.verified + new)
      record.checkpoint.isComplete = true
      return new
    }
    try Task.checkCancellation()
    try await save([.steps, .checkpoint])
    state.withLock { ($0.stepProgress, $0.shownStepProgress) = (nil, nil) }
    if let notice { announce(.refused(notice)) }
    if !verified.isEmpty { announce(.verified(verified)) }
    announce(.stepFinished(name: step.name))
    // What has the output in it goes with the workspace.
    if output.location != input.location, !file.isUntouched, storage.isStaged(input), !output.lies(in: input) {
      try await located(storageName) { try await storage.remove(input) }
    }
    file.isUntouched = file.isUntouched && output.location == input.location
    file.lastSeenBy = nil
    file.artifact = output
  }

  /// What it means that a step has found its input damaged. If a step before it has verified the digest of the file, the
  /// file is damaged at its server, and another transfer of the same bytes is of no use.
  private func judged(_ error: DownloadError, of earlier: ArraySlice<RunChain.Link>) -> DownloadError {
    let verified = earlier.filter { link in
      link.step.verifiesDigests && read { $0.request.steps.contains(link.step.name) }
    }.flatMap(\.digests)
    guard !verified.isEmpty else { return error }
    // The digest that the server has sent is that of its own file: another place may have a better one, and so may the
    // server later.
    if read({ !$0.request.expectsDigest }) {
      if hasOtherPlace { return error }
      findings.withLock { $0.dropsBytes = true }
    }
    var judged = error
    judged.code = .processing
    judged.message += "; its digest is right, so the file itself is damaged, and another download would be the same"
    return judged
  }

  /// Checks the size of a decoded file, and removes the file if it is wrong: its coded bytes are still there.
  private func checkDecoded(_ artifact: Artifact) async throws {
    do {
      if let maximum = read({ $0.request.maximumSize }), (artifact.size.bytes ?? 0) > maximum {
        throw DownloadError(.tooLarge, "the decoded file has more than the maximum of \(maximum) bytes")
      }
      try checkSize(of: artifact)
    } catch {
      if storage.isStaged(artifact) { try? await storage.remove(artifact) }
      throw error
    }
  }

  /// Checks that a file has the size that the request expects, before the steps of the pipeline see it.
  private func checkSize(of artifact: Artifact) throws {
    // The maximum may have been lowered since the bytes have arrived.
    if let maximum = read({ $0.request.maximumSize }), let size = artifact.size.bytes, size > maximum {
      throw DownloadError(.tooLarge, "the file has \(size) bytes, but the maximum is \(maximum)")
    }
    guard let expected = read({ $0.request.expectedSize.bytes }), let size = artifact.size.bytes, size != expected
    else { return }
    throw DownloadError(.lengthMismatch, "the file has \(size) bytes, but \(expected) were expected")
  }

  /// Notes that the bytes are complete: from now on a change of the destination comes too late.
  func beginSteps() {
    state.withLock { state in
      if state.record.apply(.bytesComplete) { state.request.destination = state.record.request.destination }
    }
  }

  /// The name of the artifact before the first step.
  var nameOfBytes: String { read { $0.nameOfBytes } }

  /// The context for a step, or for the storage when it publishes.
  ///
  /// - Parameter confirmed: Collects the digests that the step verifies.
  func processingContext(
    for input: Artifact, of step: String, digests: [FileDigest], workspace: String? = nil,
    follower: (any TransferFollower)? = nil, _ confirmed: ConfirmedDigests? = nil
  ) throws -> ProcessingContext {
    let (request, earlier) = state.withLock { ($0.requestOfSteps, $0.record.earlierArtifact?.replaceable) }
    let replaced = earlier.flatMap { isHere($0) ? try? storage.artifact(from: $0) : nil }
    let context = read { record in
      ProcessingContext(
        request: request, workspace: workspace,
        digests: digests,
        priorNote: record.steps.note(of: step),
        durability: storage.durability, wasInterrupted: record.wasInterrupted, follower: follower,
        bytesReceived: record.checkpoint.total.bytes ?? record.checkpoint.ranges.byteCount,
        replaces: replaced, lastModified: record.checkpoint.validator?.lastModified, downloadedName: record.nameOfBytes,
        mediaType: record.checkpoint.mediaType, verified: record.steps.verified,
        note: { [self] note in
          keep(StepNote(step: step, text: note), of: input)
          try await save([.steps, .checkpoint])
        },
        report: { [weak self] in self?.note($0) },
        confirm: { confirmed?.add($0) },
        fetch: { [self] url, maximum, isNamedByUser in
          try await fetch(url, maximum, isNamedByUser: isNamedByUser)
        },
        add: { [self] children, limits in try await add(children, within: limits) },
        wait: { [self] ids, note in
          try await wait(for: ids, noting: note.map { StepNote(step: step, text: $0) }, of: input)
        })
    }
    // A run that works for an earlier request than this one has been stopped.
    try Task.checkCancellation()
    return context
  }

  /// Keeps the note of a step in the record, with the artifact that the step was given.
  func keep(_ note: StepNote, of input: Artifact) {
    update { record in
      record.steps.note = note.stored
      record.steps.artifact = stored(input)
      record.checkpoint.isComplete = true
    }
  }

  /// Keeps the note of a step whose follower takes the bytes while they arrive.
  func keep(_ note: StepNote) async throws {
    update { $0.steps.note = note.stored }
    try await save([.steps])
  }
}

/// The digests that a step has verified so far. They count once it has returned.
final class ConfirmedDigests: Sendable {
  private let state = Mutex<[VerifiedDigest]>([])

  /// The digests in the order in which they were reported, each once.
  var digests: [VerifiedDigest] { state.withLock { $0 } }

  func add(_ digest: VerifiedDigest) {
    state.withLock { if !$0.contains(digest) { $0.append(digest) } }
  }
}

extension DownloadRecord {
  /// The name of the artifact before the first step.
  var nameOfBytes: String {
    let fallback = request.destination.nameUse == .fallback ? request.destination.name : nil
    return fallback ?? checkpoint.name ?? "download"
  }
}

extension Run.State {
  /// The request as steps and the storage see it: all of them use one destination.
  fileprivate var requestOfSteps: DownloadRequest {
    var request = record.request
    if record.phase == .processing { request.destination = self.request.destination }
    return request
  }
}
