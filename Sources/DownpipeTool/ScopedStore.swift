import Downpipe

/// The folder of a command: paths that come out of the ledger, to be unpacked, moved, renamed or
/// removed, lead nowhere else.
struct ScopedStore: StorageWrapper {
  let base: any Storage
  /// Where such paths may lead.
  let scope: PathScope
  /// Whether paths outside are only looked at: listed, and removed from the ledger. Nothing there is moved all the same.
  let showsAll: Bool

  func path(forStored stored: String) throws -> String {
    let path = try base.path(forStored: stored)
    if !showsAll { try scope.check(entry: path) }
    return path
  }

  /// Without a partial the artifact may be one that the ledger names: staged, or published and to be renamed.
  func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    if partial == nil, let path = artifact.path { try scope.check(entry: path) }
    return try await base.publish(artifact, of: partial, at: destination, in: context)
  }

  func remove(_ artifact: Artifact) async throws {
    if let path = artifact.path { try scope.check(entry: path) }
    try await base.remove(artifact)
  }
}
