/// A stage that decides where bytes are stored, how they become durable and how a finished file is published.
///
/// A storage never decides what to request from the server. It keeps one partial for each id and generation under its
/// own control, and publishes finished artifacts atomically.
public protocol Storage: Stage {
  /// The place that destinations are relative to, as ledgers record it. A download belongs to one location. `nil` for
  /// storages whose artifacts do not outlive the process: they take the downloads of all locations.
  ///
  /// While it throws, such as for a folder on a disk that is not mounted, nothing starts, and it is read again after a
  /// second. It is never read in a decision of the engine: a disk may take a while to answer.
  /// - Throws: ``DownloadError`` with `.permission`, `.noSpace` or `.storage` if the location cannot be told now.
  var location: String? { get throws(DownloadError) }

  /// Whether the artifacts of a location are in this storage, so that ``contains(_:)`` tells whether one still exists.
  ///
  /// Unlike ``location``, it makes nothing: a storage that was never used is at no location. The default implementation compares
  /// it with ``location``.
  /// - Parameter location: The location; `nil` for artifacts of which it is not known.
  func isLocated(at location: String?) async -> Bool

  /// Throws for a destination at which nothing can ever be published.
  ///
  /// A download is checked before it is added, so that a bad destination does not cost a transfer. The check must be
  /// cheap and must only look at the text. The default implementation accepts every destination.
  /// - Throws: ``DownloadError`` with `.unsafePath` or `.invalidRequest`.
  func check(_ destination: DownloadRequest.Destination) throws(DownloadError)

  /// Opens the partial of a download, which is empty if there was none, and holds it until it is closed.
  ///
  /// - Parameters:
  ///   - key: The key of the partial.
  ///   - isNew: Whether the ledger records no bytes. Bytes that are stored under the key are then of no use. The
  ///     storage need not look for them before ``Partial/persist()``, which replaces them, or ``Partial/finish()``, after
  ///     which ``Partial/isNamed`` says whether they are still there.
  /// - Throws: ``DownloadError`` with `.inUse` while another owner holds it; `.permission`, `.noSpace` or `.storage`.
  func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial

  /// Removes the partial and everything that its steps have left behind. It is not an error if there is nothing to
  /// remove.
  func removePartial(_ key: PartialKey) async throws

  /// Returns the folder for the steps of this download, on the file system of the destination. It is created if it does
  /// not exist. `nil` for a storage without paths.
  ///
  /// Followers of steps write there while the bytes arrive: the partial is open, and has a name.
  func workspace(_ key: PartialKey) async throws -> String?

  /// Publishes a finished artifact at its destination, atomically, and resolves conflicts.
  ///
  /// If no step has changed the bytes, `partial` is the held partial that contains them. The published bytes are then
  /// those that were written to the partial, even if its name has been removed or replaced since. The partial need not
  /// have a name.
  ///
  /// An artifact that has already been published is moved: it appears at the new destination under the same conflict
  /// policy, and is removed from the old one. If it is already at the destination, there is nothing to do. A published
  /// artifact that has been changed since is not moved.
  ///
  /// The companions of the artifact (``Artifact/companions``) are published and moved with it, and get its name with their
  /// suffix. The conflict policy applies to all names together. Where the artifact is, its companions are, too, also after a
  /// crash. A companion of a published artifact that is gone, or was changed since, is left where it is, and is not among
  /// those of the result. A storage without workspaces throws `.processing` for an artifact with companions.
  ///
  /// If `context` has an artifact that is replaced (``ProcessingContext/replaces``) and it is unchanged at the
  /// destination, the new artifact takes its name, under every conflict policy.
  ///
  /// When it is called again after a crash with the same artifact and the same `context.priorNote`, it determines
  /// whether the first call succeeded, and does not publish twice.
  /// - Returns: The artifact at its new place.
  /// - Throws: ``DownloadError`` with `.alreadyExists`, `.unsafePath`, `.permission`, `.noSpace` or `.storage`. A
  ///   published artifact is then still at its old place.
  func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact

  /// Whether the artifact is still in a partial or workspace and must be published.
  func isStaged(_ artifact: Artifact) -> Bool

  /// Whether a published artifact still exists with the same size and modification time. Its companions are not looked at.
  func contains(_ artifact: Artifact) async -> Bool

  /// Returns a published artifact as it is now: with its present size and modification time, also if another program has
  /// changed it; `nil` if nothing of its kind is in its place.
  ///
  /// It is called when the user asks to verify or repair a file. The default implementation returns the artifact if it
  /// ``contains(_:)`` it.
  func current(_ artifact: Artifact) async -> Artifact?

  /// Returns the published artifact that a description from the ledger means, with its bytes; `nil` if there is none.
  ///
  /// A ledger stores no bytes, so that storages that keep artifacts in memory have to find them. It is called often, and
  /// must not wait. The default implementation returns `nil`.
  func published(_ described: Artifact) -> Artifact?

