extension Pipeline {
  /// Finds what the compiler cannot see: a second storage, and steps behind opaque groups that do not fit.
  func check() throws(DownloadError) {
    guard storageCount == 1 else {
      throw DownloadError(.invalidPipeline, "a pipeline has one storage, this one has \(storageCount)")
    }
    guard !sources.isEmpty else { throw DownloadError(.invalidPipeline, "this pipeline has no source") }
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
}
