/// Where bytes land, how they become durable and how a finished file appears.
///
/// A storage never decides what to ask the server. It keeps one partial for each (id, generation),
/// under its own control, and publishes finished artifacts atomically.
public protocol Storage: Stage {
  /// The place that destinations are relative to, as ledgers keep it: a download belongs to one. `nil` for storages
  /// whose artifacts have no place beyond the process.
  var location: String? { get }

  /// Refuses a destination that nothing can be published at, whatever else is there: a download is checked before it is
  /// added, and not only after its transfer. By the text alone, and cheap. Nothing is refused unless the storage says
  /// otherwise.
  /// - Throws: ``DownloadError`` with `.unsafePath` or `.invalidRequest`.
  func check(_ destination: DownloadRequest.Destination) throws(DownloadError)

  /// Opens the partial of a download, which is empty when there was none, and holds it until it is closed.
  ///
  /// - Parameters:
  ///   - key: the partial's name.
  ///   - isNew: whether the ledger knows of no bytes. What lies under the name then is of no use, and need not be
  ///     looked for before ``Partial/persist()``, which replaces it.
  /// - Throws: ``DownloadError`` with `.inUse` while another owner holds it; `.permission`, `.noSpace` or `.storage`.
  func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial

  /// Removes the partial and everything its steps left behind. No error when there is nothing.
  func removePartial(_ key: PartialKey) async throws

  /// A folder for the steps of this download, on the file system of the destination; made if missing.
  /// `nil` for a storage without paths.
  func workspace(_ key: PartialKey) async throws -> String?

  /// Makes a finished artifact appear at its destination, atomically, and settles conflicts.
  ///
  /// Where no step has changed the bytes, `partial` is the held partial that they are in. What appears then are the
  /// bytes that were written to it, whatever has become of its name, and it need not have one.
  ///
  /// An artifact that was published before is moved: it appears at the destination as a new one does, by the conflict
  /// policy, and is gone from its old place. Where it lies at the destination already, there is nothing to do. One that
  /// is not what it was published as any more is not moved.
  ///
  /// Called again after a crash with the same artifact and the same `context.priorNote`, it finds out whether the first
  /// call succeeded, and does not publish twice.
  /// - Returns: the artifact where it is now.
  /// - Throws: ``DownloadError`` with `.alreadyExists`, `.unsafePath`, `.permission`, `.noSpace` or `.storage`. A
  ///   published artifact is at its old place then.
  func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact

  /// Whether the artifact still lies among partials and workspaces, and has to be published.
  func isStaged(_ artifact: Artifact) -> Bool

  /// Whether a published artifact is still there, and still the same as far as its size and its time of change tell.
  func contains(_ artifact: Artifact) async -> Bool

  /// An artifact that makes the transfer unnecessary because it is there already, for storages whose
  /// conflict policy is to reuse; `nil` otherwise.
  func existing(for request: DownloadRequest) async throws -> Artifact?

  /// Removes a published or staged artifact. No error when there is nothing. What has taken a published one's place,
  /// or was changed since, stays.
  func remove(_ artifact: Artifact) async throws

  /// A path as the ledger keeps it: relative to the storage's root where it is below it, since the
  /// root may be elsewhere at the next start.
  func storedPath(for path: String) -> String

  /// The absolute path behind what ``storedPath(for:)`` gave.
  /// - Throws: ``DownloadError`` with `.unsafePath` for text that leaves the root.
  func path(forStored storedPath: String) throws -> String

  /// What a finished write survives: ``Durability/process`` unless the storage says otherwise.
  var durability: Durability { get }

  /// Every partial, in no particular order: to find those that no ledger knows any more. `nil` unless the storage can
  /// list them.
  /// - Throws: ``DownloadError`` with `.permission` or `.storage`.
  func partials() async throws -> [StoredPartial]?

  /// The bytes that may still be written; `nil` unless the storage can tell.
  /// - Throws: ``DownloadError`` with `.permission` or `.storage`.
  func availableBytes() async throws -> Int64?
}

extension Storage {
  /// No place beyond the process.
  public var location: String? { nil }
  /// Nothing is refused.
  public func check(_ destination: DownloadRequest.Destination) throws(DownloadError) {}
  /// The death of the process.
  public var durability: Durability { .process }
  /// The storage cannot list its partials.
  public func partials() async throws -> [StoredPartial]? { nil }
  /// The storage cannot tell.
  public func availableBytes() async throws -> Int64? { nil }
}

/// A partial that a storage holds.
public struct StoredPartial: Sendable, Hashable {
  /// Its name.
  public let key: PartialKey
  /// Its length in bytes.
  public let size: Int64
  /// Whether somebody holds it open now.
  public let isInUse: Bool

  /// Describes a partial.
  public init(key: PartialKey, size: Int64, isInUse: Bool) {
    self.key = key
    self.size = size
    self.isInUse = isInUse
  }
}

