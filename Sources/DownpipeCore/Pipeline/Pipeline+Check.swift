extension Pipeline {
  /// Checks what the compiler cannot: a second storage or ledger, stages with the same id, and steps after opaque
  /// groups whose forms do not fit.
  func check() throws(DownloadError) {
    if let surplus = surplus.first { throw surplus.error }
    guard !sources.isEmpty else { throw DownloadError(.invalidPipeline, "this pipeline has no source") }
    try Self.checkIDs("gates", gates)
    try Self.checkIDs("admission policies", admission)
    try Self.checkIDs("rate policies", rates)
    try Self.checkIDs("sources", sources)
    var kind = Artifact.Kind.file
    for step in steps {
      if let input = step.input, input != kind {
        throw DownloadError(
          .invalidPipeline, "\(step.name) takes a \(input.rawValue) but is given a \(kind.rawValue)",
          stage: step.name)
      }
      kind = step.output ?? kind
    }
  }

  /// Checks that ids are unique, because stages are replaced and removed by id.
  private static func checkIDs(_ kind: String, _ stages: [any Stage]) throws(DownloadError) {
    var known: Set<String> = []
    for stage in stages where !known.insert(stage.id).inserted {
      throw DownloadError(
        .invalidPipeline,
        "this pipeline has two \(kind) with the id “\(stage.id)”: leave one of them out, or give it an id of its own, "
          + "such as \(stage.name)(…, id: \"another\")", stage: stage.name)
    }
  }
}

/// Several stages of a kind of which a pipeline has only one.
struct SurplusStages: Sendable {
  let kind: String
  let names: [String]

  var error: DownloadError {
    DownloadError(
      .invalidPipeline,
      "a pipeline has one \(kind), this one has \(names.count): \(names.joined(separator: " and ")); keep only one of them"
    )
  }
}

extension PipelineParts {
  /// The kinds of stages of which there are too many.
  var surplus: [SurplusStages] {
    let singles: [(String, [any Stage])] = [
      ("storage", storages), ("ledger", ledgers), ("scheduling policy", schedulingPolicies),
      ("retry policy", retryPolicies), ("link refresher", refreshers), ("segment policy", segmentPolicies),
    ]
    return singles.filter { $0.1.count > 1 }.map { SurplusStages(kind: $0.0, names: $0.1.map(\.name)) }
  }
}
