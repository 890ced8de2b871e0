/// A storage that wraps another one and passes on every call that it does not implement itself.
///
/// Requirements that later versions add are passed on too.
///
/// ```swift
/// /// Keeps at least a gigabyte free.
/// struct Reserve: StorageWrapper {
///   let base: any Storage
///   func availableBytes() async throws -> Int64? { try await base.availableBytes().map { max(0, $0 - 1 << 30) } }
/// }
/// ```
/// Partials are passed on unchanged. A wrapper with its own type of partial (a ``PartialWrapper``) implements
/// ``Storage/openPartial(_:isNew:)``, and passes the base its own partial in ``Storage/publish(_:of:at:in:)``.
public protocol StorageWrapper: Storage {
  /// The wrapped storage.
  var base: any Storage { get }
}

extension StorageWrapper {
  /// The name of the base.
  public var name: String { base.name }
  /// The identifier of the base.
  public var id: String { base.id }
  /// The summary of the base.
  public var summary: String { base.summary }
  /// The location of the base.
  public var location: String? { get throws(DownloadError) { try base.location } }
  /// Whether the base is at the location.
  public func isLocated(at location: String?) async -> Bool { await base.isLocated(at: location) }
  /// `true`: the wrapper's own calls may block, even if the base's do not. One whose calls do not returns the base's
  /// ``Storage/mayBlock``.
  public var mayBlock: Bool { true }
  /// The durability of the base.
  public var durability: Durability { base.durability }

  /// Checks the destination with the base.
  public func check(_ destination: DownloadRequest.Destination) throws(DownloadError) { try base.check(destination) }
  /// Opens a partial of the base.
  public func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    try await base.openPartial(key, isNew: isNew)
  }
  /// Removes a partial of the base.
  public func removePartial(_ key: PartialKey) async throws { try await base.removePartial(key) }
  /// Returns a workspace of the base.
  public func workspace(_ key: PartialKey) async throws -> String? { try await base.workspace(key) }
  /// Publishes through the base.
  public func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    try await base.publish(artifact, of: partial, at: destination, in: context)
  }
  /// Whether the artifact is staged in the base.
  public func isStaged(_ artifact: Artifact) -> Bool { base.isStaged(artifact) }
  /// Whether the base contains the published artifact.
  public func contains(_ artifact: Artifact) async -> Bool { await base.contains(artifact) }
  /// Returns the artifact as the base has it now.
  public func current(_ artifact: Artifact) async -> Artifact? { await base.current(artifact) }
  /// Returns the published artifact of the base.
  public func published(_ described: Artifact) -> Artifact? { base.published(described) }
  /// Returns an existing artifact of the base.
  public func existing(for request: DownloadRequest) async throws -> Artifact? {
    try await base.existing(for: request)
  }
  /// Removes the artifact from the base.
  public func remove(_ artifact: Artifact) async throws { try await base.remove(artifact) }
  /// Returns the path as the base stores it.
  public func storedPath(for path: String) -> String { base.storedPath(for: path) }
  /// Returns the absolute path from the base.
  public func path(forStored storedPath: String) throws -> String { try base.path(forStored: storedPath) }
  /// Returns the partials of the base.
  public func partials() async throws -> [StoredPartial]? { try await base.partials() }
  /// Returns the available bytes of the base.
  public func availableBytes() async throws -> Int64? { try await base.availableBytes() }
}
