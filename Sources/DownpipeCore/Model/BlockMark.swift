/// The digest of a block of a partial. After a crash it decides whether a checkpoint can be used up to the end of the
/// block.
public struct BlockMark: Sendable, Hashable, Codable {
  /// The offsets of the block's bytes.
  public let range: ByteRange
  /// The digest of the block's bytes.
  public let digest: FileDigest

  /// Creates a mark.
  public init(range: ByteRange, digest: FileDigest) {
    self.range = range
    self.digest = digest
  }
}
