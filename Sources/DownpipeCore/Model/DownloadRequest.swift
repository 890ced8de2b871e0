public import Foundation

/// What somebody wants downloaded. A plain value: change it freely before adding it.
public struct DownloadRequest: Sendable, Hashable {
  /// The download's own name; a random one unless given. Adding the same id again updates the download.
  public var id: DownloadID
  /// Where the bytes are. What it holds of secrets, such as a password or a signature, is kept in the ledger, where
  /// the download needs them to go on; messages, events and ``description`` hide them.
  public var url: URL
  /// Other places that hold the same bytes, tried in order when the first one fails for good.
  public var mirrors: [URL]
  /// How much it matters beside others.
  public var priority: Priority
  /// Why it is wanted; gates and policies read it.
  public var intent: Intent
  /// Free labels, for queries, limits and bulk operations.
  public var tags: Set<String>
  /// Free-form information that travels with the download.
  public var metadata: [String: String]
  /// The size the whole file must have, if known beforehand: a file of another size fails.
  public var expectedSize: ByteCount
  /// The size it will probably have, for sums and policies: feeds lie about lengths, and nothing fails by it.
  public var sizeHint: ByteCount
  /// Digests the whole file must have; `VerifyChecksum` checks them.
  public var expectedDigests: [FileDigest]
  /// The most bytes the body may have; a longer one fails with `.tooLarge`. Unbounded when `nil`.
  public var maximumSize: Int64?
  /// Header fields to send. The ledger keeps them, `Authorization` too: without them the download could not go on.
  public var headers: HeaderFields
  /// Where the file goes below the storage's root, and under which name.
  public var destination: Destination
  /// Which steps of the pipeline apply to it; all of them unless told.
  public var steps: StepSelection
  /// Bytes that another downloader has fetched already. Gone once they have been taken over.
  public var headStart: HeadStart?

  /// The beginning of the file, as another downloader has left it: URLSession's temporary file, say.
  public struct HeadStart: Sendable, Hashable, Codable {
    /// The absolute path of the file that holds the bytes, from the first one on. It is copied, and stays.
    public var file: String
    /// How many of its bytes to take; a shorter file gives what it has.
    public var count: Int64
    /// Which representation they belong to. Without one they are compared with the server's before they are used.
    public var validator: Validator?
    /// The size of the whole.
    public var total: ByteCount

    /// Describes a beginning.
    public init(file: String, count: Int64, validator: Validator? = nil, total: ByteCount = .unknown) {
      self.file = file
      self.count = count
      self.validator = validator
      self.total = total
    }
  }

  /// Where a file goes: both parts are optional, and both are relative to the storage's root.
  public struct Destination: Sendable, Hashable, Codable {
    /// A folder below the root, made if it is missing; the root itself when `nil`.
    public var directory: String?
    /// The file's name; otherwise the server's suggestion, made safe, or the URL's last part. ``nameUse`` says what it
    /// means to steps. For a title such as `AC/DC: Live` make it with ``SafeFileName/make(fromTitle:fallback:)``.
    public var name: String?
    /// Whether the name is an order or a fallback.
    public var nameUse: NameUse

    /// Makes a destination.
    public init(directory: String? = nil, name: String? = nil, nameUse: NameUse = .order) {
      self.directory = directory
      self.name = name
      self.nameUse = nameUse
    }

    /// What a requested name means to steps that give their output another name.
    public enum NameUse: String, Sendable, Hashable, Codable {
      /// What is published has the name, whatever the steps have made of it: with `Gunzip`, `named.txt.gz` is the name of
      /// the unpacked text.
      case order
      /// The name takes the place of the server's suggestion, and a step that renames wins: with `Gunzip`, `named.txt.gz`
      /// is published as `named.txt`.
      case fallback
    }

    /// The name that what is published has for certain.
    public var finalName: String? { nameUse == .order ? name : nil }

    mutating func setName(_ name: String) {
      self.name = name
      nameUse = .order
    }
  }

