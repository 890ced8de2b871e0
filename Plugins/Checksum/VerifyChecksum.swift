public import DownpipeCore

/// A step that checks the digests of a file and does not change the file.
///
/// ```swift
/// VerifyChecksum()                                    // the digests of the request and of the server
/// VerifyChecksum(required: true)                      // fails without any digest
/// VerifyChecksum(.sha256, .sha512, required: true)    // fails without one of these
/// VerifyChecksum(file: .beside("SHA256SUMS"))         // also the digest in a checksum file
/// ```
///
/// All digests in ``/DownpipeCore/ProcessingContext/digests`` are checked, and all must match. They are computed while
/// the bytes arrive, if the step is the first of the pipeline; otherwise, and after a restart of the process with a
/// complete file, the file is read once. Put the step before steps that change the bytes, such as decompression: digests are those of the file as it was
/// downloaded.
///
/// **Pieces.** If the request has ``/DownpipeCore/DownloadRequest/pieces``, and the file is not right, the step finds out
/// which pieces are wrong. If they are at most half of all, it throws `.pieceMismatch`, and the downloader fetches only
/// these again. Without a digest of SHA-2 for the whole file, the pieces prove it, too.
///
/// **Which digests are checked.** A digest in the request must have a supported algorithm
/// (``DigestComputation/supportedAlgorithms``); otherwise the step fails. A digest from the server with another
/// algorithm is ignored, as RFC 9530 §2 allows. Those that are right are reported, with their origin: they are in
/// ``/DownpipeCore/DownloadStatus/verified``, and ``RequireDigest`` refuses files without any.
///
/// **Contract.** The step blocks, and checks for cancellation before each block. Without a digest it does not open the
/// file. It throws `DownloadError` with `.digestMismatch`, whose message has the algorithm and both digests;
/// `.invalidRequest` for a digest in the request that cannot be checked; `.invalidPipeline` if a digest is required and
/// none of the algorithms is supported; `.processing` for a folder, or if a digest is
/// required and there is none; `.permission` or `.storage` if the file cannot be read; and `CancellationError`.
///
/// **Checksum files.** With ``init(file:entry:)`` the step also fetches a ``ChecksumFile``, and fails without an entry for
/// the download. It says that the bytes are those that the publisher had summed, and not who the publisher is: fetch it
/// with `https`, or from another server than the download, or verify a signature. The entry is compared with the file
/// after transport codings are removed, as the request's digests are. Downloads share one copy of the file for a minute, and
/// its parsed form; if that is not right, the step asks the server for it before it fails. See
/// ``DownpipeChecksum`` for manifests with many files.
public struct VerifyChecksum: UniversalPostProcessor, DigestVerifying {
  /// The algorithms of the digests that are checked; all supported ones if empty.
  public let algorithms: [DigestAlgorithm]
  /// Whether the step fails without a digest to check.
  public let isRequired: Bool
  /// The checksum file; `nil` when there is none.
  public let file: CompanionFile?
  /// The name of the download in the checksum file; that of the request's URL when `nil`.
  public let entry: String?
  let parsed = ParsedChecksumFile()

  /// Creates a step that checks all digests.
  ///
  /// - Parameter required: Whether the step fails without a digest.
  public init(required: Bool = false) {
    algorithms = []
    isRequired = required
    file = nil
    entry = nil
  }

  /// Creates a step that checks all digests, and the digests of the download in a checksum file, which is required.
  ///
  /// The step fetches the file, of at most ``ChecksumFile/maximumBytes``. It throws `DownloadError` with `.noChecksum`
  /// when the file does not exist or has no entry for the download, `.invalidChecksumFile` when it cannot be read, and
  /// the errors of ``/DownpipeCore/ProcessingContext/fetch(_:maximumBytes:isNamedByUser:)``.
  /// - Parameters:
  ///   - file: The checksum file.
  ///   - entry: The name of the download in the file; by default the last component of the request's URL.
  public init(file: CompanionFile, entry: String? = nil) {
    algorithms = []
    isRequired = false
    self.file = file
    self.entry = entry
  }

  /// Creates a step that checks digests from the server only if they have one of some algorithms. Digests in the
  /// request are always checked.
  ///
  /// - Parameters:
  ///   - first: An algorithm.
  ///   - others: More algorithms.
  ///   - required: Whether the step fails without a digest of these algorithms, so that a digest of a weaker algorithm
  ///     is not enough.
  public init(_ first: DigestAlgorithm, _ others: DigestAlgorithm..., required: Bool) {
    algorithms = [first] + others
    isRequired = required
    file = nil
    entry = nil
  }

