// Replacing stages while a downloader runs.
extension Engine {
  func replace(gate: any Gate) {
    state.gates.replace(gate)
    showGates()
  }

  func removeGate(id: String) -> Bool {
    guard state.gates.remove(id: id) else { return false }
    showGates()
    return true
  }

  /// Updates the gates of the pipeline, which has no list of its own.
  func showGates() {
    let gates = state.gates.stages
    state.stages.change { $0.gates = gates }
    context.policies.gates = gates
    state.noteGates()
    context.mailbox.wake()
  }

  /// Replaces an admission policy and applies it to running downloads. Done in a turn, so that nothing is leased with
  /// the old policy meanwhile.
  func replace(admission policy: any AdmissionPolicy, excess: Excess) async {
    _ = try? await context.mailbox.perform { engine in
      engine.state.stages.replace(policy)
      engine.limitHosts()
      if excess == .stops { engine.decide { $0.enforceLimits(at: $1) } }
    }
  }

  /// Applies the limit per host to the connections of running transfers.
  func limitHosts() { context.connections.setLimit(pipeline.limitPerHost) }

  func removeAdmission(id: String, excess: Excess) async -> Bool {
    let removed = try? await context.mailbox.perform { engine in
      let isRemoved = engine.state.stages.removeAdmission(id: id)
      engine.limitHosts()
      // Without policies there is a default limit.
      if isRemoved, excess == .stops { engine.decide { $0.enforceLimits(at: $1) } }
      return isRemoved
    }
    return removed ?? false
  }

  func replace(scheduling policy: any SchedulingPolicy) async throws {
    state.stages.change { $0.scheduling = policy }
    try await store.rank(by: Ranking(policy))
    state.mode.isRanked = true
    _ = try? await context.mailbox.perform { $0.state.rankRuns() }
    lookAgain()
  }

  func replace(rate policy: any RatePolicy) {
    context.rates.replace(policy)
    leaseSharedRates()
    state.stages.change { $0.rates.set(policy, by: \.id) }
  }

  func removeRate(id: String) -> Bool {
    state.stages.change { $0.rates.removeAll { $0.id == id } }
    return context.rates.remove(id: id)
  }

  func replace(retry policy: any RetryPolicy) {
    state.stages.change { $0.retry = policy }
    context.policies.retry = policy
  }

  func replace(segments policy: (any SegmentPolicy)?) { state.stages.change { $0.segments = policy } }

  func replace(source: any Source) async throws {
    try checkOpen()
    let session = try await source.start(in: pipeline.sourceContext)
    guard !state.mode.isStopping else {
      await session.stop()
      throw DownloadError.shutDown
    }
    state.stages.replace(source, session: session)
    lookAgain()
  }

  private func lookAgain() {
    state.mode.mayLease = true
    context.mailbox.wake()
  }
}
