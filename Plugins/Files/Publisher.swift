import DownpipeCore
import DownpipePOSIX
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Makes finished artifacts appear below a root, atomically, and settles conflicts: `FileStore` publishes with
/// it, and `MoveInto` moves with it.
///
/// It goes through a ``PublishNote``: what is to appear and where is written down first, so that a second run
/// after a crash finds out whether the first one got that far. Nothing is published twice.
struct Publisher: Sendable {
  /// The absolute path of the folder that destinations are relative to; made if it is missing.
  let root: String
  let onConflict: ConflictPolicy
  let durability: Durability
  /// A folder directly below the root that destinations may not enter.
  var reserved: String?
  var system = FileSystem.system
  /// Those of the store, which holds some destinations open.
  var folders: StoreFolders?

  /// Moves an artifact to its place.
  ///
  /// - Parameters:
  ///   - held: the partial whose bytes it has, if no step has changed them.
  ///   - isPublished: whether it was published before: it must be what it was then, and what else has its old path later
  ///     stays.
  ///   - directory: a folder below the root, made if it is missing; the root itself when `nil`.
  ///   - name: the name there, unless a conflict gives it a number.
  /// - Returns: the artifact where it is now.
  /// - Throws: `DownloadError` with `.alreadyExists`, `.unsafePath`, `.permission`, `.noSpace` or `.storage`.
  func publish(
    _ artifact: Artifact, _ held: HeldFile? = nil, isPublished: Bool = false, directory: String?, name: String,
    in context: ProcessingContext
  ) async throws -> Artifact {
    let components = try destination(directory, name)
    let note = context.priorNote.flatMap(PublishNote.init)
    if let note, let published = try await resume(note, artifact, isPublished, context.request.id) { return published }
    if isPublished, artifact.kind == .directory, let path = artifact.path,
      PathText.remainder(of: PathText.join(root, components.joined(separator: "/")), below: path) != nil
    {
      throw DownloadError(.unsafePath, "the destination lies in the folder that is to be moved: choose another one")
    }
    if let held, case .known(let size) = artifact.size, size != held.status.size {
      throw DownloadError(
        .contentChanged,
        "the partial has \(held.status.size) of \(size) bytes: another program has changed it, start the download again"
      )
    }
    for attempt in 1... {
      let opened: OpenFolder?
      do {
        opened = try open(components.dropLast())
      } catch let error as DownloadError where attempt < Self.maximumAttempts && error.saysAbsence {
        continue
      }
      guard let folder = opened else {
        throw DownloadError(.storage, "\(root) has disappeared: start the download again")
      }
      let publication = Publication(
        publisher: self, artifact: artifact, held: held, folder: folder, name: name, components: components.dropLast(),
        claimed: note.flatMap { claim(in: $0, below: components.dropLast()) }, isPublished: isPublished,
        context: context)
      do {
        return try await publication.run()
      } catch let error as SystemError {
        // Empty by then, it was removed together with the last file of another download.
        if error.code == ENOENT, attempt < Self.maximumAttempts, folder.isGone { continue }
        throw error.downloadError("publish", PathText.join(folder.path, name))
      }
    }
    throw DownloadError(.storage, "nothing was published")
  }

  /// How often the folder may be removed while something is published in it.
  private static let maximumAttempts = 100

  private func open(_ components: ArraySlice<String>) throws -> OpenFolder? {
    if let folders { return try folders.destination(components) }
    return try OpenFolder.open(
      root: root, components: Array(components), creating: true, durability: durability, system: system)
  }

  /// The artifact that has a name already; `nil` when there is none, or it is no file or not of the size.
  ///
  /// - Throws: `DownloadError` as ``publish(_:directory:name:in:)`` does.
  func existing(directory: String?, name: String, size: Int64?) throws -> Artifact? {
    let components = try destination(directory, name)
    guard
      let folder = try OpenFolder.open(
        root: root, components: components.dropLast(), creating: false, durability: durability, system: system)
    else { return nil }
    let path = PathText.join(folder.path, name)
    let status = try reporting("look at", path) { () throws(SystemError) in
      try system.statusIfPresent(folder.entry(name))
    }
    guard let status, status.kind == .file, size == nil || size == status.size else { return nil }
    return Artifact(location: .path(path), name: name, size: .known(status.size))
  }

  /// The folders and, where it has one, the name of a destination.
  ///
  /// - Throws: `DownloadError` with `.unsafePath` where nothing can be published there.
  func check(_ destination: DownloadRequest.Destination) throws(DownloadError) {
    _ = try self.destination(destination.directory, destination.name ?? "file")
  }