  /// The algorithms, and whether a digest is required.
  public var summary: String {
    if let file { return file.description }
    let names = algorithms.map(\.name).joined(separator: " or ")
    switch (names.isEmpty, isRequired) {
    case (true, false): return ""
    case (true, true): return "required"
    case (false, false): return names
    case (false, true): return names + " required"
    }
  }

  /// The step checks a file and does not change it.
  public var keepsContent: Bool { true }

  /// Whether there is a digest to check, or one is required.
  public func isNeeded(in context: ProcessingContext) -> Bool {
    isRequired || file != nil || !context.digests.isEmpty || context.request.pieces != nil
  }

  /// Adds the step at the end of the pipeline's steps.
  ///
  /// With a checksum file it takes no part in the verification of bytes before their transport codings are removed, and
  /// does not count as a step that verifies what a server sends.
  public func contribute(to parts: inout PipelineParts) {
    parts.steps.append(
      PipelineStep(
        name: name, summary: summary, input: nil, output: nil, verifiesDigests: file == nil, verifies: verifies(_:),
        isNeeded: isNeeded(in:), follower: follower(in:), keepsContent: true,
        process: { artifact, context in try await process(artifact, in: context) }))
  }

  /// Returns a follower that computes the digests while the bytes arrive.
  public func follower(in context: ProcessingContext) -> (any TransferFollower)? {
    // An error is reported by the step.
    guard let expected = try? expectedDigests(in: context) else { return nil }
    var algorithms = Self.algorithms(of: expected)
    // The checksum file is fetched later: the algorithm that its name states is the likely one.
    if let stated = file.flatMap({ try? ChecksumFileParser.algorithm(in: Self.statement($0, context)) }),
      !algorithms.contains(stated)
    {
      algorithms.append(stated)
    }
    // The pieces of a file that its own digest proves are only needed when it is wrong.
    let pieces = Self.isProved(context.request) ? nil : context.request.pieces
    return algorithms.isEmpty && pieces == nil ? nil : try? DigestFollower(algorithms, pieces: pieces)
  }

