public import DownpipeCore

/// Checks that a file has the digests it should, and passes it through unchanged.
///
/// ```swift
/// VerifyChecksum()                                    // what the request expects and what the server promised
/// VerifyChecksum(required: true)                      // … and fail when neither says anything
/// VerifyChecksum(.sha256, .sha512, required: true)    // … and one of these it must be
/// ```
///
/// Every digest in ``ProcessingContext/digests`` is checked, and all of them must match; the file is read
/// once. Put it before the steps that change the bytes, such as unpacking: digests are those of the file as
/// it was downloaded.
///
/// **What counts.** The request's own digests must all be of a supported algorithm
/// (``DigestComputation/supportedAlgorithms``): one that cannot be checked is an error, never skipped. Those
/// that the server promised are skipped when they cannot be checked, as RFC 9530 §2 allows.
///
/// **Contract.** It blocks, reading 1 MiB at a time, and looks after each block whether its task was
/// cancelled. Without any digest it does not open the file. It throws ``DownloadError``: `.digestMismatch`
/// with the algorithm and both digests; `.invalidRequest` for an expected digest that cannot be checked;
/// `.processing` for a folder, or when a digest is required and there is none; `.permission` and `.storage`
/// for a file that cannot be read; and `CancellationError`.
public struct VerifyChecksum: UniversalPostProcessor, DigestVerifying {
  /// The algorithms whose digests count; every supported one when empty.
  public let algorithms: [DigestAlgorithm]
  /// Whether there must be a digest to check.
  public let isRequired: Bool

  /// Checks every digest there is.
  ///
  /// - Parameter required: whether it is an error when there is none.
  public init(required: Bool = false) {
    algorithms = []
    isRequired = required
  }

  /// Checks the digests of some algorithms: of those that the server promised only these, and of the
  /// request's own all the same every one.
  ///
  /// - Parameters:
  ///   - first: an algorithm.
  ///   - others: more algorithms.
  ///   - required: whether it is an error when there is no digest of any of these algorithms, so that a
  ///     weaker one never stands in for them.
  public init(_ first: DigestAlgorithm, _ others: DigestAlgorithm..., required: Bool) {
    algorithms = [first] + others
    isRequired = required
  }

  /// The algorithms, and whether they are required.
  public var summary: String {
    let names = algorithms.map(\.name).joined(separator: " or ")
    switch (names.isEmpty, isRequired) {
    case (true, false): return ""
    case (true, true): return "required"
    case (false, false): return names
    case (false, true): return names + " required"
    }
  }

  /// Whether there is a digest to check, or one is required.
  public func isNeeded(in context: ProcessingContext) -> Bool { isRequired || !context.digests.isEmpty }

  /// Checks the artifact.
  public func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    guard artifact.kind == .file else {
      throw DownloadError(
        .processing,
        "“\(artifact.name)” is a folder, which has no digest: put VerifyChecksum before the step that unpacks")
    }
    let expected = try expectedDigests(in: context)
    guard !expected.isEmpty else { return artifact }
    var wanted: [DigestAlgorithm] = []
    for digest in expected where !wanted.contains(digest.algorithm) { wanted.append(digest.algorithm) }
    let actual = try digests(of: artifact, wanted)
    for digest in expected {
      guard let computed = actual.first(where: { $0.algorithm == digest.algorithm }), computed == digest else {
        let computed = actual.first { $0.algorithm == digest.algorithm }
        let origin = context.request.expectedDigests.contains(digest) ? "the request expects" : "the server promised"
        throw DownloadError(
          .digestMismatch,
          "the \(digest.algorithm) of “\(artifact.name)” is \(computed?.hex ?? "unknown"), but \(origin) \(digest.hex): "
            + "the bytes are not the ones that were meant")
      }
    }
    return artifact
  }

  /// The digests to check, each once, those of the request first.
  private func expectedDigests(in context: ProcessingContext) throws(DownloadError) -> [FileDigest] {
    if isRequired, !algorithms.isEmpty, !algorithms.contains(where: DigestComputation.supportedAlgorithms.contains) {
      throw DownloadError(
        .invalidPipeline,
        "VerifyChecksum requires \(algorithms.map(\.name).joined(separator: " or ")), which cannot be computed: "
          + "use one of \(DigestComputation.supportedNames)")
    }
    var expected: [FileDigest] = []
    for digest in context.request.expectedDigests where !expected.contains(digest) {
      guard DigestComputation.supportedAlgorithms.contains(digest.algorithm) else {
        throw DownloadError(
          .invalidRequest,
          "the request expects a digest of the algorithm “\(digest.algorithm.name.prefix(64))”, which cannot be checked: "
            + "use one of \(DigestComputation.supportedNames)")
      }
      guard digest.algorithm.byteCount == digest.bytes.count else {
        throw DownloadError(
          .invalidRequest,
          "the request expects a \(digest.algorithm) of \(digest.bytes.count) bytes, but such digests have "
            + "\(digest.algorithm.byteCount ?? 0)")
      }
      expected.append(digest)
    }
    let counted = algorithms.isEmpty ? DigestComputation.supportedAlgorithms : algorithms
    for digest in context.digests
    where counted.contains(digest.algorithm) && DigestComputation.supportedAlgorithms.contains(digest.algorithm)
      && digest.algorithm.byteCount == digest.bytes.count && !expected.contains(digest)
    {
      expected.append(digest)
    }
    guard !isRequired || expected.contains(where: { counted.contains($0.algorithm) }) else {
      throw DownloadError(
        .processing,
        "there is no \(algorithms.isEmpty ? "digest" : algorithms.map(\.name).joined(separator: " or ")) to check "
          + "the file by, and one is required: give the request an expected digest")
    }
    return expected
  }

  private func digests(of artifact: Artifact, _ algorithms: [DigestAlgorithm]) throws -> [FileDigest] {
    switch artifact.location {
    case .path(let path):
      var file = try FileDigests(of: path, algorithms)
      while try file.readBlock() {}
      return file.digests
    case .memory(let bytes):
      var computations: [DigestComputation] = []
      for algorithm in algorithms { computations.append(try DigestComputation(algorithm)) }
      var offset = 0
      repeat {
        try Task.checkCancellation()
        let end = min(offset + FileDigests.blockSize, bytes.count)
        for index in computations.indices { computations[index].update(bytes.span.bytes.extracting(offset..<end)) }
        offset = end
      } while offset < bytes.count
      return computations.map { $0.finalize() }
    }
  }
}
