// Replacing stages while a downloader runs.
extension Engine {
  func replace(gate: any Gate) { decide { state, _ in state.replace(gate: gate) } }

  func removeGate(id: String) -> Bool { decide { state, _ in state.removeGate(id: id) } }

  nonisolated func replace(admission policy: any AdmissionPolicy, excess: Excess) async {
    try? await context.mailbox.call(for: [], isContinuation: true) { _ in
      { state, instant in .over(state.replace(admission: policy, excess: excess, at: instant)) }
    }
  }

  nonisolated func removeAdmission(id: String, excess: Excess) async -> Bool {
    let isRemoved = try? await context.mailbox.call(for: [], isContinuation: true) { _ in
      { state, instant in .over(state.removeAdmission(id: id, excess: excess, at: instant)) }
    }
    return isRemoved ?? false
  }

  func replace(scheduling policy: any SchedulingPolicy) async throws {
    try checkOpen()
    decide { state, _ in state.replace(scheduling: policy) }
    try await beginRanking().waitThroughCancellation()
    try? await context.mailbox.call(for: [], isContinuation: true) { _ in { state, _ in .over(state.rankRuns()) } }
    decide { state, _ in state.lookAgain() }
  }

  func replace(rate policy: any RatePolicy) { decide { state, _ in state.replace(rate: policy) } }

  func removeRate(id: String) -> Bool { decide { state, _ in state.removeRate(id: id) } }

  func replace(retry policy: any RetryPolicy) { decide { state, _ in state.replace(retry: policy) } }

  func replace(segments policy: (any SegmentPolicy)?) { decide { state, _ in state.replace(segments: policy) } }

  func replace(source: any Source) async throws {
    try checkOpen()
    let session = try await source.start(in: pipeline.sourceContext)
    guard !state.mode.isStopping else {
      await session.stop()
      throw DownloadError.shutDown
    }
    decide { state, _ in state.replace(source: source, session: session) }
    stopUnusedSessions()
  }
}
