internal import Foundation

// The conversion between an artifact and its form in the ledger, which is the storage's: nothing else makes one from the
// other.

extension StoredArtifact {
  /// Creates the form of an artifact that the ledger stores.
  init(_ artifact: Artifact, in storage: any Storage) {
    self.init(
      kind: artifact.kind,
      path: artifact.remoteURL?.absoluteString ?? artifact.path.map(storage.storedPath(for:)), name: artifact.name,
      size: artifact.size.bytes, mediaType: artifact.mediaType, modifiedAt: artifact.modifiedAt,
      isReused: artifact.isReused,
      companions: artifact.companions.map { companion in
        Companion(
          suffix: companion.suffix,
          path: companion.path == artifact.path.map { $0 + companion.suffix }
            ? nil : storage.storedPath(for: companion.path),
          size: companion.size.bytes, modifiedAt: companion.modifiedAt)
      })
  }

  /// The URL of an artifact on another machine; `nil` for others. No stored path has two slashes in a row.
  var remoteURL: URL? {
    guard let path, !path.hasPrefix("/"), path.contains("://") else { return nil }
    return URL(string: path)
  }

  /// The artifact at a location.
  func artifact(at location: Artifact.Location) -> Artifact {
    var artifact = Artifact(
      kind: kind, location: location, name: name, size: ByteCount(size), mediaType: mediaType, modifiedAt: modifiedAt)
    artifact.isReused = isReused
    return artifact
  }
}

extension Storage {
  /// Whether an artifact of a download is in this storage, as far as the ledger tells.
  func isPlace(of stored: StoredArtifact, _ record: DownloadRecord) async -> Bool {
    await isLocated(at: stored.location ?? record.location)
  }

  /// Whether this storage tells whether an artifact of a download still exists: it is here, outside of all storages, or found
  /// by its path, size and time, such as after a folder has lost its name.
  func mayTell(of stored: StoredArtifact, _ record: DownloadRecord) async -> Bool {
    if stored.isOutside { return true }
    if await isPlace(of: stored, record) { return true }
    guard stored.size != nil, stored.modifiedAt != nil, let artifact = try? artifact(from: stored) else { return false }
    return await contains(artifact)
  }

  /// Removes an artifact by its form in the ledger, unless another storage has it: what is here at the same path is not its.
  func remove(_ stored: StoredArtifact) async throws {
    if let place = stored.location, !stored.isOutside, await !isLocated(at: place) { return }
    try await remove(shownArtifact(from: stored))
  }

  /// The artifact for its form in the ledger.
  /// - Throws: The error of a storage that cannot have an artifact at the path.
  func artifact(from stored: StoredArtifact) throws -> Artifact {
    guard let path = stored.path else { return artifactInMemory(from: stored) }
    if let url = stored.remoteURL { return stored.artifact(at: .remote(url)) }
    var artifact = stored.artifact(at: .path(try self.path(forStored: path)))
    if !stored.companions.isEmpty { artifact.companions = try companions(of: stored, besides: artifact) }
    return artifact
  }

  /// The companions of an artifact with a path. One with a suffix that is never written is left out.
  private func companions(of stored: StoredArtifact, besides artifact: Artifact) throws -> [Artifact.Companion] {
    try stored.companions.compactMap { companion in
      guard Artifact.Companion.isSafe(suffix: companion.suffix),
        let path = try companion.path.map(path(forStored:)) ?? artifact.path.map({ $0 + companion.suffix })
      else { return nil }
      return Artifact.Companion(
        suffix: companion.suffix, path: path, size: ByteCount(companion.size), modifiedAt: companion.modifiedAt)
    }
  }

  /// The artifact to show for its form in the ledger: without a path if the storage cannot have one there.
  func shownArtifact(from stored: StoredArtifact) -> Artifact {
    (try? artifact(from: stored)) ?? stored.artifact(at: .memory([]))
  }

  private func artifactInMemory(from stored: StoredArtifact) -> Artifact {
    let described = stored.artifact(at: .memory([]))
    return published(described) ?? described
  }
}

extension Run {
  /// Whether an artifact of the download is in this storage, or outside of all.
  func isHere(_ stored: StoredArtifact) -> Bool {
    stored.isOutside || stored.location == nil || stored.location == location ?? read { $0.location }
  }

  /// The form of an artifact that the ledger stores. That of a download that belongs to no location says where it is.
  func stored(_ artifact: Artifact) -> StoredArtifact {
    var stored = StoredArtifact(artifact, in: storage)
    if artifact.path != nil { stored.location = location }
    return stored
  }
}