extension Storage {
  /// Becomes the pipeline's storage.
  public func contribute(to parts: inout PipelineParts) { parts.storages.append(self) }
}

/// The bytes of an unfinished download. Used by one transfer at a time; closed once.
public protocol Partial: Sendable {
  /// The length of what is stored, holes included, in bytes.
  func size() throws -> Int64

  /// Writes a chunk at a position, the whole of it. Called on the transport's thread: no task hop.
  /// - Throws: ``DownloadError`` with `.noSpace`, `.permission` or `.storage`.
  func write(_ bytes: RawSpan, at offset: Int64) throws

  /// Reads up to `count` bytes at a position; fewer only at the end.
  func read(at offset: Int64, count: Int) throws -> [UInt8]

  /// Cuts or extends to `size` bytes.
  func truncate(to size: Int64) throws

  /// Makes what was written so far as durable as the storage promises, before the ledger claims it.
  func synchronize() async throws

  /// Gives the bytes a name that survives the process, where they have none yet: before the ledger claims any of them,
  /// and before a step reads them by their path. ``synchronize()`` does it, too. Replaces what an earlier, unknown
  /// download has left under the name.
  /// - Throws: ``DownloadError`` with `.inUse` while another owner holds the name; `.permission`, `.noSpace` or
  ///   `.storage`.
  func persist() throws

  /// Whether there is, or may be, something under the key that ``Storage/removePartial(_:)`` has to remove.
  var isNamed: Bool { get }

  /// Ends writing and keeps the partial held until ``close()``, so that no other owner begins to write its finished
  /// bytes before they are published; errors that only closing brings to light are thrown.
  func finish() throws

  /// Closes the partial and lets go of it; errors that only closing brings to light are thrown. Bytes without a name
  /// are gone. May be called after ``finish()``, and more than once.
  func close() throws

  /// The finished partial as the artifact that the steps begin with.
  func artifact(name: String, mediaType: String?) throws -> Artifact

  /// Replaces the partial's bytes with those of a file that the transport has written, which is gone afterwards.
  /// - Returns: false when that cannot be done cheaply; the caller copies then.
  func adopt(_ path: String) throws -> Bool

  /// Replaces the partial's bytes with the first `count` bytes of a file that another downloader has begun, and that
  /// stays.
  ///
  /// - Returns: how many bytes there were: fewer than `count` when the file is shorter; `nil` when the storage cannot
  ///   import files.
  /// - Throws: ``DownloadError`` with `.permission`, `.noSpace` or `.storage`; `CancellationError`.
  func copy(_ path: String, count: Int64) async throws -> Int64?

  /// Copies the first `count` bytes into a new file, whole or not at all; the partial stays as it is.
  ///
  /// - Parameter path: the file's absolute path. What is there is never replaced.
  /// - Throws: ``DownloadError`` with `.alreadyExists`; `.storage` when there are fewer bytes, there is no such folder, or
  ///   the storage cannot export partials; `.permission` or `.noSpace`; `CancellationError`.
  func export(to path: String, count: Int64) async throws

  /// A mark of the last bytes before `offset`, which are read back: the whole block they lie in. `nil` when the storage
  /// marks nothing.
  /// - Throws: ``DownloadError`` with `.storage` when they cannot be read.
  func mark(endingAt offset: Int64) throws -> BlockMark?

  /// Whether the bytes on disk are the ones that were marked.
  /// - Throws: ``DownloadError`` with `.storage` when they cannot be read.
  func matches(_ mark: BlockMark) throws -> Bool
}

extension Partial {
  /// Writes a chunk that is in an array; see ``write(_:at:)-(RawSpan,_)``.
  public func write(_ bytes: [UInt8], at offset: Int64) throws { try write(bytes.span.bytes, at: offset) }
  /// Nothing: the bytes have a name from the beginning.
  public func persist() throws {}
  /// There is always something to remove.
  public var isNamed: Bool { true }
  /// Closes the partial: it cannot be held.
  public func finish() throws { try close() }
  /// Files are copied.
  public func adopt(_ path: String) throws -> Bool { false }
  /// Files cannot be imported.
  public func copy(_ path: String, count: Int64) async throws -> Int64? { nil }
  /// Partials cannot be exported.
  public func export(to path: String, count: Int64) async throws {
    throw DownloadError(.storage, "this storage cannot export the bytes of an unfinished download")
  }
  /// Nothing is marked.
  public func mark(endingAt offset: Int64) throws -> BlockMark? { nil }
  /// Nothing is known to have changed.
  public func matches(_ mark: BlockMark) throws -> Bool { true }
}

/// How much a finished write is trusted to survive.
public enum Durability: String, Sendable, Hashable, Codable {
  /// The death of the process.
  case process
  /// The loss of power: file data and folders are flushed to the disk before the ledger claims them.
  case power
}
