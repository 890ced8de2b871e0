extension Pipeline {
  /// The admission policies that are in force: the default when none is written down.
  var limits: [any AdmissionPolicy] { admission.isEmpty ? [DefaultLimit()] : admission }

  /// What sources may know of the pipeline they serve.
  var sourceContext: SourceContext {
    let total = limits.compactMap(\.maximumConcurrent).min() ?? 64
    let perHost = limits.compactMap(\.maximumPerHost).min() ?? total
    return SourceContext(concurrentDownloads: total, downloadsPerHost: min(perHost, total))
  }
}

/// What limits a pipeline that says nothing about limits: five at once.
struct DefaultLimit: AdmissionPolicy {
  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    running.total < 5 ? .admitted : .full("5 of 5 downloads are running")
  }
  var maximumConcurrent: Int? { 5 }
}
