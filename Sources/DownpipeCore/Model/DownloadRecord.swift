public import Foundation

/// The persistent state of a download, as ledgers keep it.
@_spi(Ledger) public struct DownloadRecord: Sendable, Hashable {
  /// The request; its id is the key of the record.
  public var request: DownloadRequest
  /// The request as it was last added; `nil` when it equals ``request``.
  ///
  /// The two differ when the request was changed since, the link was renewed, or a head start was imported.
  public var added: DownloadRequest?
  /// A growing number that is unique to this addition of the id; see ``PartialKey``.
  public var generation: Int64
  /// The place of the download in the order of arrival.
  public var arrival: Int64
  /// The key that sorts waiting downloads.
  public var rank: Rank
  /// The phase of the download.
  public var phase: DownloadState.Phase
  /// The time before which the download must not start, by the clock of the machine that reads it; `nil` for no such time.
  public var notBefore: Date?
  /// Whether the download was paused together with others. ``Lifecycle/Event/resumeTogether`` affects only these.
  public var isPausedTogether: Bool
  /// The missing resource that the download waits for; `nil` when it waits only for its turn or for a time.
  public var awaited: Awaited?
  /// The downloads of ``DownloadRequest/after`` that have not finished since they were named there. Until the set is
  /// empty, the download is not leased.
  public var waitsFor: Set<DownloadID>
  /// The owner that holds the download while it is active; otherwise `nil`.
  public var owner: String?
  /// The last error, while the download waits for another attempt or has failed; otherwise `nil`.
  public var error: DownloadError?
  /// The number of attempts begun, without those that were stopped for a change of the request or ended by a fault of the machine.
  public var attempts: Int
  /// The number of failed attempts in a row without progress.
  public var consecutiveFailures: Int
  /// The number of failed attempts in a row with the same code.
  public var repeatedFailures: Int
  /// The number of bytes received over the network, including repeated ones.
  public var bytesFetched: Int64
  /// The offset at which the latest transfer continued.
  public var resumedFrom: Int64
  /// The stored bytes and their representation.
  public var checkpoint: Checkpoint
  /// Which version of the file the checkpoint is of, beside another one.
  public var versions: VersionLog
  /// The results of the steps.
  public var steps: StepLog
  /// The published artifact of an earlier fetch, while the file is fetched again: the new artifact takes its place.
  public var earlierArtifact: StoredArtifact?
  /// Files that steps have put in other places than ``earlierArtifact``, in fetches that were given up. They are removed before
  /// the next steps, or with the download. Empty if there is no earlier artifact.
  public var leftArtifacts: [StoredArtifact]
  /// How far a finished download is being refreshed; otherwise `nil`. See ``DownloadRequest/Refresh``.
  public var refreshing: Refreshing?
  /// The ``Storage/location`` that the download belongs to; `nil` for any, as in records of earlier versions.
  public var location: String?
  /// Whether a run ended with its process and without an outcome since the download was last finished or cancelled.
  public var wasInterrupted: Bool
  /// Whether the request was changed while an owner worked for the earlier one, and that owner has not saved an outcome
  /// since. If it never does, the next owner must not take its bytes and steps for those of the changed request.
  public var isOutdated = false
  /// The time at which the download was first added.
  public var createdAt: Date
  /// The time at which the record last changed.
  public var updatedAt: Date

  /// How far a finished download is being refreshed.
  public enum Refreshing: String, Sendable, Hashable, Codable, CaseIterable {
    /// The server is asked whether the file has changed. The checkpoint and the steps of the record are those of the
    /// published file, so that it is finished as it was if the file has not changed. There is no partial.
    case asking
    /// Another file is fetched, which takes the place of ``DownloadRecord/earlierArtifact``.
    case fetching
  }

  /// The id of the download.
  public var id: DownloadID { request.id }
  /// The key of the partial with the bytes of the checkpoint.
  public var partialKey: PartialKey {
    PartialKey(id: request.id, generation: generation, isSecond: versions.isInSecond)
  }
  /// The keys of all partials that the download has, or may have.
  public var partialKeys: [PartialKey] {
    versions.hasOther ? [partialKey, partialKey.other] : [partialKey]
  }

  /// Creates the record of a download that waits for its first attempt.
  public init(
    request: DownloadRequest, generation: Int64, arrival: Int64, rank: Rank, location: String? = nil, createdAt: Date
  ) {
    self.request = request
    self.generation = generation
    self.arrival = arrival
    self.rank = rank
    self.phase = .waiting
    self.isPausedTogether = false
    self.waitsFor = []
    self.attempts = 0
    self.consecutiveFailures = 0
    self.repeatedFailures = 0
    self.bytesFetched = 0
    self.resumedFrom = 0
    self.checkpoint = Checkpoint()
    self.versions = VersionLog()
    self.steps = StepLog()
    self.leftArtifacts = []
    self.location = location
    self.wasInterrupted = false
    self.createdAt = createdAt
    self.updatedAt = createdAt
  }
}

