import DownpipeCore
import DownpipeTesting

/// A fake storage with changed behavior.
struct AlteredStorage: Storage {
  let base: FakeStorage
  var key: @Sendable (PartialKey) -> PartialKey = { $0 }
  var onOpen: @Sendable (any Partial) throws -> Void = { _ in }
  var onWrite: @Sendable (any Partial, [UInt8], Int64) throws -> Void = { try $0.put($1, at: $2) }
  var onPersist: @Sendable (any Partial) throws -> Void = { try $0.persist() }
  var isSeenAnew: @Sendable (Bool) -> Bool = { $0 }
  var isHeldWhenFinished = true
  var onRead: @Sendable (any Partial, Int64, Int) throws -> [UInt8] = { try $0.read(at: $1, count: $2) }
  var onTruncate: @Sendable (any Partial, Int64) throws -> Void = { try $0.truncate(to: $1) }
  var onArtifact: @Sendable (Artifact) -> Artifact = { $0 }
  var swallowsLateWrites = false
  var onRemovePartial: @Sendable (FakeStorage, PartialKey) async throws -> Void = { try await $0.removePartial($1) }
  var onWorkspace: (@Sendable (PartialKey) async throws -> String?)?
  var onPublish:
    @Sendable (FakeStorage, Artifact, DownloadRequest.Destination, ProcessingContext) async throws -> Artifact = {
      try await $0.publish($1, of: nil, at: $2, in: $3)
    }
  var onIsStaged: (@Sendable (Artifact) -> Bool)?
  var onContains: (@Sendable (Artifact) -> Bool)?
  var onRemove: @Sendable (FakeStorage, Artifact) async throws -> Void = { try await $0.remove($1) }
  var onStoredPath: (@Sendable (String) -> String)?
  var onPathForStored: (@Sendable (String) -> String)?

  init(_ base: FakeStorage) { self.base = base }

  func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    let partial = try await base.openPartial(self.key(key), isNew: isSeenAnew(isNew))
    try onOpen(partial)
    return AlteredPartial(base: partial, storage: self)
  }

  func removePartial(_ key: PartialKey) async throws { try await onRemovePartial(base, self.key(key)) }

  func workspace(_ key: PartialKey) async throws -> String? {
    if let onWorkspace { return try await onWorkspace(key) }
    return try await base.workspace(self.key(key))
  }

  func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    try await onPublish(base, artifact, destination, context)
  }

  func isStaged(_ artifact: Artifact) -> Bool { onIsStaged?(artifact) ?? base.isStaged(artifact) }

  func contains(_ artifact: Artifact) async -> Bool {
    if let onContains { return onContains(artifact) }
    return await base.contains(artifact)
  }

  func existing(for request: DownloadRequest) async throws -> Artifact? { try await base.existing(for: request) }
  func remove(_ artifact: Artifact) async throws { try await onRemove(base, artifact) }
  func storedPath(for path: String) -> String { onStoredPath?(path) ?? base.storedPath(for: path) }

  func path(forStored storedPath: String) throws -> String {
    try onPathForStored?(storedPath) ?? base.path(forStored: storedPath)
  }
}

struct AlteredPartial: Partial {
  let base: any Partial
  let storage: AlteredStorage

  func size() throws -> Int64 { try base.size() }

  func write(_ bytes: RawSpan, at offset: Int64) throws {
    do {
      try storage.onWrite(base, bytes.withUnsafeBytes { [UInt8]($0) }, offset)
    } catch let error as DownloadError {
      if !storage.swallowsLateWrites { throw error }
    }
  }

  func read(at offset: Int64, count: Int) throws -> [UInt8] { try storage.onRead(base, offset, count) }
  func truncate(to size: Int64) throws { try storage.onTruncate(base, size) }
  func synchronize() async throws { try await base.synchronize() }
  func persist() throws { try storage.onPersist(base) }
  func finish() throws { if storage.isHeldWhenFinished { try base.finish() } else { try base.close() } }
  func close() throws { try base.close() }

  func artifact(name: String, mediaType: String?) throws -> Artifact {
    storage.onArtifact(try base.artifact(name: name, mediaType: mediaType))
  }
}
