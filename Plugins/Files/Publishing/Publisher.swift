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

/// Publishes finished artifacts below a root, atomically, and resolves conflicts. `FileStore` and `MoveInto` use it.
///
/// It stores a ``PublishNote`` first, so that a second run after a crash detects whether the first one published the
/// artifact. Nothing is published twice.
struct Publisher: Sendable {
  /// The absolute path of the folder that destinations are relative to. It is created if it does not exist.
  let root: String
  let onConflict: ConflictPolicy
  let durability: Durability
  /// A folder in the root that destinations must not use.
  var reserved: String?
  var system = FileSystem.system
  /// The folders of the store, which keeps some destinations open; `nil` without a store.
  var folders: StoreFolders?

  /// Moves an artifact to its destination.
  ///
  /// - Parameters:
  ///   - held: The file of the partial, if the artifact is the unchanged partial.
  ///   - isPublished: Whether it was published before. Then it must be unchanged, and another file that gets its old
  ///     path later is not removed.
  ///   - directory: A folder below the root, which is created if it does not exist; `nil` for the root.
  ///   - name: The name in the folder. A conflict can give it a number.
  /// - Returns: The artifact with its new location.
  /// - Throws: `DownloadError` with `.alreadyExists`, `.unsafePath`, `.permission`, `.noSpace` or `.storage`.
  func publish(
    _ artifact: Artifact, _ held: HeldFile? = nil, isPublished: Bool = false, directory: String?, name: String,
    in context: ProcessingContext
  ) async throws -> Artifact {
    let components = try destination(directory, name)
    try artifact.checkCompanions()
    for companion in artifact.companions { try PathText.checkName(name + companion.suffix) }
    let note = context.priorNote.flatMap(PublishNote.init)
    if let note, let published = try await resume(note, artifact, isPublished, context.request.id) { return published }
    if isPublished, artifact.kind == .directory, let path = artifact.path,
      PathText.remainder(of: PathText.join(root, components.joined(separator: "/")), below: path) != nil
    {
      throw DownloadError(.unsafePath, "the destination is inside of the folder that is moved: choose another one")
    }
    if let held, case .known(let size) = artifact.size, size != held.status.size {
      throw DownloadError(
        .contentChanged,
        "the partial has \(held.status.size) bytes instead of \(size): another program changed it, start the download again"
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
        throw DownloadError(.storage, "\(root) was removed: start the download again")
      }
      // The artifact that is replaced may have a name with a number.
      let earlier = try context.replaces.flatMap { try nameOfEarlier($0, in: folder, for: name, artifact) }
      let publication = Publication(
        publisher: self, artifact: artifact, held: held, folder: folder, name: earlier ?? name,
        hasNameOfEarlier: earlier != nil, components: components.dropLast(),
        claimed: note.flatMap { claim(in: $0, below: components.dropLast()) }, isPublished: isPublished,
        context: context)
      do {
        return try await publication.run()
      } catch let error as SystemError {
        // Removing the last file of another download has removed the folder.
        if error.code == ENOENT, attempt < Self.maximumAttempts, folder.isGone { continue }
        throw error.downloadError("publish", PathText.join(folder.path, name))
      }
    }
    throw DownloadError(.storage, "other programs keep removing \(root): start the download again")
  }

  /// How often the folder may be removed during publishing before it fails.
  private static let maximumAttempts = 100

  /// The name of the artifact that is replaced, if it is unchanged in the folder, under the requested name or one with a
  /// number; otherwise `nil`.
  private func nameOfEarlier(
    _ earlier: Artifact, in folder: OpenFolder, for name: String, _ artifact: Artifact
  ) throws -> String? {
    let kind = artifact.kind
    // Only an unchanged file is known to be the download's own.
    guard let path = earlier.path, earlier.kind == kind, kind == .file, earlier.modifiedAt != nil, !earlier.isReused
    else { return nil }
    let (parent, last) = PathText.split(path)
    guard last == name || NumberedName.isNumbered(last, from: name, kind: kind) else { return nil }
    let here: FileStatus
    do throws(SystemError) {
      guard let status = try system.statusIfPresent(folder.entry(last)), earlier.isDescribed(by: status),
        try companionsCanReplace(earlier, in: folder, last, artifact.companions)
      else { return nil }
      here = try system.status(Entry(parent), following: true)
    } catch {
      if error.isAbsence { return nil }
      throw error.downloadError("read the status of", path)
    }
    return try reporting("read the status of", parent) { () throws(SystemError) in
      try system.status(folder.descriptor).isSame(as: here)
    } ? last : nil
  }

