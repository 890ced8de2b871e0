/// The digest of a run of a partial's bytes: by it a checkpoint is believed after a crash, or not.
public struct BlockMark: Sendable, Hashable, Codable {
  /// The bytes.
  public let range: ByteRange
  /// Their digest.
  public let digest: FileDigest

  /// Makes a mark.
  public init(range: ByteRange, digest: FileDigest) {
    self.range = range
    self.digest = digest
  }
}
