/// How far a server's ranges are trusted.
///
/// After an unusable reply a URL is requested again in a way that depends less on its server; the bytes on disk are
/// kept meanwhile.
package enum RangeTrust: Int, Sendable, Hashable, Comparable {
  /// Not at all: the whole file is requested, and compared with the bytes on disk before anything is written.
  case none
  /// Ranges are trusted, but validators do not prove that the file is unchanged.
  case overlap
  /// Ranges and validators are trusted as RFC 9110 defines them.
  case full

  /// Orders values by trust, the lowest first.
  package static func < (left: RangeTrust, right: RangeTrust) -> Bool { left.rawValue < right.rawValue }
}

/// What proves that a partial can be resumed if the server gives no strong validator.
///
/// Some bytes are always downloaded again and compared, even if the validator is strong: the last 64 KiB, or the number
/// given by ``overlap(_:)`` (at least one byte); all bytes if there are fewer.
public enum ResumeValidation: Sendable, Hashable {
  /// A comparison of all bytes: the whole file is downloaded again. The partial is kept if every byte is equal.
  case strict
  /// A comparison of the last bytes on disk, as many as given. A strong validator does not make it shorter.
  case overlap(Int64)
  /// The digest of the whole file, which is checked at the end. The same as `.strict` if the request has no expected
  /// digest, or the pipeline no ``DigestVerifying`` step.
  case digest

  /// A comparison of the last 64 KiB, which is the default.
  public static let standard = ResumeValidation.overlap(65_536)
}