  /// Checks the digests of the artifact and returns it unchanged.
  public func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    guard artifact.kind == .file else {
      throw DownloadError(
        .processing,
        "“\(artifact.name)” is a folder, which has no digest: put VerifyChecksum before the step that creates it")
    }
    let stated = try expectedDigests(in: context)
    var published = try await publishedDigests(in: context)
    let pieces = context.request.pieces
    guard !stated.isEmpty || !published.isEmpty || pieces != nil else { return artifact }
    try Task.checkCancellation()
    var actual = try digests(of: artifact, Self.algorithms(of: stated + published), in: context)
    if published.contains(where: { !actual.contains($0) }), stated.allSatisfy(actual.contains) {
      // The checksum file may have been replaced with the download since another download fetched it.
      let again = try await publishedDigests(in: context)
      if again != published {
        published = again
        actual = try digests(of: artifact, Self.algorithms(of: stated + published), in: context)
      }
    }
    let expected = stated + published.filter { !stated.contains($0) }
    do {
      try check(artifact, actual, expected, published, in: context)
    } catch {
      throw try pieces.flatMap { try failure(of: artifact, $0, error, in: context) } ?? error
    }
    confirm(expected, published, in: context)
    guard let pieces, !Self.isProved(context.request) else { return artifact }
    if let error = try failure(of: artifact, pieces, in: context) { throw error }
    context.confirm(pieces)
    return artifact
  }

  /// Reports the digests that are right, with each origin that they have.
  private func confirm(_ right: [FileDigest], _ published: [FileDigest], in context: ProcessingContext) {
    let requested = context.request.expectedDigests
    for digest in right {
      if requested.contains(digest) {
        context.confirm(digest, from: .request)
      } else if context.digests.contains(digest) {
        context.confirm(digest, from: .server)
      }
      if published.contains(digest) { context.confirm(digest, from: .checksumFile) }
    }
  }

  /// Compares digests with the expected ones.
  private func check(
    _ artifact: Artifact, _ actual: [FileDigest], _ expected: [FileDigest], _ published: [FileDigest],
    in context: ProcessingContext
  ) throws(DownloadError) {
    for digest in expected {
      guard let computed = actual.first(where: { $0.algorithm == digest.algorithm }), computed == digest else {
        let computed = actual.first { $0.algorithm == digest.algorithm }
        let origin =
          context.request.expectedDigests.contains(digest)
          ? "the request expects" : published.contains(digest) ? "the checksum file has" : "the server sent"
        throw DownloadError(
          .digestMismatch,
          "the \(digest.algorithm) of “\(artifact.name)” is \(computed?.hex ?? "unknown"), but \(origin) \(digest.hex): "
            + "the file is damaged or another version: download it again")
      }
    }
  }

  // MARK: Pieces

  /// Whether a digest that the request expects proves the whole file, so that its pieces need not be checked. A digest that
  /// its server has sent, or that a checksum file has, does not replace what the request expects.
  private static func isProved(_ request: DownloadRequest) -> Bool {
    request.expectedDigests.contains { $0.algorithm.isStrong }
  }

  /// The error for a file with wrong pieces; `nil` if there are none.
  /// - Parameter whole: The error of the whole file.
  private func failure(
    of artifact: Artifact, _ pieces: PieceDigests, _ whole: DownloadError? = nil, in context: ProcessingContext
  ) throws -> DownloadError? {
    // Nothing is computed for pieces of another file.
    guard case .known(let size) = artifact.size, pieces.fit(size) else {
      return whole
        ?? DownloadError(
          .digestMismatch,
          "“\(artifact.name)” has \(artifact.size.bytes.map(String.init) ?? "unknown") bytes, but the request has the digests "
            + "of \(pieces.count) pieces of \(pieces.length) bytes: the file is another version, or its pieces are")
    }
    let wrong = pieces.wrongPieces(among: try digests(of: artifact, pieces, in: context))
    guard !wrong.isEmpty else {
      return whole.map { error in
        var error = error
        error.message += "; the digests of all its pieces are right, so the expected digests contradict each other"
        return error
      }
    }
    let text =
      "\(wrong.count) of \(pieces.count) pieces of “\(artifact.name)” have another \(pieces.algorithm) than expected"
    guard wrong.count * 2 <= pieces.count else {
      return whole ?? DownloadError(.digestMismatch, "\(text): the file is another version: download it again")
    }
    var error = DownloadError(.pieceMismatch, "\(text): fetch them again")
    error.wrongBytes = wrong.reduce(into: ByteRangeSet()) { $0.insert(contentsOf: pieces.range(at: $1, of: size)) }
    return error
  }

  // MARK: Whole files

  /// The digests to check without duplicates, those of the request first.
  private func expectedDigests(in context: ProcessingContext) throws(DownloadError) -> [FileDigest] {
    if isRequired, !algorithms.isEmpty, !algorithms.contains(where: DigestComputation.supportedAlgorithms.contains) {
      throw DownloadError(
        .invalidPipeline,
        "VerifyChecksum requires \(algorithms.map(\.name).joined(separator: " or ")), which is not supported: "
          + "use one of \(DigestComputation.supportedNames)")
    }
    var expected: [FileDigest] = []
    for digest in context.request.expectedDigests where !expected.contains(digest) {
      guard DigestComputation.supportedAlgorithms.contains(digest.algorithm) else {
        throw DownloadError(
          .invalidRequest,
          "the request expects a digest of the algorithm “\(digest.algorithm.name.prefix(64))”, which is not supported: "
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
    let hasPieces = context.request.pieces.map { counted.contains($0.algorithm) } ?? false
    guard !isRequired || hasPieces || expected.contains(where: { counted.contains($0.algorithm) }) else {
      throw DownloadError(
        .processing,
        "a \(algorithms.isEmpty ? "digest" : algorithms.map(\.name).joined(separator: " or ")) is required, and neither "
          + "the request nor the server has one: give the request an expected digest")
    }
    return expected
  }

  private static func algorithms(of digests: [FileDigest]) -> [DigestAlgorithm] {
    var algorithms: [DigestAlgorithm] = []
    for digest in digests where !algorithms.contains(digest.algorithm) { algorithms.append(digest.algorithm) }
    return algorithms
  }

  // MARK: Reading

  /// The digests of the whole file, which its follower has computed or which are computed now.
  private func digests(
    of artifact: Artifact, _ algorithms: [DigestAlgorithm], in context: ProcessingContext
  ) throws -> [FileDigest] {
    if algorithms.isEmpty { return [] }
    if let known = (context.follower as? DigestFollower)?.digests(algorithms) { return known }
    let follower = try DigestFollower(algorithms)
    try follower.read(artifact, in: context)
    return follower.digests(algorithms) ?? []
  }

  /// The digests of the pieces, in the same way.
  private func digests(
    of artifact: Artifact, _ pieces: PieceDigests, in context: ProcessingContext
  ) throws -> [FileDigest] {
    func known(_ follower: (any TransferFollower)?) -> [FileDigest]? {
      (follower as? DigestFollower)?.digests(ofPieces: pieces.algorithm, length: pieces.length)
    }
    if let digests = known(context.follower) { return digests }
    let follower = try DigestFollower([], pieces: pieces)
    try follower.read(artifact, in: context)
    return known(follower) ?? []
  }
}
