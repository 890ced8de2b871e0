import Downpipe

/// The library's folder: a `FileStore` that takes a film which was renamed for what it is, and does not fetch it again.
struct LibraryStore: Storage {
  /// The label of a film whose file has been given another name.
  static let renamed = "renamed"

  private let files: FileStore

  init(_ root: String) { files = FileStore(root) }

  var summary: String { files.summary }
  var durability: Durability { files.durability }

  func existing(for request: DownloadRequest) async throws -> Artifact? {
    guard request.tags.contains(Self.renamed) else { return nil }
    return try await FileStore(files.root, onConflict: .reuse).existing(for: request)
  }

  var location: String? { files.location }
  func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    try await files.openPartial(key, isNew: isNew)
  }
  func removePartial(_ key: PartialKey) async throws { try await files.removePartial(key) }
  func workspace(_ key: PartialKey) async throws -> String? { try await files.workspace(key) }
  func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    try await files.publish(artifact, of: partial, at: destination, in: context)
  }
  func partials() async throws -> [StoredPartial]? { try await files.partials() }
  func availableBytes() async throws -> Int64? { try await files.availableBytes() }
  func isStaged(_ artifact: Artifact) -> Bool { files.isStaged(artifact) }
  func contains(_ artifact: Artifact) async -> Bool { await files.contains(artifact) }
  func remove(_ artifact: Artifact) async throws { try await files.remove(artifact) }
  func storedPath(for path: String) -> String { files.storedPath(for: path) }
  func path(forStored path: String) throws -> String { try files.path(forStored: path) }
}
