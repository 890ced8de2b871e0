/// A storage that may block, whose calls are made where nothing else waits for the thread.
struct BlockingStorage: StorageWrapper {
  let base: any Storage
  let executors: Executors

  func isLocated(at location: String?) async -> Bool {
    await executors.blocking { await base.isLocated(at: location) }
  }

  func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    try await executors.blocking { try await base.openPartial(key, isNew: isNew) }
  }

  func removePartial(_ key: PartialKey) async throws {
    try await executors.blocking { try await base.removePartial(key) }
  }

  func workspace(_ key: PartialKey) async throws -> String? {
    try await executors.blocking { try await base.workspace(key) }
  }

  func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    try await executors.blocking { try await base.publish(artifact, of: partial, at: destination, in: context) }
  }

  func contains(_ artifact: Artifact) async -> Bool {
    await executors.blocking { await base.contains(artifact) }
  }

  func current(_ artifact: Artifact) async -> Artifact? {
    await executors.blocking { await base.current(artifact) }
  }

  func existing(for request: DownloadRequest) async throws -> Artifact? {
    try await executors.blocking { try await base.existing(for: request) }
  }

  func remove(_ artifact: Artifact) async throws {
    try await executors.blocking { try await base.remove(artifact) }
  }

  func partials() async throws -> [StoredPartial]? {
    try await executors.blocking { try await base.partials() }
  }

  func availableBytes() async throws -> Int64? {
    try await executors.blocking { try await base.availableBytes() }
  }
}
