public import Foundation

/// A description of a file to download and of what to do with it.
///
/// A request is a plain value: change it freely before adding it.
///
/// ```swift
/// let film = try DownloadRequest("https://example.org/film.mkv", id: "film", priority: .high)
///   .with(\.expectedSize, 734_003_200)
/// ```
public struct DownloadRequest: Sendable, Hashable {
  /// The properties: always one element, because an array is copied on write and is `Sendable`. Records, statuses and events
  /// are copied dozens of times for each download, and a copy of the properties costs a reference count for most of them.
  @usableFromInline var box: [Properties]

  /// The id of the download; random unless given. Adding the same id again updates the download.
  public var id: DownloadID {
    @inlinable get { box[0].id }
    @inlinable _modify { yield &box[0].id }
  }
  /// The URL of the file.
  ///
  /// The ledger keeps its secrets, such as a password or a signature, because the download needs them to continue.
  /// Messages, events and ``description`` hide them.
  public var url: URL {
    @inlinable get { box[0].url }
    @inlinable _modify { yield &box[0].url }
  }
  /// Other URLs of the same file, tried in order when the previous one has failed for good, or has sent bytes that were
  /// proved wrong.
  public var mirrors: [URL] {
    @inlinable get { box[0].mirrors }
    @inlinable _modify { yield &box[0].mirrors }
  }
  /// The priority of the download.
  public var priority: Priority {
    @inlinable get { box[0].priority }
    @inlinable _modify { yield &box[0].priority }
  }
  /// Why the file is wanted; gates and policies use it. By default ``Intent/userInitiated``, which gates with
  /// `unless: .userInitiated` let pass.
  public var intent: Intent {
    @inlinable get { box[0].intent }
    @inlinable _modify { yield &box[0].intent }
  }
  /// The time by which the file is wanted; `nil` when there is none. `EarliestDeadlineFirst` ranks by it. A download
  /// that has missed its deadline goes on.
  public var deadline: Date? {
    @inlinable get { box[0].deadline }
    @inlinable _modify { yield &box[0].deadline }
  }
  /// The downloads that have to finish first, at most 1,000; none by default.
  ///
  /// ```swift
  /// try DownloadRequest("https://example.org/index", id: "index").with(\.after, ["part 1", "part 2"])
  /// ```
  /// The download waits until each of them has finished, and ``WaitingReason/dependency(_:_:)`` says for which one. It goes
  /// on waiting while one of them is paused, has failed, was cancelled or removed; they may also be added later than the
  /// download. Once one has finished it stays met, also when it starts again. Changing the set does not stop a run in
  /// progress. Downloads that would wait for each other in a cycle are refused with `.invalidRequest`. If another
  /// process finishes a dependency, the download goes on within a second.
  public var after: Set<DownloadID> {
    @inlinable get { box[0].after }
    @inlinable _modify { yield &box[0].after }
  }
  /// Labels for queries, limits and bulk operations.
  public var tags: Set<String> {
    @inlinable get { box[0].tags }
    @inlinable _modify { yield &box[0].tags }
  }
  /// Values that the app attaches to the download. Downpipe keeps them and does not interpret them.
  ///
  /// Those whose keys begin with ``stepSettingPrefix`` are settings of steps: a change stops a running download, which goes
  /// on from its bytes, and its steps begin again. Other changes do not disturb it; steps that begin later see them.
  public var metadata: [String: String] {
    @inlinable get { box[0].metadata }
    @inlinable _modify { yield &box[0].metadata }
  }
  /// The exact size of the file, if known. A file of another size fails the download.
  public var expectedSize: ByteCount {
    @inlinable get { box[0].expectedSize }
    @inlinable _modify { yield &box[0].expectedSize }
  }
  /// The probable size of the file, for totals and policies. A wrong hint, which is common in feeds, does not fail the
  /// download.
  public var sizeHint: ByteCount {
    @inlinable get { box[0].sizeHint }
    @inlinable _modify { yield &box[0].sizeHint }
  }
  /// The digests that the whole file must have. A ``DigestVerifying`` step such as `VerifyChecksum` checks them; in a
  /// pipeline without one the request is refused.
  public var expectedDigests: [FileDigest] {
    @inlinable get { box[0].expectedDigests }
    @inlinable _modify { yield &box[0].expectedDigests }
  }
  /// The digests of the file's pieces; `nil` by default.
  ///
  /// They prove the file like ``expectedDigests``, and have the same requirements. A ``DigestVerifying`` step such as
  /// `VerifyChecksum` finds out with them which pieces are wrong, and only these are fetched again, from another place if
  /// there is one.
  public var pieces: PieceDigests? {
    @inlinable get { box[0].pieces }
    @inlinable _modify { yield &box[0].pieces }
  }
  /// The maximum number of bytes in the body; unlimited when `nil`. A longer body fails with `.tooLarge`.
  public var maximumSize: Int64? {
    @inlinable get { box[0].maximumSize }
    @inlinable _modify { yield &box[0].maximumSize }
  }
  /// The header fields to send, by default to the origin of the URL only: not to a mirror, a fresh link or a redirect on
  /// another origin; see ``HeaderField/Scope``.
  ///
  /// The ledger keeps them, including `Authorization`, because the download needs them to continue.
  public var headers: HeaderFields {
    @inlinable get { box[0].headers }
    @inlinable _modify { yield &box[0].headers }
  }
  /// The folder and name of the finished file, relative to the storage's root.
  public var destination: Destination {
    @inlinable get { box[0].destination }
    @inlinable _modify { yield &box[0].destination }
  }
  /// The steps of the pipeline that apply to the download; all steps by default.
  public var steps: StepSelection {
    @inlinable get { box[0].steps }
    @inlinable _modify { yield &box[0].steps }
  }
  /// What happens when the finished download is added again; nothing by default. See ``Refresh``.
  public var refresh: Refresh {
    @inlinable get { box[0].refresh }
    @inlinable _modify { yield &box[0].refresh }
  }
  /// Whether a server has named the URL and the mirrors, and not the user: a Metalink document, a playlist, a feed.
  ///
  /// Such places get no credentials, because the server would choose where they go: of ``headers`` they get those that
  /// are for everybody only (see ``HeaderField/Scope``), and nothing that the settings of the source have for their
  /// origins; see ``SourceRequest/isNamedByServer``. `false` by default.
  public var isNamedByServer: Bool {
    @inlinable get { box[0].isNamedByServer }
    @inlinable _modify { yield &box[0].isNamedByServer }
  }
  /// The downloads that this one follows from, if a ``FollowUp`` has added it; otherwise `nil`.
  ///
  /// The engine sets it, and bounds the number of generations and of downloads by it. Ledgers keep it.
  public var lineage: Lineage? {
    @inlinable get { box[0].lineage }
    @inlinable _modify { yield &box[0].lineage }
  }
  /// Bytes that another downloader has already fetched. It becomes `nil` when they have been imported, or when there is
  /// no such file: the download then begins at byte 0, after the event ``DownloadEvent/Kind/refused(_:)``.
  public var headStart: HeadStart? {
    @inlinable get { box[0].headStart }
    @inlinable _modify { yield &box[0].headStart }
  }

