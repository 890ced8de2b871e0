// Replacing stages while a downloader runs.
extension Engine {
  func replace(_ replacement: Replacement) { decide(.replaced(replacement)) }

  func removeGate(id: String) -> Bool {
    defer { replace(.noGate(id: id)) }
    return pipeline.gates.contains { $0.id == id }
  }

  func removeRate(id: String) -> Bool {
    defer { replace(.noRate(id: id)) }
    return pipeline.rates.contains { $0.id == id }
  }

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
    replace(.scheduling(policy))
    try await beginRanking().waitThroughCancellation()
    try? await context.mailbox.call(for: [], isContinuation: true) { _ in { state, _ in .over(state.rankRuns()) } }
  }

  func replace(source: any Source) async throws {
    try checkOpen()
    let session = try await source.start(in: pipeline.sourceContext)
    guard !state.mode.isStopping else {
      await session.stop()
      throw DownloadError.shutDown
    }
    replace(.source(source, session))
  }
}