  private func open(_ components: ArraySlice<String>) throws -> OpenFolder? {
    if let folders { return try folders.destination(components) }
    return try OpenFolder.open(
      root: root, components: Array(components), creating: true, durability: durability, system: system)
  }

  /// The existing file with a name; `nil` if there is none, or it has another size.
  ///
  /// - Throws: `DownloadError` as ``publish(_:directory:name:in:)`` does.
  func existing(directory: String?, name: String, size: Int64?) throws -> Artifact? {
    let components = try destination(directory, name)
    guard
      let folder = try OpenFolder.open(
        root: root, components: components.dropLast(), creating: false, durability: durability, system: system)
    else { return nil }
    let path = PathText.join(folder.path, name)
    let status = try reporting("read the status of", path) { () throws(SystemError) in
      try system.statusIfPresent(folder.entry(name))
    }
    guard let status, status.kind == .file, size == nil || size == status.size else { return nil }
    var artifact = Artifact(location: .path(path), name: name, size: .known(status.size))
    artifact.isReused = true
    return artifact
  }

  /// Checks the folder and the name of a destination.
  ///
  /// - Throws: `DownloadError` with `.unsafePath` if nothing can be published there.
  func check(_ destination: DownloadRequest.Destination) throws(DownloadError) {
    _ = try self.destination(destination.directory, destination.name ?? "file")
  }

  /// The components of the destination, the name last.
  private func destination(_ directory: String?, _ name: String) throws(DownloadError) -> [String] {
    try PathText.checkName(name)
    let components =
      try (directory.map { text throws(DownloadError) in try PathText.components(of: text) } ?? []) + [name]
    // Some file systems do not distinguish `.Downpipe` and `.downpipe`.
    if let reserved, components[0].lowercased() == reserved {
      throw DownloadError(
        .unsafePath, "“\(reserved)” in the root contains the unfinished downloads: choose another destination")
    }
    return components
  }

  /// The artifact, if a run before the crash published it. Completes what that run left unfinished.
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
      guard let status = try system.statusIfPresent(folder.entry(name)), note.describes(status) else {
        try withdrawCompanions(of: artifact, note, in: folder, name, id)
        return nil
      }
      // The new name must be on the disk before the old one is removed.
      try await BlockingThreads.run { [durability] _ in try folder.flush(durability) }
      let residue = PublishResidue(
        artifact: artifact, id: id, folder: folder, name: name, published: status, isPublished: isPublished)
      try await residue.remove()
      if let path = artifact.path {
        try await BlockingThreads.run { [durability, system] _ in
          try OpenFolder.flush(above: path, durability, system: system)
        }
      }
      var published = artifact.published(at: path, status)
      published.companions = try await resumeCompanions(of: artifact, note, in: folder, name, isPublished, id)
      published.isReused = note.manner == .reusing
      // Another worker may have published it, into a folder that both see.
      published.identity = nil
      return published
    } catch let error as SystemError {
      throw error.downloadError("publish", path)
    }
  }

  /// The name that a run before the crash may have reserved with an empty file or folder.
  private func claim(in note: PublishNote, below folders: [String]) -> String? {
    guard note.manner == .claiming, note.companions.isEmpty, let components = try? PathText.components(of: note.target),
      components.dropLast().elementsEqual(folders)
    else { return nil }
    return components.last
  }
}

extension DownloadError {
  /// Whether a folder was removed while another one was created in it.
  fileprivate var saysAbsence: Bool { (cause as? SystemError)?.code == ENOENT }
}

extension Artifact {
  /// The artifact with its final location, size and modification time.
  func published(at path: String, _ status: FileStatus) -> Artifact {
    var copy = self
    copy.location = .path(path)
    copy.name = PathText.split(path).name
    if status.kind == .file {
      copy.size = .known(status.size)
      copy.modifiedAt = status.modifiedAt
      copy.identity = Identity(status)
    }
    return copy
  }
}