/// The stored bytes of a download, and the representation that they are part of.
///
/// The ledger never records bytes that the disk may not have: the data is made durable first, then the checkpoint.
@_spi(Ledger) public struct Checkpoint: Sendable, Hashable {
  /// The stored bytes.
  public var ranges: ByteRangeSet
  /// The size of the whole representation.
  public var total: ByteCount
  /// The validator of the representation; `nil` when the server sent none.
  public var validator: Validator?
  /// The resource that the validator applies to: the URL that replied, without its query. An entity tag is only valid
  /// for its resource (RFC 9110 §8.8.3).
  public var resource: String?
  /// The content coding of the bytes; `nil` for identity.
  public var contentCoding: String?
  /// The file name suggested by the server, made safe; `nil` when there is none.
  public var name: String?
  /// The media type sent by the server; `nil` when there is none.
  public var mediaType: String?
  /// The digests that the server sent for the whole representation, in its content coding.
  public var digests: [FileDigest]
  /// Marks of recorded blocks, in ascending order; see ``BlockMark``.
  public var marks: [BlockMark]
  /// Whether the transfer is complete.
  public var isComplete: Bool
  /// The time until which the server promises that the file does not change; `nil` when it promises nothing. See
  /// ``SourceReply/freshFor``.
  public var freshUntil: Date?

  /// Creates a checkpoint; without arguments, one without stored bytes.
  public init(
    ranges: ByteRangeSet = ByteRangeSet(), total: ByteCount = .unknown, validator: Validator? = nil,
    resource: String? = nil, contentCoding: String? = nil, name: String? = nil, mediaType: String? = nil,
    digests: [FileDigest] = [],
    marks: [BlockMark] = [], isComplete: Bool = false, freshUntil: Date? = nil
  ) {
    self.ranges = ranges
    self.total = total
    self.validator = validator
    self.resource = resource
    self.contentCoding = contentCoding
    self.name = name
    self.mediaType = mediaType
    self.digests = digests
    self.marks = marks
    self.isComplete = isComplete
    self.freshUntil = freshUntil
  }
}

/// Which version of a file is fetched, and what is kept of an earlier one.
@_spi(Ledger) public struct VersionLog: Sendable, Hashable {
  /// Whether the bytes of the checkpoint are in the second partial.
  public var isInSecond: Bool
  /// Whether the other partial may be there.
  public var hasOther: Bool
  /// The checkpoint of the version before, whose bytes stay in the other partial until the new one is complete.
  public var earlier: Checkpoint?
  /// Whether the user wants what the server has now, also if it is another file than before: the download was restarted or
  /// refreshed, its URL was changed, or its bytes were imported. Ends with the first bytes of a reply.
  public var mayChange: Bool
  /// Whether the version in use was begun because the user wants what the server has now, or because a digest proves it. It may be
  /// of any size then.
  public var isWanted: Bool

  /// Creates a log; without arguments, that of a file with one version.
  public init(
    isInSecond: Bool = false, hasOther: Bool = false, earlier: Checkpoint? = nil, mayChange: Bool = false,
    isWanted: Bool = false
  ) {
    self.isInSecond = isInSecond
    self.hasOther = hasOther
    self.earlier = earlier
    self.mayChange = mayChange
    self.isWanted = isWanted
  }
}

/// The results of the steps after the transfer.
@_spi(Ledger) public struct StepLog: Sendable, Hashable, Codable {
  /// The names of the steps that have finished or were not needed, from the beginning of the chain. If the chain no
  /// longer begins with these steps, it starts again.
  public var completed: [String]
  /// The artifact that these steps have produced; `nil` when there is none yet.
  public var artifact: StoredArtifact?
  /// The note of the step in progress; see ``ProcessingContext/note(_:)``.
  public var note: String?
  /// The digests that these steps have verified.
  public var verified: [VerifiedDigest]

  /// Creates a log; without arguments, one without finished steps.
  public init(
    completed: [String] = [], artifact: StoredArtifact? = nil, note: String? = nil, verified: [VerifiedDigest] = []
  ) {
    self.completed = completed
    self.artifact = artifact
    self.note = note
    self.verified = verified
  }

  /// Decodes a log; those of earlier versions have no digests.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      completed: try container.decode([String].self, forKey: .completed),
      artifact: try container.decodeIfPresent(StoredArtifact.self, forKey: .artifact),
      note: try container.decodeIfPresent(String.self, forKey: .note),
      verified: try container.decodeIfPresent([VerifiedDigest].self, forKey: .verified) ?? [])
  }
}

