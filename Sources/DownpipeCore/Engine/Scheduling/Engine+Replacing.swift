// Replacing stages while a downloader runs.
extension Engine {
  func replace(gate: any Gate) {
    gates.replace(gate)
    showGates()
  }

  func removeGate(id: String) -> Bool {
    guard gates.remove(id: id) else { return false }
    showGates()
    return true
  }

  /// Updates the gates of the pipeline, which has no list of its own.
  func showGates() {
    let gates = gates.stages
    stages.change { $0.gates = gates }
    lookAgain()
  }

  /// Replaces an admission policy and applies it to running downloads. Done by the loop, so that nothing is leased with
  /// the old policy meanwhile.
  func replace(admission policy: any AdmissionPolicy, excess: Excess) async {
    _ = try? await context.mailbox.perform { engine in
      engine.stages.replace(policy)
      engine.limitHosts()
      if excess == .stops { engine.enforceLimits() }
    }
  }

  /// Applies the limit per host to the connections of running transfers.
  func limitHosts() { context.connections.setLimit(pipeline.limitPerHost) }

  func removeAdmission(id: String, excess: Excess) async -> Bool {
    let removed = try? await context.mailbox.perform { engine in
      let isRemoved = engine.stages.removeAdmission(id: id)
      engine.limitHosts()
      // Without policies there is a default limit.
      if isRemoved, excess == .stops { engine.enforceLimits() }
      return isRemoved
    }
    return removed ?? false
  }

  func replace(scheduling policy: any SchedulingPolicy) async throws {
    stages.change { $0.scheduling = policy }
    try await store.rank(by: Ranking(policy))
    mode.isRanked = true
    _ = try? await context.mailbox.perform { $0.rankRuns() }
    lookAgain()
  }

  func replace(rate policy: any RatePolicy) {
    context.rates.replace(policy)
    stages.change { $0.rates.set(policy, by: \.id) }
  }

  func removeRate(id: String) -> Bool {
    stages.change { $0.rates.removeAll { $0.id == id } }
    return context.rates.remove(id: id)
  }

  func replace(retry policy: any RetryPolicy) { stages.change { $0.retry = policy } }

  func replace(segments policy: (any SegmentPolicy)?) { stages.change { $0.segments = policy } }

  func replace(source: any Source) async throws {
    try checkOpen()
    let session = try await source.start(in: pipeline.sourceContext)
    guard !mode.isStopping else {
      await session.stop()
      throw DownloadError.shutDown
    }
    stages.replace(source, session: session)
    lookAgain()
  }

  private func lookAgain() {
    mode.mayLease = true
    context.mailbox.wake()
  }
}
