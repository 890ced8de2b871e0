import DownpipeCore
import DownpipePOSIX

/// The open file of an artifact, for steps that change its attributes and not its bytes.
struct ArtifactFile {
  let path: String
  let file: OpenFile
  let status: FileStatus

  private var system: FileSystem { file.system }

  /// Opens the file of an artifact; `nil` for one in memory, and for one that was there before the download: it is not
  /// the download's own.
  ///
  /// - Parameter inode: The inode of a file whose modification time an earlier run may have changed.
  /// - Throws: `DownloadError` with `.storage` if the file is missing, is not a regular file, or was changed since it was
  ///   published; `.permission`.
  static func open(
    _ artifact: Artifact, changedBefore inode: UInt64? = nil, _ system: FileSystem
  ) throws -> ArtifactFile? {
    guard let path = artifact.path else { return nil }
    let (file, status) = try reporting("open", path) { () throws(SystemError) in
      // A symbolic link could lead to another file.
      let file = try OpenFile(reading: path, followingLink: false, system: system)
      return (file, try file.status())
    }
    guard status.kind == .file else { throw DownloadError(.storage, "\(path) is not a regular file: remove it") }
    var described = artifact
    if inode == status.inode { described.modifiedAt = nil }
    guard described.isDescribed(by: status) else {
      throw DownloadError(
        .storage, "\(path) was changed or replaced by another program: remove the download and add it again")
    }
    return artifact.isReused ? nil : ArtifactFile(path: path, file: file, status: status)
  }

  /// Changes the file; with `.power`, the change is on the disk afterwards.
  ///
  /// - Returns: The status of the file after the change.
  func change(
    _ action: String, _ durability: Durability, _ body: (CInt) throws(SystemError) -> Void
  ) throws -> FileStatus {
    try reporting(action, path) { () throws(SystemError) in
      try body(file.descriptor)
      if durability == .power { try system.flushWithAttributes(file.descriptor) }
      return try file.status()
    }
  }
}

extension Artifact {
  /// Throws `DownloadError` with `.storage` if nothing is at the artifact's path.
  func checkIsPresent() throws {
    guard let path else { return }
    try reporting("read the status of", path) { () throws(SystemError) in
      _ = try FileSystem.system.status(Entry(path), following: true)
    }
  }
}
