import Downpipe

/// The folder of a command: paths that come out of the ledger, to be unpacked, moved or removed, lead nowhere else.
struct ScopedStore: StorageWrapper {
  let base: any Storage
  /// Where such paths may lead.
  let scope: PathScope
  /// Whether paths outside are only looked at: listed, and removed from the ledger.
  let showsAll: Bool

  func path(forStored stored: String) throws -> String {
    let path = try base.path(forStored: stored)
    if !showsAll { try scope.check(entry: path) }
    return path
  }

  func remove(_ artifact: Artifact) async throws {
    if let path = artifact.path { try scope.check(entry: path) }
    try await base.remove(artifact)
  }
}
