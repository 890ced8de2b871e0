/// Names a partial: the download's id and the generation it belongs to, so that a stale task of an
/// earlier generation can never write into a later one's bytes.
public struct PartialKey: Sendable, Hashable {
  /// The download.
  public let id: DownloadID
  /// Grows each time an id is added anew.
  public let generation: Int64

  /// Makes a key.
  public init(id: DownloadID, generation: Int64) {
    self.id = id
    self.generation = generation
  }
}
