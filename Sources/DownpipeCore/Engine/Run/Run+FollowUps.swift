internal import Synchronization

// Downloads that a step adds.
extension Run {
  /// Adds downloads for a step; see ``ProcessingContext/add(_:within:)``.
  func add(_ children: [DownloadRequest], within limits: FollowUpLimits) async throws {
    let lineage = DownloadRequest.Lineage(following: request)
    guard lineage.depth <= limits.depth else {
      throw DownloadError(
        .followUpLimit,
        "“\(lineage.root)” has more than \(limits.depth) generations of downloads that follow from it: does a manifest "
          + "name itself? Raise the depth of FollowUpLimits if it does not")
    }
    let marked = children.map { child in
      var child = child
      child.lineage = lineage
      child.tags.insert(FollowUp.tag(of: lineage.root))
      return child
    }
    try checkWorks()
    try await context.add(marked, following: lineage.root, atMost: limits.count) { [self] in try checkWorks() }
  }

  /// Makes the download wait for others, for a step; see ``ProcessingContext/wait(for:noting:)``.
  ///
  /// The note is saved with the outcome of this run, after the dependencies: a crash in between makes the step wait again.
  func wait(for others: Set<DownloadID>, noting note: StepNote?, of input: Artifact) async throws {
    let isWaiting = try await context.wait(id, for: others) { [self] in try checkWorks() }
    guard isWaiting else { return }
    if let note { keep(note, of: input) }
    // What is begun goes on in the next run, which the ledger leases once the others have finished.
    stop(.changed)
    throw CancellationError()
  }

  /// Checks that the run works and has not been stopped: a step may have kept its context, and a download that was
  /// stopped adds nothing more.
  private func checkWorks() throws {
    guard stopReason == nil, !isOver else { throw CancellationError() }
  }
}
