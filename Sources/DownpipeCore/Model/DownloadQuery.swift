/// A selection of downloads, and their order.
public struct DownloadQuery: Sendable, Hashable {
  /// Selects the downloads that match the filter.
  public var filter: DownloadFilter
  /// The location of the filter; see ``DownloadFilter/location``.
  public var location: String? {
    get { filter.location }
    set { filter.location = newValue }
  }
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

  /// Creates a query for the downloads that match a filter. When `location` is `nil`, it is that of the filter.
  public init(
    _ filter: DownloadFilter, location: String? = nil, order: Order = .arrival, limit: Int? = nil, offset: Int = 0
  ) {
    self.filter = filter
    self.order = order
    self.limit = limit
    self.offset = offset
    if let location { self.filter.location = location }
  }

  /// Creates a query with the conditions of a ``DownloadFilter``; without arguments, one for all downloads.
  public init(
    phases: Set<DownloadState.Phase>? = nil, tag: String? = nil, host: String? = nil, intent: Intent? = nil,
    ids: Set<DownloadID>? = nil, location: String? = nil, order: Order = .arrival, limit: Int? = nil, offset: Int = 0
  ) {
    self.init(
      DownloadFilter(phases: phases, tag: tag, host: host, intent: intent, ids: ids), location: location, order: order,
      limit: limit, offset: offset)
  }
}
