public import DownpipeCore
import DownpipePOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

// What becomes of finished downloads.
extension FileStore {
  /// Moves a finished artifact to its destination and settles conflicts; see ``ConflictPolicy``.
  ///
  /// With a partial, the file that is open appears, whatever has become of its name. A note is kept before a file
  /// appears that had a name; called again after a crash with that note, it finds out whether the first call
  /// succeeded. One that had no name is looked for by its bytes.
  ///
  /// A published artifact is moved. Folders below the root that are empty then are removed. One that a step has put
  /// outside of the root gets its name there; the destination's folder does not count for it.
  /// - Throws: `DownloadError` with `.alreadyExists`, `.unsafePath`, `.permission`, `.noSpace` or `.storage`, which it is
  ///   as well for a published artifact that was changed since; `.contentChanged` when another program has changed the
  ///   partial's length.
  public func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    if partial == nil, let path = artifact.path, !isStaged(artifact) {
      return try await move(artifact, at: path, to: destination, in: context)
    }
    var held: HeldFile?
    if let partial = partial as? FilePartial, artifact.path == partial.path { held = try partial.held() }
    return try await publisher.publish(
      artifact, held, directory: destination.directory, name: destination.finalName ?? artifact.name, in: context)
  }

  private func move(
    _ artifact: Artifact, at path: String, to destination: DownloadRequest.Destination, in context: ProcessingContext
  ) async throws -> Artifact {
    let path = PathText.normalized(path)
    let name = destination.finalName ?? artifact.name
    guard PathText.remainder(of: path, below: root) != nil else {
      let beside = Publisher(
        root: PathText.split(path).folder, onConflict: onConflict, durability: durability, system: system)
      return try await beside.publish(artifact, isPublished: true, directory: nil, name: name, in: context)
    }
    let moved = try await publisher.publish(
      artifact, isPublished: true, directory: destination.directory, name: name, in: context)
    if moved.path != path { removeEmptyFolders(above: path, upTo: root) }
    return moved
  }

  /// Whether the artifact is still among partials and workspaces, or in memory, and has to be published.
  public func isStaged(_ artifact: Artifact) -> Bool {
    guard let path = artifact.path else { return true }
    return PathText.remainder(of: path, below: folders.partials) != nil
      || PathText.remainder(of: path, below: folders.work) != nil
  }

  /// Whether an artifact is still there: a file or a folder, as it was, of the same size and time of change as far as
  /// they are known.
  public func contains(_ artifact: Artifact) async -> Bool {
    artifact.isOnDisk(system)
  }

  /// With ``ConflictPolicy/reuse``, the file that has the download's name already, when it has the expected size.
  ///
  /// The name is the request's, or the last part of its URL, made safe; a name that only the server knows
  /// is dealt with when the file is published. Digests are not checked here.
  /// - Throws: `DownloadError` with `.unsafePath`, `.permission` or `.storage`.
  public func existing(for request: DownloadRequest) async throws -> Artifact? {
    guard onConflict == .reuse else { return nil }
    return try publisher.existing(
      directory: request.destination.directory,
      name: request.destination.name ?? SafeFileName.make(from: nil, url: request.url), size: request.expectedSize.bytes
    )
  }

  /// Removes a file, or a folder with all that is in it. No error when there is nothing.
  ///
  /// Folders below the root that are empty then, as the destination has named them, are removed, too.
  ///
  /// A published file that was changed since, and what has taken its place, stay; that is no error either.
  /// - Throws: `DownloadError` with `.unsafePath` for a folder that holds the store itself or the user's home;
  ///   `.permission` or `.storage`.
  public func remove(_ artifact: Artifact) async throws {
    let isStaged = isStaged(artifact)
    let isRemoved = try await artifact.removeFromDisk(
      checksStatus: !isStaged, keeping: [root, folders.own], system)
    guard isRemoved, !isStaged, let path = artifact.path.map(PathText.normalized),
      PathText.remainder(of: path, below: root) != nil
    else { return }
    removeEmptyFolders(above: path, upTo: root)
  }
}
