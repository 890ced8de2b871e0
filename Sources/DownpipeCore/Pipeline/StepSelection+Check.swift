extension StepSelection {
  /// Checks the selection against the steps of a pipeline.
  /// - Throws: ``DownloadError`` with `.invalidRequest` for an unknown name, or when the selected steps do not fit.
  func check(_ steps: [PipelineStep]) throws(DownloadError) {
    guard let names else { return }
    if names.isEmpty { return }
    if let unknown = names.filter({ name in !steps.contains { $0.name == name } }).min() {
      let known = Set(steps.map(\.name)).sorted().joined(separator: ", ")
      throw DownloadError(
        .invalidRequest,
        "no step of this pipeline has the name “\(unknown.prefix(100))”; "
          + (known.isEmpty ? "it has no steps" : "its steps are \(known)"))
    }
    var kind = Artifact.Kind.file
    for step in steps where names.contains(step.name) {
      if let input = step.input, input != kind {
        throw DownloadError(
          .invalidRequest,
          "without the unselected steps, \(step.name) takes a \(input.rawValue) but is given a \(kind.rawValue)")
      }
      kind = step.output ?? kind
    }
  }
}

extension StepSelection {
  /// Whether a selected step verifies digests.
  func verifiesDigests(of steps: [PipelineStep]) -> Bool { steps.contains { $0.verifiesDigests && contains($0.name) } }
}
