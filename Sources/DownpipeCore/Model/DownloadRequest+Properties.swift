public import Foundation

extension DownloadRequest {
  /// The properties of a request.
  @usableFromInline
  struct Properties: Sendable, Hashable, Codable {
    @usableFromInline var id: DownloadID
    @usableFromInline var url: URL
    @usableFromInline var mirrors: [URL] = []
    @usableFromInline var priority: Priority = .normal
    @usableFromInline var intent: Intent = .userInitiated
    @usableFromInline var deadline: Date?
    @usableFromInline var after: Set<DownloadID> = []
    @usableFromInline var tags: Set<String> = []
    @usableFromInline var metadata: [String: String] = [:]
    @usableFromInline var expectedSize: ByteCount = .unknown
    @usableFromInline var sizeHint: ByteCount = .unknown
    @usableFromInline var expectedDigests: [FileDigest] = []
    @usableFromInline var pieces: PieceDigests?
    @usableFromInline var maximumSize: Int64?
    @usableFromInline var headers: HeaderFields = HeaderFields()
    @usableFromInline var destination: Destination = Destination()
    @usableFromInline var steps: StepSelection = .all
    @usableFromInline var refresh: Refresh = .never
    @usableFromInline var headStart: HeadStart?
    @usableFromInline var isNamedByServer = false
    @usableFromInline var lineage: Lineage?

    private enum CodingKeys: CodingKey {
      case id, url, mirrors, priority, intent, deadline, after, tags, metadata, expectedSize, sizeHint, expectedDigests
      case pieces, maximumSize, headers, destination, steps, refresh, headStart, isNamedByServer, lineage
    }

    init(id: DownloadID, url: URL) {
      self.id = id
      self.url = url
    }

    /// Decodes the properties. Keys that earlier versions did not write get their default values.
    @usableFromInline
    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      func read<Value: Decodable>(_ key: CodingKeys, into value: inout Value) throws {
        if let known = try container.decodeIfPresent(Value.self, forKey: key) { value = known }
      }
      id = try container.decode(DownloadID.self, forKey: .id)
      url = try container.decode(URL.self, forKey: .url)
      try read(.mirrors, into: &mirrors)
      try read(.priority, into: &priority)
      try read(.intent, into: &intent)
      deadline = try container.decodeIfPresent(Date.self, forKey: .deadline)
      try read(.after, into: &after)
      try read(.tags, into: &tags)
      try read(.metadata, into: &metadata)
      try read(.expectedSize, into: &expectedSize)
      try read(.sizeHint, into: &sizeHint)
      try read(.expectedDigests, into: &expectedDigests)
      pieces = try container.decodeIfPresent(PieceDigests.self, forKey: .pieces)
      maximumSize = try container.decodeIfPresent(Int64.self, forKey: .maximumSize)
      try read(.headers, into: &headers)
      try read(.destination, into: &destination)
      try read(.steps, into: &steps)
      try read(.refresh, into: &refresh)
      headStart = try container.decodeIfPresent(HeadStart.self, forKey: .headStart)
      try read(.isNamedByServer, into: &isNamedByServer)
      lineage = try container.decodeIfPresent(Lineage.self, forKey: .lineage)
    }

    /// Encodes the properties: equal ones are encoded equally, so the elements of a set in their order.
    @usableFromInline
    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(id, forKey: .id)
      try container.encode(url, forKey: .url)
      try container.encode(mirrors, forKey: .mirrors)
      try container.encode(priority, forKey: .priority)
      try container.encode(intent, forKey: .intent)
      try container.encodeIfPresent(deadline, forKey: .deadline)
      try container.encode(after.sorted(), forKey: .after)
      try container.encode(tags.sorted(), forKey: .tags)
      try container.encode(metadata, forKey: .metadata)
      try container.encode(expectedSize, forKey: .expectedSize)
      try container.encode(sizeHint, forKey: .sizeHint)
      try container.encode(expectedDigests, forKey: .expectedDigests)
      try container.encodeIfPresent(pieces, forKey: .pieces)
      try container.encodeIfPresent(maximumSize, forKey: .maximumSize)
      try container.encode(headers, forKey: .headers)
      try container.encode(destination, forKey: .destination)
      try container.encode(steps, forKey: .steps)
      try container.encode(refresh, forKey: .refresh)
      try container.encodeIfPresent(headStart, forKey: .headStart)
      try container.encode(isNamedByServer, forKey: .isNamedByServer)
      try container.encodeIfPresent(lineage, forKey: .lineage)
    }
  }
}

extension DownloadRequest: Codable {
  /// Decodes a request. Keys that earlier versions did not write get their default values.
  public init(from decoder: any Decoder) throws { box = [try Properties(from: decoder)] }

  /// Encodes the request as an object with a key for each property.
  public func encode(to encoder: any Encoder) throws { try box[0].encode(to: encoder) }
}