  /// Returns an existing artifact that makes the transfer unnecessary, for storages whose conflict policy is to reuse
  /// files; otherwise `nil`.
  func existing(for request: DownloadRequest) async throws -> Artifact?

  /// Removes a published or staged artifact. It is not an error if there is nothing to remove. A file that has replaced
  /// the published artifact, or has been changed since, is kept; an artifact with an ``Artifact/identity`` is this very file, and
  /// no other one of the same size and time. The same holds for each companion of a published artifact;
  /// those of a staged one are kept, because the next artifact may have them, and go with the workspace.
  func remove(_ artifact: Artifact) async throws

  /// Returns a path as the ledger records it: relative to the storage's root if it is below the root, because the root
  /// may be elsewhere at the next launch.
  func storedPath(for path: String) -> String

  /// Returns the absolute path for a result of ``storedPath(for:)``.
  /// - Throws: ``DownloadError`` with `.unsafePath` for a path that leaves the root.
  func path(forStored storedPath: String) throws -> String

  /// What a finished write survives; ``Durability/process`` by default.
  var durability: Durability { get }

  /// Whether calls of the storage or of its partials may block their thread for longer than a system call takes; `true` by
  /// default.
  ///
  /// The engine then makes them on threads that nothing else needs, at the cost of a switch of threads each. A storage that
  /// waits without blocking, or on threads of its own, returns `false`. ``Partial/write(_:at:)-(RawSpan,_)`` is always
  /// called on the transport's thread.
  var mayBlock: Bool { get }

  /// Returns all partials in no particular order, to find those that no ledger needs; `nil` when the storage cannot
  /// list them.
  /// - Throws: ``DownloadError`` with `.permission` or `.storage`.
  func partials() async throws -> [StoredPartial]?

  /// Returns the number of bytes that can still be written; `nil` when the storage cannot tell.
  /// - Throws: ``DownloadError`` with `.permission` or `.storage`.
  func availableBytes() async throws -> Int64?
}

extension Storage {
  /// The default: `nil`, artifacts do not outlive the process.
  public var location: String? { nil }
  /// The default: `true` for this storage's ``location``, and for an unknown one.
  public func isLocated(at location: String?) async -> Bool { location == nil || (try? self.location) == location }
  /// The default: every destination is accepted.
  public func check(_ destination: DownloadRequest.Destination) throws(DownloadError) {}
  /// The default: `nil`, artifacts have paths.
  public func published(_ described: Artifact) -> Artifact? { nil }
  /// The default: the artifact, if the storage contains it.
  public func current(_ artifact: Artifact) async -> Artifact? { await contains(artifact) ? artifact : nil }
  /// The default: `true`.
  public var mayBlock: Bool { true }
  /// The default: ``Durability/process``.
  public var durability: Durability { .process }
  /// The default: `nil`, the storage cannot list its partials.
  public func partials() async throws -> [StoredPartial]? { nil }
  /// The default: `nil`, the storage cannot tell.
  public func availableBytes() async throws -> Int64? { nil }
}

/// A partial in a storage.
public struct StoredPartial: Sendable, Hashable {
  /// The key of the partial.
  public let key: PartialKey
  /// The length in bytes.
  public let size: Int64
  /// Whether an owner holds the partial open.
  public let isInUse: Bool

  /// Creates a description of a partial.
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

/// The stored bytes of an unfinished download. It is used by one transfer at a time.
public protocol Partial: Sendable {
  /// Returns the length of the stored bytes, including holes.
  func size() throws -> Int64

  /// Writes all bytes of a chunk at an offset. It is called on the transport's thread, without a task hop.
  /// - Throws: ``DownloadError`` with `.noSpace`, `.permission` or `.storage`.
  func write(_ bytes: RawSpan, at offset: Int64) throws

  /// Returns up to `count` bytes from an offset; fewer only at the end.
  func read(at offset: Int64, count: Int) throws -> [UInt8]

  /// Reads bytes from an offset into a buffer, and returns their number; less than the buffer's only at the end.
  ///
  /// It is called while other threads write, and must not make them wait for long. The default implementation copies the
  /// result of ``read(at:count:)``.
  func read(at offset: Int64, into buffer: inout MutableRawSpan) throws -> Int

  /// Cuts or extends the partial to `size` bytes.
  func truncate(to size: Int64) throws

  /// Makes all bytes written so far as durable as the storage promises, before the ledger records them.
  ///
  /// A cancelled task does not end it: a download that stops keeps its bytes by it. If it throws, the bytes since the last call
  /// are given up.
  func synchronize() async throws

