// Replacing stages while the downloader runs.
extension Engine {
  func replace(gate: any Gate) {
    gates.replace(gate)
    stages.change { pipeline in
      pipeline.gates.removeAll { $0.name == gate.name }
      pipeline.gates.append(gate)
    }
    lookAgain()
  }

  func removeGate(named name: String) -> Bool {
    guard gates.remove(named: name) else { return false }
    stages.change { $0.gates.removeAll { $0.name == name } }
    lookAgain()
    return true
  }

  /// The policy takes effect on what runs, too. Done by the loop, so that nothing is leased under the old one meanwhile.
  func replace(admission policy: any AdmissionPolicy) async {
    _ = try? await context.mailbox.perform { engine in
      engine.stages.change { pipeline in
        if let index = pipeline.admission.firstIndex(where: { $0.name == policy.name }) {
          pipeline.admission[index] = policy
        } else {
          pipeline.admission.append(policy)
        }
      }
      engine.enforceLimits()
    }
  }

  func replace(scheduling policy: any SchedulingPolicy) async throws {
    stages.change { $0.scheduling = policy }
    try await store.rank(by: Ranking(policy))
    lookAgain()
  }

  func replace(retry policy: any RetryPolicy) { stages.change { $0.retry = policy } }

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
