/// The key of a partial: the id of the download and its generation.
///
/// The generation prevents a stale task of an earlier generation from writing into the bytes of a later one.
public struct PartialKey: Sendable, Hashable {
  /// The id of the download.
  public let id: DownloadID
  /// The generation, which grows each time the id is added again.
  public let generation: Int64

  /// Creates a key.
  public init(id: DownloadID, generation: Int64) {
    self.id = id
    self.generation = generation
  }
}
