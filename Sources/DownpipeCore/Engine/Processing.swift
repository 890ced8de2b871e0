extension Attempt {
  /// Runs the steps that are not done yet, then publishes.
  ///
  /// Each step's result is in the ledger before its input is removed, so that after a crash the chain
  /// goes on at the step where it stood.
  func process(_ first: Artifact) async throws -> Artifact {
    var artifact = first
    run.update { record in
      _ = record.apply(.bytesComplete)
    }
    let steps = pipeline.steps
    let done = run.read { $0.steps.completed.count }
    for index in steps.indices where index >= done {
      let step = steps[index]
      guard step.isNeeded(try await context(for: artifact, withWorkspace: false)) else { continue }
      announce(state: .processing(step: step.name))
      if let input = step.input, input != artifact.kind {
        throw DownloadError(
          .invalidPipeline, "\(step.name) takes a \(input.rawValue), but is given a \(artifact.kind.rawValue)",
          stage: step.name)
      }
      let input = artifact
      let context = try await context(for: input, withWorkspace: true)
      let output = try await named(step.name) {
        try await withTaskExecutorPreference(BlockingExecutor.shared) { try await step.process(input, context) }
      }
      try Task.checkCancellation()
      artifact = output
      run.update { record in
        record.steps = StepLog(completed: steps[...index].map(\.name), artifact: stored(output))
        record.checkpoint.isComplete = true
      }
      try await save([.steps, .checkpoint])
      announce(.stepFinished(name: step.name))
      if output.location != input.location, storage.isStaged(input) {
        try await located(storage.name) { try await storage.remove(input) }
      }
    }
    guard storage.isStaged(artifact) else { return artifact }
    if steps.isEmpty { announce(state: .processing(step: storage.name)) }
    let last = artifact
    let context = try await context(for: last, withWorkspace: false)
    return try await located(storage.name) {
      try await storage.publish(last, of: nil, at: context.request.destination, in: context)
    }
  }

  private func context(for input: Artifact, withWorkspace: Bool) async throws -> ProcessingContext {
    let record = run.record
    let workspace =
      withWorkspace ? try await located(storage.name) { try await storage.workspace(run.key) } : nil
    return ProcessingContext(
      request: record.request, workspace: workspace,
      digests: record.request.expectedDigests + record.checkpoint.digests, priorNote: record.steps.note,
      durability: storage.durability
    ) { [self] note in
      run.update { record in
        record.steps.note = note
        record.steps.artifact = stored(input)
        record.checkpoint.isComplete = true
      }
      try await save([.steps, .checkpoint])
    }
  }

  private func named<Result: Sendable>(
    _ step: String, _ work: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await work()
    } catch let error where !(error is CancellationError) {
      throw DownloadError(error, as: .processing, stage: step)
    }
  }
}
