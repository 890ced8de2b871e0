import Downpipe

/// Checks a file against the checksum file that its request names.
struct ChecksumFileStep: UniversalPostProcessor {
  var name: String { RequestSteps.checksumFileStep }
  var summary: String { "as each request says" }
  var keepsContent: Bool { true }

  func follower(in context: ProcessingContext) -> (any TransferFollower)? {
    (try? step(context))?.follower(in: context)
  }

  func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    try await step(context).process(artifact, in: context)
  }

  private func step(_ context: ProcessingContext) throws(DownloadError) -> VerifyChecksum {
    guard let place = RequestSteps(context.request).checksumFile else { throw .unreadableSettings("--checksum-file") }
    return VerifyChecksum(file: place.file)
  }
}

extension DownloadError {
  /// The ledger says that a step applies, but not how.
  static func unreadableSettings(_ option: String) -> DownloadError {
    DownloadError(
      .invalidRequest,
      "the ledger has no usable value of \(option) for the file: give the option to “downpipe get” again"
    )
  }
}
