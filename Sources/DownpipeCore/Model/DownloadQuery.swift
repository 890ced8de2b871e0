/// Which downloads are asked for, and in which order.
public struct DownloadQuery: Sendable, Hashable {
  /// Only these phases; every one when `nil`.
  public var phases: Set<DownloadState.Phase>?
  /// Only those with the tag.
  public var tag: String?
  /// Only those that belong to this ``Storage/location``, or to none.
  public var location: String?
  /// Which comes first.
  public var order: Order
  /// At most this many; every one when `nil`.
  public var limit: Int?
  /// Leaves out this many first.
  public var offset: Int

  /// An order of downloads.
  public enum Order: String, Sendable, Hashable {
    /// The earliest added first.
    case arrival
    /// The next to be started first.
    case rank
    /// The last changed first.
    case latestChange
  }

  /// Asks a question.
  public init(
    phases: Set<DownloadState.Phase>? = nil, tag: String? = nil, location: String? = nil, order: Order = .arrival,
    limit: Int? = nil, offset: Int = 0
  ) {
    self.location = location
    self.phases = phases
    self.tag = tag
    self.order = order
    self.limit = limit
    self.offset = offset
  }
}
