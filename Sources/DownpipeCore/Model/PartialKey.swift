/// The key of a partial: the id of the download, its generation, and which of its two partials it is.
///
/// The generation prevents a stale task of an earlier generation from writing into the bytes of a later one. A download has
/// two partials while a new version of its file is fetched beside the bytes of the earlier one, which are kept until the new
/// one is complete.
public struct PartialKey: Sendable, Hashable {
  /// The id of the download.
  public let id: DownloadID
  /// The generation, which grows each time the id is added again.
  public let generation: Int64
  /// Whether this is the second partial of the download.
  public let isSecond: Bool

  /// Creates a key.
  public init(id: DownloadID, generation: Int64, isSecond: Bool = false) {
    self.id = id
    self.generation = generation
    self.isSecond = isSecond
  }

  /// The key of the download's other partial.
  public var other: PartialKey { PartialKey(id: id, generation: generation, isSecond: !isSecond) }
}
