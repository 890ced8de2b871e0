import DownpipeCore

/// Methods beside aria2's protocol, which the page uses.
extension Aria2 {
  static let nativeMethods: [String: Method] = [
    "downpipe.changePriority": { try await $0.changePriority($1) },
    "downpipe.getPipeline": { server, _ in await server.pipeline() },
    "downpipe.retry": { try await $0.retry($1) },
  ]

  /// Sets a priority: a number from -32,768 to 32,767, the highest first.
  private func changePriority(_ parameters: Parameters) async throws -> JSONValue {
    let status = try await gids.status(of: try parameters.string(0))
    guard let number = Int16(exactly: try parameters.integer(1)) else {
      throw RPCFailure("A priority is a number from -32768 to 32767.")
    }
    _ = try await downloader.update(status.id) { $0.priority = Priority(number) }
    return "OK"
  }

  /// Resumes a failed download from its bytes; one that was cancelled starts again.
  private func retry(_ parameters: Parameters) async throws -> JSONValue {
    let status = try await gids.status(of: try parameters.string(0))
    let isResumed =
      switch status.state.phase {
      case .failed: try await downloader.resume(status.id)
      case .cancelled: try await downloader.restart(status.id)
      default: false
      }
    guard isResumed else { throw RPCFailure("Only downloads that have failed or were removed can be retried.") }
    return .string(gids.gid(of: status.id).text)
  }

  /// The stages in the order in which a download passes them, and those beside the flow, with what is in each.
  private func pipeline() async -> JSONValue {
    let pipeline = await downloader.pipeline
    func stage(_ kind: String, _ stage: any Stage) -> JSONValue {
      ["kind": .string(kind), "name": .string(stage.name), "summary": .string(stage.summary)]
    }
    var flow: [JSONValue] = []
    if let scheduling = pipeline.scheduling { flow.append(stage("scheduling", scheduling)) }
    flow += pipeline.admission.map { stage("admission", $0) }
    flow += pipeline.gates.map { stage("gate", $0) }
    flow += pipeline.sources.map { stage("source", $0) }
    flow.append(stage("storage", pipeline.storage))
    flow += pipeline.steps.map { ["kind": "step", "name": .string($0.name), "summary": .string($0.summary)] }
    var beside = [stage("retry", pipeline.retry), stage("ledger", pipeline.ledger)]
    beside += pipeline.rates.map { stage("rate", $0) }
    if let segments = pipeline.segments { beside.append(stage("segments", segments)) }
    return ["flow": .array(flow), "beside": .array(beside)]
  }
}
