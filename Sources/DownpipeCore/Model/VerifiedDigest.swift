/// A digest that a step has compared with the bytes of a download, and found right.
///
/// A ``DigestVerifying`` step reports it with ``ProcessingContext/confirm(_:from:)``. The ledger keeps it, and
/// ``DownloadStatus/verified`` has those of a download.
public struct VerifiedDigest: Sendable, Hashable {
  /// Where an expected digest came from. The set is open: a step may have others.
  public struct Origin: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The text that the ledger stores and the tool prints.
    public let rawValue: String
    /// Creates an origin for a step.
    public init(_ rawValue: String) { self.rawValue = rawValue }
    /// The text of the origin.
    public var description: String { rawValue }

    /// ``DownloadRequest/expectedDigests``.
    public static let request = Origin("request")
    /// The server that sent the file, such as in `Repr-Digest`.
    public static let server = Origin("server")
    /// A checksum file.
    public static let checksumFile = Origin("checksum file")
    /// ``DownloadRequest/pieces``: the digest of each piece was compared.
    public static let pieces = Origin("pieces")
  }

  /// The algorithm of the digest, or of the digests of pieces.
  public let algorithm: DigestAlgorithm
  /// The digest of the whole file; `nil` if the digests of its pieces were compared.
  public let digest: FileDigest?
  /// Where the digest came from.
  public let origin: Origin

  /// Creates the report of a digest of the whole file.
  public init(_ digest: FileDigest, from origin: Origin) {
    algorithm = digest.algorithm
    self.digest = digest
    self.origin = origin
  }

  /// Creates the report that each piece of the file has its digest; its origin is ``Origin/pieces``.
  public init(_ pieces: PieceDigests) {
    algorithm = pieces.algorithm
    digest = nil
    origin = .pieces
  }
}

extension VerifiedDigest: Codable {
  private enum CodingKeys: String, CodingKey {
    case algorithm, digest
    case origin = "source"
  }

  /// Decodes the form that ``encode(to:)`` writes.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    algorithm = DigestAlgorithm(try container.decode(String.self, forKey: .algorithm))
    origin = Origin(try container.decode(String.self, forKey: .origin))
    guard let hex = try container.decodeIfPresent(String.self, forKey: .digest) else {
      digest = nil
      return
    }
    guard let digest = FileDigest(algorithm, hex: hex) else {
      throw DecodingError.dataCorruptedError(
        forKey: .digest, in: container, debugDescription: "this is no digest of its algorithm")
    }
    self.digest = digest
  }

  /// Encodes texts: the name of the algorithm, the hexadecimal digits, if there is a digest, and the origin as `source`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(algorithm.name, forKey: .algorithm)
    try container.encodeIfPresent(digest?.hex, forKey: .digest)
    try container.encode(origin.rawValue, forKey: .origin)
  }
}
