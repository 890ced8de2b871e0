/// A record that cannot be read.
public struct DamagedRecord: Sendable, Hashable {
  /// The id of the download.
  public var id: DownloadID
  /// A description of the damage.
  public var reason: String

  /// Creates a description of a damaged record.
  public init(id: DownloadID, reason: String) {
    self.id = id
    self.reason = reason
  }
}
