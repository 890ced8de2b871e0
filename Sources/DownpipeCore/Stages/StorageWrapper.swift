/// A storage around another one: it changes what it wants to, and everything else is the other one's, what later versions
/// add included.
///
/// ```swift
/// /// Keeps at least a gigabyte free.
/// struct Reserve: StorageWrapper {
///   let base: any Storage
///   func availableBytes() async throws -> Int64? { try await base.availableBytes().map { max(0, $0 - 1 << 30) } }
/// }
/// ```
/// Partials are handed through as they are. A wrapper with partials of its own writes ``Storage/openPartial(_:isNew:)``
/// and gives the base its own partial back in ``Storage/publish(_:of:at:in:)``.
public protocol StorageWrapper: Storage {
  /// The storage that does the work.
  var base: any Storage { get }
}

extension StorageWrapper {
  /// That of the base.
  public var name: String { base.name }
  /// That of the base.
  public var id: String { base.id }
  /// That of the base.
  public var summary: String { base.summary }
  /// That of the base.
  public var location: String? { base.location }
  /// That of the base.
  public var durability: Durability { base.durability }

  /// Asks the base.
  public func check(_ destination: DownloadRequest.Destination) throws(DownloadError) { try base.check(destination) }
  /// Opens a partial of the base.
  public func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    try await base.openPartial(key, isNew: isNew)
  }
  /// Removes a partial of the base.
  public func removePartial(_ key: PartialKey) async throws { try await base.removePartial(key) }
  /// A workspace of the base.
  public func workspace(_ key: PartialKey) async throws -> String? { try await base.workspace(key) }
  /// Publishes by the base.
  public func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    try await base.publish(artifact, of: partial, at: destination, in: context)
  }
  /// Asks the base.
  public func isStaged(_ artifact: Artifact) -> Bool { base.isStaged(artifact) }
  /// Asks the base.
  public func contains(_ artifact: Artifact) async -> Bool { await base.contains(artifact) }
  /// Asks the base.
  public func existing(for request: DownloadRequest) async throws -> Artifact? {
    try await base.existing(for: request)
  }
  /// Removes it from the base.
  public func remove(_ artifact: Artifact) async throws { try await base.remove(artifact) }
  /// Asks the base.
  public func storedPath(for path: String) -> String { base.storedPath(for: path) }
  /// Asks the base.
  public func path(forStored storedPath: String) throws -> String { try base.path(forStored: storedPath) }
  /// Lists those of the base.
  public func partials() async throws -> [StoredPartial]? { try await base.partials() }
  /// Asks the base.
  public func availableBytes() async throws -> Int64? { try await base.availableBytes() }
}
