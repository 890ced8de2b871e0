package import Foundation

extension DownloadError {
  /// A step was given an artifact that has no bytes on this machine.
  package static func elsewhere(_ url: URL) -> DownloadError {
    DownloadError(
      .processing,
      "the file is at \(url.redacted) and not on this machine: put this step before the one that moves it there")
  }
}

/// The storage of a downloader, as the engine sees it: what steps have put on another machine is not the storage's affair.
///
/// Storages are asked only about artifacts at paths and in memory.
struct RemoteArtifacts: StorageWrapper {
  let base: any Storage
  var mayBlock: Bool { base.mayBlock }

  func isStaged(_ artifact: Artifact) -> Bool { artifact.remoteURL == nil && base.isStaged(artifact) }

  /// An artifact on another machine counts as there: to ask for it would cost a request for each one.
  func contains(_ artifact: Artifact) async -> Bool {
    if artifact.remoteURL != nil { return true }
    return await base.contains(artifact)
  }

  func current(_ artifact: Artifact) async -> Artifact? {
    if artifact.remoteURL != nil { return artifact }
    return await base.current(artifact)
  }

  /// Leaves an artifact on another machine where it is.
  func remove(_ artifact: Artifact) async throws {
    if artifact.remoteURL == nil { try await base.remove(artifact) }
  }
}
