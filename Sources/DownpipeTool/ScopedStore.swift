import Downpipe
import Foundation

/// The storage of a command: files that the ledger names are unpacked, moved, renamed or removed inside the scope only.
struct ScopedStore: StorageWrapper {
  var mayBlock: Bool { base.mayBlock }
  let base: any Storage
  let scope: PathScope
  /// Whether paths outside the scope may be listed, and removed from the ledger. Their files stay.
  let showsAll: Bool
  /// Whether a ledger outlives the command. Without one, the folder needs no name by which a ledger finds it again.
  var hasLedger = true
  /// Whether downloads that are added belong to no folder.
  var isForAnyFolder = false

  var location: String? {
    get throws(DownloadError) { try hasLedger && !isForAnyFolder ? base.location : nil }
  }

  /// A command that adds downloads for any folder cannot know that a file is gone if the ledger does not say in which folder it
  /// was.
  func isLocated(at location: String?) async -> Bool {
    if isForAnyFolder, location == nil { return false }
    return await base.isLocated(at: location)
  }

  /// Partials of a command without a ledger have names of their own: the folder may have those of a ledger.
  private func own(_ key: PartialKey) -> PartialKey {
    hasLedger
      ? key
      : PartialKey(id: key.id, generation: Int64(getpid()) << 32 | key.generation & 0xFFFF_FFFF, isSecond: key.isSecond)
  }

  func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    try await base.openPartial(own(key), isNew: isNew)
  }

  func removePartial(_ key: PartialKey) async throws { try await base.removePartial(own(key)) }

  func workspace(_ key: PartialKey) async throws -> String? { try await base.workspace(own(key)) }

  func path(forStored stored: String) throws -> String {
    let path = try base.path(forStored: stored)
    if !showsAll { try scope.check(entry: path) }
    return path
  }

  /// An artifact without a partial comes from the ledger: it is staged, or published and to be renamed.
  func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    if partial == nil, let path = artifact.path { try scope.check(entry: path) }
    return try await base.publish(artifact, of: partial, at: destination, in: context)
  }

  /// What the steps of a request check or make has not happened to a file that is there already: it does not make the
  /// download unnecessary. Publishing still finds equal bytes.
  func existing(for request: DownloadRequest) async throws -> Artifact? {
    guard RequestSteps(request) == RequestSteps() else { return nil }
    return try await base.existing(for: request)
  }

  func remove(_ artifact: Artifact) async throws {
    if let path = artifact.path { try scope.check(entry: path) }
    try await base.remove(artifact)
  }
}
