package import DownpipeCore
import Foundation

extension Artifact {
  /// Whether a file or folder is this artifact, as far as its size and modification time are known. Ledgers store times
  /// in microseconds.
  package func isDescribed(by status: FileStatus) -> Bool {
    guard status.kind == (kind == .file ? .file : .folder) else { return false }
    guard kind == .file else { return true }
    if case .known(let size) = size, size != status.size { return false }
    guard let modifiedAt else { return true }
    return abs(modifiedAt.timeIntervalSince(status.modifiedAt)) < 0.000_002
  }

  /// Whether the artifact's path leads to it, following symbolic links. False for an artifact in memory.
  package func isOnDisk(_ system: FileSystem) -> Bool {
    guard let path, let status = try? system.status(Entry(path), following: true) else { return false }
    return isDescribed(by: status)
  }

  /// The artifact as it is on disk now; `nil` if nothing of its kind is at its path.
  package func current(_ system: FileSystem, followingLinks: Bool = true) -> Artifact? {
    guard let path, let status = try? system.status(Entry(path), following: followingLinks),
      status.kind == (kind == .file ? .file : .folder)
    else { return nil }
    guard kind == .file else { return self }
    var current = self
    current.size = .known(status.size)
    // The time of a file that is still to be published says nothing.
    if modifiedAt != nil { current.modifiedAt = status.modifiedAt }
    return current
  }

  /// Removes the artifact from the disk: a file, or a folder with everything below it. Its companions are removed before if
  /// they are beside it; those of an artifact that is not published go with the workspace.
  ///
  /// Does nothing when the path does not exist, or leads to something else than this artifact, or to another file than that of
  /// its ``/DownpipeCore/Artifact/identity``.
  /// - Parameters:
  ///   - checksStatus: Whether the entry at the path must be this artifact.
  ///   - precious: Folders that must stay. The user's home directory always stays.
  /// - Returns: Whether something was removed.
  /// - Throws: `DownloadError` with `.unsafePath` for a folder that contains a precious one; `.permission` or
  ///   `.storage`.
  @discardableResult
  package func removeFromDisk(
    checksStatus: Bool = true, keeping precious: [String] = [], _ system: FileSystem
  ) async throws -> Bool {
    guard let path = path.map(PathText.normalized) else { return false }
    if let identity {
      // Another file at the path has companions of its own.
      let status = try reporting("remove", path) { () throws(SystemError) in try system.statusIfPresent(Entry(path)) }
      guard let status, Identity(status) == identity else { return false }
    }
    if checksStatus { for file in companionFiles { try await file.removeFromDisk(system) } }
    let status = try reporting("remove", path) { () throws(SystemError) in try system.statusIfPresent(Entry(path)) }
    guard let status, !checksStatus || isDescribed(by: status) else { return false }
    guard kind == .directory else {
      try reporting("remove", path) { () throws(SystemError) in
        do throws(SystemError) { try system.unlink(Entry(path)) } catch  where error.isAbsence {}
      }
      return true
    }
    for folder in precious + [PathText.home]
    where path == folder || PathText.remainder(of: folder, below: path) != nil {
      throw DownloadError(.unsafePath, "\(path) contains more than this download: remove it yourself")
    }
    try await BlockingThreads.run { _ in
      try reporting("remove", path) { () throws(SystemError) in try FileTree(system: system).remove(Entry(path)) }
    }
    return true
  }
}

extension Artifact.Identity {
  /// The identity of the file with a status.
  package init(_ status: FileStatus) { self.init(device: status.device, inode: status.inode) }
}
