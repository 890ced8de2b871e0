/// A selection of downloads, and their order.
public struct DownloadQuery: Sendable, Hashable {
  /// Selects downloads in these phases; all phases when `nil`.
  public var phases: Set<DownloadState.Phase>?
  /// Selects downloads with this tag; all downloads when `nil`.
  public var tag: String?
  /// Selects downloads that belong to this ``Storage/location`` or to none; all downloads when `nil`.
  /// ``Downloader/statuses(_:)`` then selects those of its own storage.
  public var location: String?
  /// The order of the result.
  public var order: Order
  /// The maximum number of downloads; unlimited when `nil`.
  public var limit: Int?
  /// The number of downloads to skip at the beginning of the result.
  public var offset: Int

  /// An order of downloads.
  public enum Order: String, Sendable, Hashable {
    /// The first added comes first.
    case arrival
    /// The next to start comes first.
    case rank
    /// The last changed comes first.
    case latestChange
  }

  /// Creates a query.
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