  /// The components of the destination, the name last.
  private func destination(_ directory: String?, _ name: String) throws(DownloadError) -> [String] {
    try PathText.checkName(name)
    let components =
      try (directory.map { text throws(DownloadError) in try PathText.components(of: text) } ?? []) + [name]
    // Some file systems do not tell `.Downpipe` from `.downpipe`.
    if let reserved, components[0].lowercased() == reserved {
      throw DownloadError(
        .unsafePath, "“\(reserved)” below the root holds unfinished downloads: choose another destination")
    }
    return components
  }

  /// The artifact, when a run before the crash has published it already; what it left undone is done.
  private func resume(
    _ note: PublishNote, _ artifact: Artifact, _ isPublished: Bool, _ id: DownloadID
  ) async throws -> Artifact? {
    let components = try PathText.components(of: note.target)
    guard let name = components.last,
      let folder = try OpenFolder.open(
        root: root, components: components.dropLast(), creating: false, durability: durability, system: system)
    else { return nil }
    let path = PathText.join(folder.path, name)
    do {
      guard let status = try system.statusIfPresent(folder.entry(name)), note.describes(status) else { return nil }
      // The new name first, then the loss of the old one.
      try await BlockingThreads.run { [durability] _ in try folder.flush(durability) }
      let leftovers = Leftovers(
        artifact: artifact, id: id, folder: folder, name: name, published: status, isPublished: isPublished)
      try await leftovers.remove()
      if let path = artifact.path {
        try await BlockingThreads.run { [durability, system] _ in
          try OpenFolder.flush(above: path, durability, system: system)
        }
      }
      return artifact.published(at: path, status)
    } catch let error as SystemError {
      throw error.downloadError("publish", path)
    }
  }

  /// The name that a run before the crash may have taken with something empty.
  private func claim(in note: PublishNote, below folders: [String]) -> String? {
    guard note.manner == .claiming, let components = try? PathText.components(of: note.target),
      components.dropLast().elementsEqual(folders)
    else { return nil }
    return components.last
  }
}

extension DownloadError {
  /// Whether a folder was removed while one in it was made.
  fileprivate var saysAbsence: Bool { (cause as? SystemError)?.code == ENOENT }
}

extension Artifact {
  /// The artifact as it is once it has its final name.
  func published(at path: String, _ status: FileStatus) -> Artifact {
    var copy = self
    copy.location = .path(path)
    copy.name = PathText.split(path).name
    if status.kind == .file {
      copy.size = .known(status.size)
      copy.modifiedAt = status.modifiedAt
    }
    return copy
  }
}

/// What a publication leaves beside the artifact: what it was published from, and names of its own.
struct Leftovers: Sendable {
  let artifact: Artifact
  let id: DownloadID
  let folder: OpenFolder
  let name: String
  let published: FileStatus
  /// Whether the artifact was published before: its old path is not the store's own, and may have been given to another
  /// file since.
  let isPublished: Bool

  /// The name of a copy being made beside the target. The same for every run, so that the next one finds it.
  static func copyName(_ artifact: Artifact, _ id: DownloadID) -> String { name(artifact, id) + ".part" }

  /// The name of a folder that makes room for its successor.
  static func asideName(_ artifact: Artifact, _ id: DownloadID) -> String { name(artifact, id) + ".old" }

  private static func name(_ artifact: Artifact, _ id: DownloadID) -> String {
    // FNV-1a, 128 bits: the id may be longer than a name, and nobody gains anything from a collision.
    var hash: UInt128 = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D
    for byte in id.rawValue.utf8 + [0] + (artifact.path ?? "").utf8 {
      hash = (hash ^ UInt128(byte)) &* 0x0000_0000_0100_0000_0000_0000_0000_013B
    }
    return ".downpipe-" + String(hash, radix: 36)
  }

  /// Removes them.
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

  /// Whether a path leads to the published entry itself, and not to another name of the same file.
  func isTarget(_ path: String) throws(SystemError) -> Bool {
    guard let status = try folder.system.statusIfPresent(Entry(path)), status.isSame(as: published) else {
      return false
    }
    if status.kind == .folder || status.links == 1 { return true }
    let (parent, last) = PathText.split(path)
    // Some file systems do not tell upper case from lower case.
    guard last.lowercased() == name.lowercased() else { return false }
    let here = try folder.system.status(folder.descriptor)
    return try folder.system.status(Entry(parent), following: true).isSame(as: here)
  }
}