  /// Gives the bytes a name that outlives the process, if they have none.
  ///
  /// It is called before the ledger records any of the bytes, and before a step reads them by path. ``synchronize()``
  /// does it too. It replaces bytes that an earlier, unknown download has left under the name.
  /// - Throws: ``DownloadError`` with `.inUse` while another owner holds the name; `.permission`, `.noSpace` or
  ///   `.storage`.
  func persist() throws

  /// Whether something is, or may be, stored under the key that ``Storage/removePartial(_:)`` must remove.
  var isNamed: Bool { get }

  /// Ends writing, and holds the partial until ``close()`` so that no other owner can write to it before it is
  /// published.
  ///
  /// Throws errors that only occur on closing.
  func finish() throws

  /// Closes the partial and releases it.
  ///
  /// Throws errors that only occur on closing. Bytes without a name are discarded. It may be called after ``finish()``,
  /// and more than once.
  func close() throws

  /// Returns the finished partial as the artifact that the first step takes.
  func artifact(name: String, mediaType: String?) throws -> Artifact

  /// Replaces the partial's bytes with a file written by the transport. The file no longer exists afterwards.
  /// - Returns: `false` when this is not possible without copying; the caller then copies the bytes.
  func adopt(_ path: String) throws -> Bool

  /// Replaces the partial's bytes with the first `count` bytes of another downloader's file. That file is not changed.
  ///
  /// - Returns: The number of copied bytes, less than `count` when the file is shorter; `nil` when the storage cannot
  ///   import files.
  /// - Throws: ``DownloadError`` with `.invalidRequest` when there is no file that can be read at the path: the download
  ///   then begins at byte 0; `.permission`, `.noSpace` or `.storage` for the partial; `CancellationError`.
  func copy(_ path: String, count: Int64) async throws -> Int64?

  /// Copies the first `count` bytes into a new file, completely or not at all. The partial is not changed.
  ///
  /// - Parameters:
  ///   - path: The absolute path of the new file. An existing file is never replaced.
  ///   - count: The number of bytes, at most the size of the partial.
  /// - Throws: ``DownloadError`` with `.alreadyExists`; `.storage` when there are fewer bytes, the folder does not
  ///   exist, or the storage cannot export partials; `.permission` or `.noSpace`; `CancellationError`.
  func export(to path: String, count: Int64) async throws

  /// Returns a mark of the block that ends at `offset`, whose bytes are read back from the storage; `nil` when the
  /// storage does not mark blocks. The storage chooses the length of the block.
  ///
  /// - Parameters:
  ///   - offset: The offset after the block's last byte.
  ///   - start: The lowest offset at which the block may begin: bytes before it are still missing.
  /// - Throws: ``DownloadError`` with `.storage` when the bytes cannot be read.
  func mark(endingAt offset: Int64, from start: Int64) throws -> BlockMark?

  /// Whether the stored bytes match the mark.
  /// - Throws: ``DownloadError`` with `.storage` when the bytes cannot be read.
  func matches(_ mark: BlockMark) throws -> Bool
}

extension Partial {
  /// Writes the bytes of an array; see ``write(_:at:)-(RawSpan,_)``.
  public func write(_ bytes: [UInt8], at offset: Int64) throws { try write(bytes.span.bytes, at: offset) }
  /// The default: copies the result of ``read(at:count:)``.
  public func read(at offset: Int64, into buffer: inout MutableRawSpan) throws -> Int {
    let bytes = try read(at: offset, count: buffer.byteCount)
    return buffer.withUnsafeMutableBytes { target in
      target.copyBytes(from: bytes.prefix(target.count))
      return min(bytes.count, target.count)
    }
  }
  /// The default: nothing to do, the bytes have a name from the beginning.
  public func persist() throws {}
  /// The default: `true`.
  public var isNamed: Bool { true }
  /// The default: closes the partial, because it cannot be held.
  public func finish() throws { try close() }
  /// The default: `false`, the bytes are copied.
  public func adopt(_ path: String) throws -> Bool { false }
  /// The default: `nil`, files cannot be imported.
  public func copy(_ path: String, count: Int64) async throws -> Int64? { nil }
  /// The default: throws, because partials cannot be exported.
  public func export(to path: String, count: Int64) async throws {
    throw DownloadError(.storage, "this storage cannot export the bytes of an unfinished download")
  }
  /// Returns a mark of the block that ends at `offset` and may begin anywhere; see ``mark(endingAt:from:)``.
  public func mark(endingAt offset: Int64) throws -> BlockMark? { try mark(endingAt: offset, from: 0) }
  /// The default: `nil`, blocks are not marked.
  public func mark(endingAt offset: Int64, from start: Int64) throws -> BlockMark? { nil }
  /// The default: `true`, no change is known.
  public func matches(_ mark: BlockMark) throws -> Bool { true }
}

/// What a finished write survives.
public enum Durability: String, Sendable, Hashable, Codable {
  /// The end of the process.
  case process
  /// A loss of power: file data and folders are flushed to the disk before the ledger records them.
  case power
}
