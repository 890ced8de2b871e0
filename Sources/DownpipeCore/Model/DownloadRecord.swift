public import Foundation

/// All that survives of a download: what ledgers keep.
public struct DownloadRecord: Sendable, Hashable {
  /// What was asked for; its id names the record.
  public var request: DownloadRequest
  /// The request as it was added last, where ``request`` differs from it: something was changed since, a link was renewed,
  /// or a head start was taken over. `nil` where both are the same.
  public var added: DownloadRequest?
  /// Unique to this addition of the id, and growing; see ``PartialKey``.
  public var generation: Int64
  /// The order of arrival.
  public var arrival: Int64
  /// The key that sorts waiting downloads.
  public var rank: Rank
  /// Where it stands.
  public var phase: DownloadState.Phase
  /// Not to be started before this time; at once when `nil`.
  public var notBefore: Date?
  /// Whether it was paused together with others; ``Lifecycle/Event/resumeTogether`` means only those.
  public var isPausedTogether: Bool
  /// What it is short of, where that is more than time.
  public var awaited: Awaited?
  /// Who holds it, while it is active.
  public var owner: String?
  /// The last error, while it waits for another attempt or has failed.
  public var error: DownloadError?
  /// The attempts begun.
  public var attempts: Int
  /// The attempts that failed in a row without progress.
  public var consecutiveFailures: Int
  /// The attempts that failed in a row with the same code.
  public var repeatedFailures: Int
  /// Bytes received over the network, the repeated ones too.
  public var bytesFetched: Int64
  /// The byte at which the latest transfer went on.
  public var resumedFrom: Int64
  /// What is on disk.
  public var checkpoint: Checkpoint
  /// What the steps have done.
  public var steps: StepLog
  /// The ``Storage/location`` that it belongs to; `nil` for one that belongs to any, as records of old ledgers do.
  public var location: String?
  /// Whether a run ended with its process, without an outcome, since the download was last finished or cancelled.
  public var wasInterrupted: Bool
  /// When it was first added.
  public var createdAt: Date
  /// When it last changed.
  public var updatedAt: Date

  /// The download's name.
  public var id: DownloadID { request.id }
  /// The name of its partial.
  public var partialKey: PartialKey { PartialKey(id: request.id, generation: generation) }

  /// Makes the record of a download that waits for its first attempt.
  public init(
    request: DownloadRequest, generation: Int64, arrival: Int64, rank: Rank, location: String? = nil, createdAt: Date
  ) {
    self.request = request
    self.generation = generation
    self.arrival = arrival
    self.rank = rank
    self.phase = .waiting
    self.isPausedTogether = false
    self.attempts = 0
    self.consecutiveFailures = 0
    self.repeatedFailures = 0
    self.bytesFetched = 0
    self.resumedFrom = 0
    self.checkpoint = Checkpoint()
    self.steps = StepLog()
    self.location = location
    self.wasInterrupted = false
    self.createdAt = createdAt
    self.updatedAt = createdAt
  }
}

/// What is on disk of a download, and which representation it belongs to. The ledger never claims
/// bytes that the disk may not have: data first, then the checkpoint.
public struct Checkpoint: Sendable, Hashable {
  /// The bytes on disk.
  public var ranges: ByteRangeSet
  /// The size of the whole.
  public var total: ByteCount
  /// Which representation the bytes belong to.
  public var validator: Validator?
  /// Which resource the validator speaks of: the URL that answered, without its query. Entity tags mean nothing
  /// beyond their resource (RFC 9110 §8.8.3).
  public var resource: String?
  /// The coding the bytes are in; `nil` for the plain bytes.
  public var contentCoding: String?
  /// The name the server suggested, made safe.
  public var name: String?
  /// The media type.
  public var mediaType: String?
  /// Digests the server promised for the whole.
  public var digests: [FileDigest]
  /// Marks of the last blocks that were claimed, the newest last; see ``BlockMark``.
  public var marks: [BlockMark]
  /// Whether the transfer is complete.
  public var isComplete: Bool

  /// Nothing is on disk.
  public init(
    ranges: ByteRangeSet = ByteRangeSet(), total: ByteCount = .unknown, validator: Validator? = nil,
    resource: String? = nil, contentCoding: String? = nil, name: String? = nil, mediaType: String? = nil,
    digests: [FileDigest] = [],
    marks: [BlockMark] = [], isComplete: Bool = false
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
  }
}

/// What the steps after the transfer have done so far.
public struct StepLog: Sendable, Hashable, Codable {
  /// The names of the steps that are done or were not needed, from the beginning of the chain. A chain that no longer
  /// begins so starts again.
  public var completed: [String]
  /// The artifact they gave, with its path as the storage keeps it.
  public var artifact: StoredArtifact?
  /// What the step under way noted.
  public var note: String?

  /// Nothing is done.
  public init(completed: [String] = [], artifact: StoredArtifact? = nil, note: String? = nil) {
    self.completed = completed
    self.artifact = artifact
    self.note = note
  }
}

/// An artifact as ledgers keep it.
public struct StoredArtifact: Sendable, Hashable, Codable {
  /// What it is.
  public var kind: Artifact.Kind
  /// Its path, as ``Storage/storedPath(for:)`` gave it; `nil` for one in memory.
  public var path: String?
  /// Its name.
  public var name: String
  /// Its size in bytes, where known.
  public var size: Int64?
  /// Its media type.
  public var mediaType: String?
  /// When its bytes last changed, by the clock of its file system.
  public var modifiedAt: Date?

  /// Makes one.
  public init(
    kind: Artifact.Kind, path: String?, name: String, size: Int64?, mediaType: String?, modifiedAt: Date? = nil
  ) {
    self.modifiedAt = modifiedAt
    self.kind = kind
    self.path = path
    self.name = name
    self.size = size
    self.mediaType = mediaType
  }
}