  /// Creates a request. All other properties have their defaults; set them afterwards, or use ``with(_:_:)``.
  public init(
    _ url: URL,
    id: DownloadID = DownloadID(),
    mirrors: [URL] = [],
    priority: Priority = .normal,
    intent: Intent = .userInitiated,
    tags: Set<String> = [],
    destination: Destination = Destination()
  ) {
    var properties = Properties(id: id, url: url)
    properties.mirrors = mirrors
    properties.priority = priority
    properties.intent = intent
    properties.tags = tags
    properties.destination = destination
    box = [properties]
  }

  /// Creates a request from the text of a URL.
  ///
  /// The text may have what a person or a list writes: blanks and characters of any script, which are encoded once, as
  /// browsers do it (WHATWG's URL standard). An escape such as `%E9` is sent as it is written.
  /// - Throws: ``DownloadError`` with `.unsupportedURL` when the text is not an absolute URL or has no host,
  ///   `.invalidRequest` when it is longer than ``maximumURLBytes``.
  public init(
    _ text: String,
    id: DownloadID = DownloadID(),
    mirrors: [URL] = [],
    priority: Priority = .normal,
    intent: Intent = .userInitiated,
    tags: Set<String> = [],
    destination: Destination = Destination()
  ) throws(DownloadError) {
    try Self.check(text)
    guard let url = HTTPURL.parse(text) else { throw Self.unreadable(text) }
    self.init(
      url, id: id, mirrors: mirrors, priority: priority, intent: intent, tags: tags, destination: destination)
  }

  /// Returns a copy of the request with another value of a property.
  ///
  /// ```swift
  /// let notes = try DownloadRequest("https://example.org/1.txt", id: "notes").with(\.after, ["film"])
  /// ```
  public func with<Value>(_ property: WritableKeyPath<Self, Value>, _ value: Value) -> Self {
    var copy = self
    copy[keyPath: property] = value
    return copy
  }

  /// The most bytes of UTF-8 in the text of a URL: 64 KiB. Few servers accept more than 8 KiB.
  public static let maximumURLBytes = 65_536

  /// The beginning of those keys of ``metadata`` whose values are settings of steps: `downpipe.`.
  public static let stepSettingPrefix = "downpipe."

  private static func check(_ text: String) throws(DownloadError) {
    guard text.utf8.count <= maximumURLBytes else {
      throw DownloadError(.invalidRequest, "the URL is longer than 65,536 bytes (64 KiB)")
    }
    // The URL standard takes the path for a host here, as if it had been typed with two slashes.
    guard !text.hasEmptyHost else {
      throw DownloadError(
        .unsupportedURL,
        "“\(text.redactedURL.prefix(200))” has no host between its slashes: write it as https://host/path")
    }
  }

  private static func unreadable(_ text: String) -> DownloadError {
    let start = "“\(text.redactedURL.prefix(200))” is not"
    return DownloadError(
      .unsupportedURL,
      text.hasHTTPScheme
        ? "\(start) a valid URL: check its host and port"
        : "\(start) an absolute URL: write it with its scheme, such as https://example.org/file")
  }

  /// The host that limits per host apply to: in lower case, with the port if the URL has one.
  public var host: String { url.hostKey }

  /// The expected size if it is known, otherwise the size hint.
  public var likelySize: ByteCount { expectedSize == .unknown ? sizeHint : expectedSize }
}

extension DownloadRequest: CustomStringConvertible {
  /// The id and the URL without its secrets, suitable for logs.
  public var description: String { "\(id.rawValue.redactingURLs) \(url.redacted)" }
}
