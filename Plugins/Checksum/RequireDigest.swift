public import DownpipeCore

/// A step that refuses a file of which no step before it has verified a digest.
///
/// ```swift
/// VerifyChecksum()
/// VerifyChecksum(file: .beside("SHA256SUMS"))
/// RequireDigest()
/// Gunzip()
/// ```
/// Any digest is enough: of the request, of its pieces, of the server or of a checksum file; see
/// ``/DownpipeCore/ProcessingContext/verified``. Put the step behind those that verify, and before those that change, move or
/// publish the file. With ``/DownpipeCore/DownloadRequest/steps`` it applies to the downloads that select it.
///
/// A signature is no digest. A file that the storage takes as it is, under the conflict policy `.reuse`, goes through no step.
///
/// **Contract.** The step does not read the file. It throws `DownloadError` with `.unverified`; the bytes are kept, so that
/// the download can finish without another transfer once its request has a digest.
public struct RequireDigest: UniversalPostProcessor {
  /// Creates the step.
  public init() {}

  /// The step checks a file and does not change it.
  public var keepsContent: Bool { true }

  /// Whether no digest was verified.
  public func isNeeded(in context: ProcessingContext) -> Bool { context.verified.isEmpty }

  /// Returns a follower that ignores the bytes, so that the steps after this one can follow the transfer, too.
  public func follower(in context: ProcessingContext) -> (any TransferFollower)? { Bystander() }

  /// Refuses the file, unless a digest was verified.
  public func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    guard context.verified.isEmpty else { return artifact }
    throw DownloadError(
      .unverified,
      "a digest is required, and nothing has verified “\(artifact.name)”: neither the request nor the server nor a checksum "
        + "file has a digest of it. Give the request an expected digest")
  }

  private struct Bystander: TransferFollower {
    func take(_ bytes: RawSpan) {}
  }
}