  /// Describes a download.
  public init(
    _ url: URL,
    id: DownloadID = DownloadID(),
    mirrors: [URL] = [],
    priority: Priority = .normal,
    intent: Intent = .userInitiated,
    tags: Set<String> = [],
    metadata: [String: String] = [:],
    expectedSize: ByteCount = .unknown,
    sizeHint: ByteCount = .unknown,
    expectedDigests: [FileDigest] = [],
    maximumSize: Int64? = nil,
    headers: HeaderFields = [],
    destination: Destination = Destination(),
    steps: StepSelection = .all,
    headStart: HeadStart? = nil
  ) {
    self.id = id
    self.url = url
    self.mirrors = mirrors
    self.priority = priority
    self.intent = intent
    self.tags = tags
    self.metadata = metadata
    self.expectedSize = expectedSize
    self.sizeHint = sizeHint
    self.expectedDigests = expectedDigests
    self.maximumSize = maximumSize
    self.headers = headers
    self.destination = destination
    self.steps = steps
    self.headStart = headStart
  }

  /// Describes a download by the text of its URL.
  ///
  /// - Throws: ``DownloadError`` with `.unsupportedURL` when the text is no absolute URL.
  public init(
    _ text: String,
    id: DownloadID = DownloadID(),
    mirrors: [URL] = [],
    priority: Priority = .normal,
    intent: Intent = .userInitiated,
    tags: Set<String> = [],
    metadata: [String: String] = [:],
    expectedSize: ByteCount = .unknown,
    sizeHint: ByteCount = .unknown,
    expectedDigests: [FileDigest] = [],
    maximumSize: Int64? = nil,
    headers: HeaderFields = [],
    destination: Destination = Destination(),
    steps: StepSelection = .all,
    headStart: HeadStart? = nil
  ) throws(DownloadError) {
    guard let url = URL(string: text), let scheme = url.scheme, !scheme.isEmpty else {
      throw DownloadError(
        .unsupportedURL,
        "“\(text.redactedURL.prefix(200))” is not an absolute URL: write it with its scheme, such as https://example.org/file"
      )
    }
    self.init(
      url, id: id, mirrors: mirrors, priority: priority, intent: intent, tags: tags, metadata: metadata,
      expectedSize: expectedSize, sizeHint: sizeHint, expectedDigests: expectedDigests, maximumSize: maximumSize,
      headers: headers, destination: destination, steps: steps, headStart: headStart)
  }

  /// The host that per-host limits count: lower case, with the port when it is not the scheme's own.
  public var host: String { url.hostKey }

  /// The size it has for certain, or else probably.
  public var likelySize: ByteCount { expectedSize == .unknown ? sizeHint : expectedSize }
}

extension DownloadRequest: Codable {
  /// Reads what an earlier version has written, too: a part that is not there is as if it had not been asked for.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    func read<Value: Decodable>(_ key: CodingKeys, into value: inout Value) throws {
      if let known = try container.decodeIfPresent(Value.self, forKey: key) { value = known }
    }
    self.init(try container.decode(URL.self, forKey: .url), id: try container.decode(DownloadID.self, forKey: .id))
    try read(.mirrors, into: &mirrors)
    try read(.priority, into: &priority)
    try read(.intent, into: &intent)
    try read(.tags, into: &tags)
    try read(.metadata, into: &metadata)
    try read(.expectedSize, into: &expectedSize)
    try read(.sizeHint, into: &sizeHint)
    try read(.expectedDigests, into: &expectedDigests)
    maximumSize = try container.decodeIfPresent(Int64.self, forKey: .maximumSize)
    try read(.headers, into: &headers)
    try read(.destination, into: &destination)
    try read(.steps, into: &steps)
    headStart = try container.decodeIfPresent(HeadStart.self, forKey: .headStart)
  }
}

extension DownloadRequest.Destination {
  /// Reads what an earlier version has written, too.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      directory: try container.decodeIfPresent(String.self, forKey: .directory),
      name: try container.decodeIfPresent(String.self, forKey: .name),
      nameUse: try container.decodeIfPresent(NameUse.self, forKey: .nameUse) ?? .order)
  }
}

extension DownloadRequest: CustomStringConvertible {
  /// Id and URL, without secrets: fit for logs.
  public var description: String { "\(id.rawValue) \(url.redacted)" }
}

extension URL {
  /// The host that per-host limits count: lower case, with an explicit port; empty for URLs without a host.
  package var hostKey: String {
    guard var host = host(percentEncoded: true)?.lowercased() else { return "" }
    if host.utf8.contains(UInt8(ascii: ":")), !host.hasPrefix("[") { host = "[\(host)]" }
    return port.map { "\(host):\($0)" } ?? host
  }

  /// What a validator speaks of: the URL without user, query and fragment, which change while the resource stays.
  package var resourceKey: String {
    "\(scheme?.lowercased() ?? "")://\(hostKey)\(path(percentEncoded: true))"
  }
}
