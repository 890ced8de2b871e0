extension Pipeline {
  /// The admission policies in effect: the default limit if the pipeline has none.
  var limits: [any AdmissionPolicy] { admission.isEmpty ? [DefaultLimit()] : admission }

  /// The most connections to one host, over all downloads and segments; `nil` for no limit.
  var limitPerHost: Int? { limits.compactMap(\.maximumPerHost).min().map { max(1, $0) } }

  /// The limits that the pipeline's sources are told.
  var sourceContext: SourceContext {
    let total = max(1, limits.compactMap(\.maximumConcurrent).min() ?? 64)
    let perHost = limitPerHost ?? total
    return SourceContext(concurrentDownloads: total, downloadsPerHost: min(perHost, total))
  }
}

/// The limit of a pipeline without admission policies: five downloads at once.
struct DefaultLimit: AdmissionPolicy {
  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    running.total < 5 ? .admitted : .full("5 of 5 downloads are running")
  }
  var maximumConcurrent: Int? { 5 }
}
