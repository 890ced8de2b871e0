internal import Foundation

extension DownloadRequest {
  /// Checks a request before it is stored.
  ///
  /// - Parameter withDigests: Whether to check that a step verifies the expected digests, too.
  func check(against pipeline: Pipeline, withDigests: Bool = true) throws(DownloadError) {
    try checkContent()
    for url in [url] + mirrors where !pipeline.sources.contains(where: { $0.accepts(url) }) {
      throw DownloadError(
        .unsupportedURL,
        url.scheme == nil
          ? "the URL has no scheme: give the full URL, such as https://example.org/file"
          : "no source of this pipeline accepts this “\(url.scheme ?? "")” URL"
      ).located(stage: nil, url: url, attempt: nil)
    }
    do {
      try pipeline.storage.check(destination)
    } catch {
      throw error.located(stage: pipeline.storage.name, url: url, attempt: nil)
    }
    try steps.check(pipeline.steps)
    if withDigests { try checkDigests(against: pipeline.steps) }
  }

  /// Checks what depends on no pipeline.
  package func checkContent() throws(DownloadError) {
    let length = id.rawValue.utf8.count
    guard length > 0, length <= 255 else {
      throw DownloadError(.invalidRequest, "a download's id must have 1 to 255 bytes of UTF-8, but has \(length)")
    }
    if let field = headers.fields.first(where: { !$0.isValid }) {
      throw DownloadError(.invalidRequest, "“\(field.name.prefix(50))” is not a valid header field")
    }
    try checkDependencies()
    for case .known(let size) in [expectedSize, sizeHint] where size < 0 {
      throw DownloadError(.invalidRequest, "the expected size is \(size) bytes: leave it out if it is unknown")
    }
    if let deadline, !deadline.timeIntervalSince1970.isFinite {
      throw DownloadError(.invalidRequest, "the deadline is not a point in time: leave it out if there is none")
    }
  }

  /// Checks that a selected step verifies each of the expected digests: a file must not finish unchecked.
  func checkDigests(against steps: [PipelineStep]) throws(DownloadError) {
    guard !expectedDigests.isEmpty || pieces != nil else { return }
    let context = ProcessingContext(request: self, workspace: nil, digests: expectedDigests)
    let verifying = steps.filter { $0.mayVerifyDigests && self.steps.contains($0.name) && $0.isNeeded(context) }
    if case .known(let size) = expectedSize, let pieces, !pieces.fit(size) {
      throw DownloadError(
        .invalidRequest,
        "the request expects \(size) bytes, but has the digests of \(pieces.count) pieces of \(pieces.length) bytes")
    }
    if verifying.isEmpty {
      throw DownloadError(
        .invalidRequest,
        "the request expects a digest, but no selected step of this pipeline verifies digests: add one, such as "
          + "VerifyChecksum(), or leave the digest out")
    }
    for digest in expectedDigests + (pieces.map { [$0.digest(at: 0)] } ?? []) {
      guard verifying.contains(where: { $0.verifies(digest.algorithm) }) else {
        throw DownloadError(
          .invalidRequest,
          "no selected step of this pipeline verifies digests of the algorithm “\(digest.algorithm.name.prefix(50))”")
      }
      if let count = digest.algorithm.byteCount, digest.bytes.count != count {
        throw DownloadError(
          .invalidRequest,
          "a \(digest.algorithm) digest has \(count) bytes, but the expected one has \(digest.bytes.count)")
      }
    }
  }

  private func checkDependencies() throws(DownloadError) {
    guard after.count <= Self.mostDependencies else {
      throw DownloadError(
        .invalidRequest,
        "a download can wait for at most \(Self.mostDependencies) others, but “\(id)” waits for \(after.count)")
    }
    guard !after.contains(id) else {
      throw DownloadError(.invalidRequest, "“\(id)” waits for “\(id)”: a download cannot wait for itself")
    }
    if let odd = after.first(where: { !(1...255).contains($0.rawValue.utf8.count) }) {
      throw DownloadError(
        .invalidRequest,
        "a download's id must have 1 to 255 bytes of UTF-8, but one in “after” has \(odd.rawValue.utf8.count)")
    }
  }

  /// The largest number of ids in ``after``.
  static var mostDependencies: Int { 1_000 }
}
