public import DownpipeCore
import DownpipePOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension FileStore {
  /// Moves a finished artifact to its destination; see `ConflictPolicy` for a name that exists already.
  ///
  /// With a partial, the open file is published, even if its name among the partials now belongs to another file.
  /// Before a file with a name is published, a note is stored. After a crash, a second call with the note detects
  /// whether the first one succeeded. A file without a name is recognised by its bytes.
  ///
  /// An artifact that is published already is moved. Folders below the root that are empty afterwards are removed. If a
  /// step moved the artifact out of the root, it is renamed in its folder, and the folder of the destination is
  /// ignored.
  ///
  /// **Companions.** They appear before their artifact, each atomically, so that they are all there when it is. The conflict
  /// policy applies to all names together: with `.fail`, nothing is placed if one of them exists; with `.keepBoth`, all get
  /// the same number; with `.replace`, all replace what has their names; with `.reuse`, all bytes must be the same. After a
  /// crash in between, the second call takes the companions back, and begins anew.
  /// - Throws: `DownloadError` with `.alreadyExists`, `.unsafePath`, `.permission`, `.noSpace` or `.storage`, also when
  ///   a published artifact was changed since; `.contentChanged` when another program changed the length of the
  ///   partial.
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

  /// Whether the artifact is not published yet: it is a partial, in a workspace or in memory.
  public func isStaged(_ artifact: Artifact) -> Bool {
    guard let path = artifact.path.map(PathText.normalized) else { return true }
    return PathText.remainder(of: path, below: folders.partials) != nil
      || PathText.remainder(of: path, below: folders.work) != nil
  }

  /// Whether the artifact exists unchanged: a file with the same size and modification time, as far as the artifact has
  /// them, or a folder. Its companions are not looked at.
  public func contains(_ artifact: Artifact) async -> Bool {
    artifact.isOnDisk(system)
  }

  /// Returns an artifact with the size and modification time that its file has now; `nil` if it does not exist, or another
  /// kind of entry is in its place. A symbolic link is followed if the artifact is published: the user may have moved it.
  public func current(_ artifact: Artifact) async -> Artifact? {
    artifact.current(system, followingLinks: !isStaged(artifact))
  }

  /// With `ConflictPolicy.reuse`, returns the existing file with the name of the download and the expected size.
  ///
  /// The name is the name in the request, or the last component of its URL, made safe. A name from the server is
  /// handled when the file is published. Digests are not checked.
  /// - Throws: `DownloadError` with `.unsafePath`, `.permission` or `.storage`.
  public func existing(for request: DownloadRequest) async throws -> Artifact? {
    guard onConflict == .reuse else { return nil }
    return try publisher.existing(
      directory: request.destination.directory,
      name: request.destination.name ?? SafeFileName.make(from: nil, url: request.url), size: request.expectedSize.bytes
    )
  }

  /// Removes an artifact, a file or a folder with its contents, and folders below the root that are empty afterwards. Before,
  /// the companions of a published artifact are removed that are unchanged.
  ///
  /// Does nothing if the artifact does not exist, was changed since it was published, was replaced by another file, or was
  /// there before the download. An artifact that this store has published is told from another one of the same size and time by
  /// its device and inode (``/DownpipeCore/Artifact/identity``). One on another file system than the root's stays: other
  /// machines may have mounted it, too, and count on the file.
  /// - Throws: `DownloadError` with `.unsafePath` for a folder that contains the store or the user's home directory;
  ///   `.permission` or `.storage`.
  public func remove(_ artifact: Artifact) async throws {
    guard !artifact.isReused else { return }
    if let identity = artifact.identity {
      let folder = try reporting("read the status of", root) { () throws(SystemError) in
        try system.statusIfPresent(Entry(root), following: true)
      }
      guard folder?.device == identity.device else { return }
    }
    let isStaged = isStaged(artifact)
    let isRemoved = try await artifact.removeFromDisk(
      checksStatus: !isStaged, keeping: [root, folders.own], system)
    guard isRemoved, !isStaged, let path = artifact.path.map(PathText.normalized),
      PathText.remainder(of: path, below: root) != nil
    else { return }
    removeEmptyFolders(above: path, upTo: root)
  }
}
