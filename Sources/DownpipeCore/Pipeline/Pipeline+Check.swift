extension Pipeline {
  /// Finds what the compiler cannot see: a second storage or ledger, stages that cannot be told apart, and steps behind
  /// opaque groups that do not fit.
  func check() throws(DownloadError) {
    if let surplus = surplus.first { throw surplus.error }
    guard !sources.isEmpty else { throw DownloadError(.invalidPipeline, "this pipeline has no source") }
    try Self.checkIDs("gates", gates)
    try Self.checkIDs("admission policies", admission)
    try Self.checkIDs("sources", sources)
    var kind = Artifact.Kind.file
    for step in steps {
      if let input = step.input, input != kind {
        throw DownloadError(
          .invalidPipeline, "\(step.name) takes a \(input.rawValue), but is given a \(kind.rawValue)",
          stage: step.name)
      }
      kind = step.output ?? kind
    }
  }

  /// Replacing and removing go by the id: it means one stage.
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

/// Stages of a kind that a pipeline has only one of.
struct SurplusStages: Sendable {
  let kind: String
  let names: [String]

  var error: DownloadError {
    DownloadError(
      .invalidPipeline,
      "a pipeline has one \(kind), this one has \(names.count): \(names.joined(separator: " and ")); leave out all but one"
    )
  }
}

extension PipelineParts {
  /// What there is too much of.
  var surplus: [SurplusStages] {
    let singles: [(String, [any Stage])] = [
      ("storage", storages), ("ledger", ledgers), ("scheduling policy", schedulingPolicies),
      ("retry policy", retryPolicies), ("link refresher", refreshers),
    ]
    return singles.filter { $0.1.count > 1 }.map { SurplusStages(kind: $0.0, names: $0.1.map(\.name)) }
  }
}
