import DownpipeCore
import DownpipePOSIX
import Foundation

/// What publishing leaves behind: the file that was published, if it still has its old name, and hidden files.
struct PublishResidue: Sendable {
  let artifact: Artifact
  let id: DownloadID
  let folder: OpenFolder
  let name: String
  let published: FileStatus
  /// Whether the artifact was published before. Then another file may have its old path by now.
  let isPublished: Bool

  /// The name of a copy beside the target. It is the same for every run, so that the next one finds it.
  static func copyName(_ artifact: Artifact, _ id: DownloadID) -> String { name(artifact, id) + ".part" }

  /// The name of an old folder while it is replaced.
  static func asideName(_ artifact: Artifact, _ id: DownloadID) -> String { name(artifact, id) + ".old" }

  private static func name(_ artifact: Artifact, _ id: DownloadID) -> String {
    // An id can be longer than a name, and a collision only replaces a temporary file.
    let bytes = id.rawValue.utf8 + [0] + (artifact.path ?? "").utf8
    return ".downpipe-" + String(UInt128(fnv1a: bytes), radix: 36)
  }

  func remove() async throws {
    try await BlockingThreads.run { [self] _ in
      let tree = FileTree(system: folder.system)
      try tree.remove(folder.entry(Self.copyName(artifact, id)))
      if artifact.kind == .directory { try tree.remove(folder.entry(Self.asideName(artifact, id))) }
      guard let path = artifact.path, try !isTarget(path) else { return }
      if isPublished {
        guard let status = try folder.system.statusIfPresent(Entry(path)),
          status.isSame(as: published) || artifact.isDescribed(by: status)
        else { return }
      }
      try tree.remove(Entry(path))
    }
  }

  /// Takes the new name back, so that the file has its old one only. A copy is deleted, because its original is there.
  func withdraw() throws(SystemError) {
    guard let path = artifact.path, try !isTarget(path) else { return }
    let system = folder.system
    if try system.statusIfPresent(Entry(path)) != nil { return try system.unlink(folder.entry(name)) }
    try system.rename(folder.entry(name), to: Entry(path))
  }

  /// Whether a path leads to the published entry, and not to another name of the same file.
  func isTarget(_ path: String) throws(SystemError) -> Bool {
    guard let status = try folder.system.statusIfPresent(Entry(path)), status.isSame(as: published) else {
      return false
    }
    if status.kind == .folder || status.links == 1 { return true }
    let (parent, last) = PathText.split(path)
    // Some file systems do not distinguish upper and lower case.
    guard last.lowercased() == name.lowercased() else { return false }
    let here = try folder.system.status(folder.descriptor)
    return try folder.system.status(Entry(parent), following: true).isSame(as: here)
  }
}