/// An artifact, as ledgers keep it.
@_spi(Ledger) public struct StoredArtifact: Sendable, Hashable, Codable {
  /// Whether the artifact is a file or a folder.
  public var kind: Artifact.Kind
  /// The path, as returned by ``Storage/storedPath(for:)``, or the URL of an artifact on another machine; `nil` for an
  /// artifact in memory.
  public var path: String?
  /// The name of the artifact.
  public var name: String
  /// The size in bytes; `nil` when it is unknown.
  public var size: Int64?
  /// The media type sent by the server; `nil` when there is none.
  public var mediaType: String?
  /// The modification time of the bytes, by the clock of their file system; `nil` when it is unknown.
  public var modifiedAt: Date?
  /// Whether the file was there before; see ``Artifact/isReused``.
  public var isReused: Bool
  /// The companions of the artifact; see ``Artifact/companions``.
  public var companions: [Companion]
  /// The ``Storage/location`` that the artifact is at, if its download belonged to none when it was leased; `nil` for that of the
  /// download.
  public var location: String?

  /// A companion, as ledgers keep it.
  public struct Companion: Sendable, Hashable, Codable {
    /// The end of the name, after the artifact's own.
    public var suffix: String
    /// The path, as returned by ``Storage/storedPath(for:)``; `nil` for one beside its artifact.
    public var path: String?
    /// The size in bytes; `nil` when it is unknown.
    public var size: Int64?
    /// The modification time, by the clock of its file system; `nil` when it is unknown.
    public var modifiedAt: Date?

    /// Creates a stored companion.
    public init(suffix: String, path: String? = nil, size: Int64? = nil, modifiedAt: Date? = nil) {
      self.suffix = suffix
      self.path = path
      self.size = size
      self.modifiedAt = modifiedAt
    }
  }

  private enum CodingKeys: CodingKey {
    case kind, path, name, size, mediaType, modifiedAt, isReused, companions, location
  }

  /// Creates a stored artifact.
  public init(
    kind: Artifact.Kind, path: String?, name: String, size: Int64?, mediaType: String?, modifiedAt: Date? = nil,
    isReused: Bool = false, companions: [Companion] = [], location: String? = nil
  ) {
    self.location = location
    self.companions = companions
    self.modifiedAt = modifiedAt
    self.isReused = isReused
    self.kind = kind
    self.path = path
    self.name = name
    self.size = size
    self.mediaType = mediaType
  }

  /// Decodes an artifact; those of earlier versions were not reused, and have no companions and no location.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      kind: try container.decode(Artifact.Kind.self, forKey: .kind),
      path: try container.decodeIfPresent(String.self, forKey: .path),
      name: try container.decode(String.self, forKey: .name),
      size: try container.decodeIfPresent(Int64.self, forKey: .size),
      mediaType: try container.decodeIfPresent(String.self, forKey: .mediaType),
      modifiedAt: try container.decodeIfPresent(Date.self, forKey: .modifiedAt),
      isReused: try container.decodeIfPresent(Bool.self, forKey: .isReused) ?? false,
      companions: try container.decodeIfPresent([Companion].self, forKey: .companions) ?? [],
      location: try container.decodeIfPresent(String.self, forKey: .location))
  }

  /// Encodes an artifact, with its companions only if it has some.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(kind, forKey: .kind)
    try container.encodeIfPresent(path, forKey: .path)
    try container.encode(name, forKey: .name)
    try container.encodeIfPresent(size, forKey: .size)
    try container.encodeIfPresent(mediaType, forKey: .mediaType)
    try container.encodeIfPresent(modifiedAt, forKey: .modifiedAt)
    try container.encode(isReused, forKey: .isReused)
    if !companions.isEmpty { try container.encode(companions, forKey: .companions) }
    try container.encodeIfPresent(location, forKey: .location)
  }

  /// The artifact and its companions, each as a file of its own.
  var files: [StoredArtifact] {
    [self]
      + companions.map { companion in
        StoredArtifact(
          kind: .file, path: companion.path ?? path.map { $0 + companion.suffix }, name: name + companion.suffix,
          size: companion.size, mediaType: nil, modifiedAt: companion.modifiedAt, location: location)
      }
  }

  /// The artifact as one that a later fetch may replace; `nil` for one that is not the download's own, and for a folder,
  /// whose contents may be the user's by now.
  var replaceable: StoredArtifact? { kind == .file ? unlessReused : nil }

  /// `nil` if the artifact was there before the download, which must not delete it.
  var unlessReused: StoredArtifact? { isReused ? nil : self }
}
