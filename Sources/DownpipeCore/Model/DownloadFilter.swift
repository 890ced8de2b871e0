/// A selection of downloads by phase, tag, host, intent, id and location. A download matches if it meets every given condition.
///
/// ```swift
/// try await downloader.pauseAll(.tag("show"))
/// try await downloader.removeAll(DownloadFilter(phases: [.failed], host: "example.org"))
/// try await downloader.resumeAll(.ids(["film", "trailer"]))
/// ```
public struct DownloadFilter: Sendable, Hashable {
  /// Selects downloads in these phases; all phases when `nil`.
  public var phases: Set<DownloadState.Phase>?
  /// Selects downloads with this tag; all downloads when `nil`.
  public var tag: String?
  /// Selects downloads whose URL has this host; all downloads when `nil`.
  ///
  /// It is compared with ``DownloadRequest/host``: in lower case, with the port if the URL has one. An assigned value
  /// is converted to lower case.
  public var host: String? {
    didSet { host = host?.lowercased() }
  }
  /// Selects downloads with this intent; all downloads when `nil`.
  public var intent: Intent?
  /// Selects the downloads with these ids; all downloads when `nil`, and none when empty. Unknown ids do not matter.
  ///
  /// Ledgers look the ids up, so that thousands of them cost nothing beside a queue of millions.
  public var ids: Set<DownloadID>?
  /// Selects downloads that belong to this ``Storage/location`` or to none; all downloads when `nil`.
  ///
  /// With `nil`, ``Downloader/statuses(_:)``, ``Downloader/counts(_:)`` and ``Downloader/totals(_:)`` select those of the
  /// downloader's own storage: the paths of another one mean nothing here.
  public var location: String?

  /// Creates a filter; without arguments, one that every download matches.
  public init(
    phases: Set<DownloadState.Phase>? = nil, tag: String? = nil, host: String? = nil, intent: Intent? = nil,
    ids: Set<DownloadID>? = nil, location: String? = nil
  ) {
    self.phases = phases
    self.tag = tag
    self.host = host?.lowercased()
    self.intent = intent
    self.ids = ids
    self.location = location
  }

  /// Matches every download.
  public static let all = DownloadFilter()
  /// Matches downloads in the given phases.
  public static func phases(_ phases: Set<DownloadState.Phase>) -> DownloadFilter { DownloadFilter(phases: phases) }
  /// Matches downloads with the tag.
  public static func tag(_ tag: String) -> DownloadFilter { DownloadFilter(tag: tag) }
  /// Matches downloads whose URL has the host; see ``host-swift.property``.
  public static func host(_ host: String) -> DownloadFilter { DownloadFilter(host: host) }
  /// Matches downloads with the intent.
  public static func intent(_ intent: Intent) -> DownloadFilter { DownloadFilter(intent: intent) }
  /// Matches the downloads with the ids.
  public static func ids(_ ids: some Sequence<DownloadID>) -> DownloadFilter { DownloadFilter(ids: Set(ids)) }

  /// Returns whether a record meets every condition.
  @_spi(Ledger) public func matches(_ record: DownloadRecord) -> Bool { matches(record, host: record.request.host) }

  /// Returns whether a record meets every condition. Pass the host if it is known: reading it parses the URL.
  func matches(_ record: DownloadRecord, host: @autoclosure () -> String) -> Bool {
    phases?.contains(record.phase) ?? true && ids?.contains(record.id) ?? true
      && tag.map(record.request.tags.contains) ?? true
      && intent.map { $0 == record.request.intent } ?? true && self.host.map { $0 == host() } ?? true
      && record.belongs(to: location)
  }
}
