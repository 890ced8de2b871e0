import DownpipeCore
import DownpipePOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The publication of one artifact in one folder.
struct Publication: Sendable {
  let publisher: Publisher
  let artifact: Artifact
  /// The file of the partial, if the artifact is the unchanged partial.
  let held: HeldFile?
  let folder: OpenFolder
  /// The requested name.
  let name: String
  /// Whether the name is that of the artifact which this one replaces.
  let hasNameOfEarlier: Bool
  /// The folders between the root and the target.
  let components: [String]
  /// The name that an earlier run may have reserved with an empty file or folder.
  let claimed: String?
  /// Whether the artifact was published before and is moved now.
  let isPublished: Bool
  let context: ProcessingContext
  /// The companions, in the artifact's order; `nil` for one that is left where it is.
  var companions: [CompanionItem?] = []

  /// How often other programs may take the chosen name first before publishing fails.
  static let maximumRaces = 100

  /// The result of ``settle(_:_:)``.
  struct Settled: Sendable {
    var artifact: Artifact
    /// Whether the item's old name still exists and must be removed.
    let leavesOldName: Bool
  }

  /// How the item got its name.
  enum Taking: Sendable {
    case renamed, linked
  }

  var system: FileSystem { publisher.system }
  var durability: Durability { publisher.durability }
  var aside: Entry { folder.entry(PublishResidue.asideName(artifact, context.request.id)) }
  var hidden: Entry { folder.entry(PublishResidue.copyName(artifact, context.request.id)) }

  func run() async throws -> Artifact {
    // An earlier run may have ended between its link and its rename.
    if context.wasInterrupted || context.priorNote != nil { try FileTree(system: system).remove(hidden) }
    let item = try await stage()
    do {
      return try await withCompanions(copying: item.isCopy).publish(item)
    } catch {
      try? removeCompanionCopies()
      if item.isCopy, let name = item.oldName { try? FileTree(system: system).remove(name) }
      throw error
    }
  }

  private func publish(_ staged: PublishedItem) async throws -> Artifact {
    var (item, publication) = (staged, self)
    var occupant: FileStatus?
    if !item.isOpen || !companionItems.isEmpty {
      occupant = try system.statusIfPresent(folder.entry(name))
    }
    if !item.isCopy {
      if let occupant, occupant.isSame(as: item.status) { return try await acknowledge(occupant, for: item) }
      if try occupant != nil || takenCompanionName(name) != nil, let path = artifact.path, try hasNumberedName(path) {
        return artifact.published(at: path, item.status)
      }
      try await flushData(of: item)
    }
    do {
      let final: Settled
      do {
        final = try await settle(item, occupant)
      } catch let error as SystemError where error.needsOtherItem(than: item) {
        // On another file system, copy beside the target and rename there. Without links, rename the entry.
        item = try await error.code == EXDEV ? copy() : named()
        if item.isCopy { publication = try await withCompanions(copying: true) }
        final = try await publication.settle(item, try system.statusIfPresent(folder.entry(name)))
      }
      // A loss of power must not lose both names: the new one is flushed before the old one is removed.
      if item.isCopy, final.leavesOldName { try removeOldName(of: item) }
      try await flushTarget()
      if !item.isCopy, final.leavesOldName { try removeOldName(of: item) }
      if item.isCopy, let path = artifact.path {
        try await BlockingThreads.run { _ in try FileTree(system: system).remove(Entry(path)) }
      }
      try await publication.removeCompanionResidue(final.artifact.name)
      if item.oldName != nil { try await flushSource() }
      return final.artifact
    } catch {
      if item.isCopy, let name = item.oldName { try? FileTree(system: system).remove(name) }
      throw error
    }
  }

  private func removeOldName(of item: PublishedItem) throws(SystemError) {
    guard let name = item.oldName else { return }
    do { try system.unlink(name) } catch { if !item.isOpen || !error.isAbsence { throw error } }
  }

  // MARK: The item

  private func stage() async throws -> PublishedItem {
    if let held {
      // A file whose name another program has replaced has no link left, so it cannot be linked again.
      if held.name != nil, held.status.links == 0 { return try await copy() }
      return PublishedItem(held: held)
    }
    guard let path = artifact.path else { return try await copy() }
    guard let status = try system.statusIfPresent(Entry(path)), !isOnlyHeld(status) else {
      throw DownloadError(
        .storage, "the file to publish, \(path), was removed: remove the download and add it again")
    }
    guard status.kind == (artifact.kind == .file ? .file : .folder) else {
      throw DownloadError(
        .storage,
        "\(path) is not the \(artifact.kind == .file ? "file" : "folder") to publish: remove the download and add it again"
      )
    }
    if isPublished, !artifact.isDescribed(by: status) {
      throw DownloadError(.storage, "\(path) was changed or replaced since it was published: move it yourself")
    }
    return PublishedItem(folder: FileSystem.anywhere, name: path, status: status, isCopy: false)
  }

  /// Whether a published artifact has the name already, with a number from an earlier conflict.
  private func hasNumberedName(_ path: String) throws(SystemError) -> Bool {
    guard isPublished, publisher.onConflict == .keepBoth else { return false }
    let (parent, last) = PathText.split(path)
    guard NumberedName.isNumbered(last, from: name, kind: artifact.kind) else { return false }
    return try system.status(Entry(parent), following: true).isSame(as: system.status(folder.descriptor))
  }

  /// The open file by its own name, if it still has that name; otherwise a copy.
  private func named() async throws -> PublishedItem {
    guard let held, let path = held.name,
      let status = try system.statusIfPresent(Entry(path)), status.isSame(as: held.status)
    else { return try await copy() }
    return PublishedItem(folder: FileSystem.anywhere, name: path, status: held.status, isCopy: false)
  }

  /// Whether the entry at the artifact's path is only an empty file that reserves its name.
  private func isOnlyHeld(_ status: FileStatus) -> Bool {
    guard status.kind == .file, status.size == 0, case .known(let size) = artifact.size else { return false }
    return size > 0
  }

  /// Copies the artifact to a hidden name in the target's folder.
  private func copy() async throws -> PublishedItem {
    let name = PublishResidue.copyName(artifact, context.request.id)
    return try await BlockingThreads.run { cancellation in
      let tree = FileTree(system: system, isCancelled: { cancellation.isCancelled })
      let target = folder.entry(name)
      try tree.remove(target)
      do {
        switch artifact.location {
        case .path where held != nil:
          if let held { try tree.copy(held.file, to: target, durability: durability, held.status) }
        case .path(let path): try tree.copy(Entry(path), to: target, durability: durability)
        case .memory(let bytes): try tree.write(bytes, to: target, durability: durability)
        case .remote(let url): throw DownloadError.elsewhere(url)
        }
        let status = try system.status(target)
        return PublishedItem(folder: folder.descriptor, name: name, status: status, isCopy: true)
      } catch {
        try? tree.remove(target)
        throw error
      }
    }
  }

  /// Completes the publication of an item that has the target's name already.
  private func acknowledge(_ occupant: FileStatus, for item: PublishedItem) async throws -> Artifact {
    let residue = PublishResidue(
      artifact: artifact, id: context.request.id, folder: folder, name: name, published: occupant,
      isPublished: isPublished)
    if let path = artifact.path, try !residue.isTarget(path) { try await note(.atOnce, item, name) }
    try await flushData(of: item)
    guard try await withPlacedCompanions(as: name, of: item, { true }) != nil else {
      throw exists("a companion cannot have its name: remove it, or choose another name", try takenCompanionName(name))
    }
    try await flushTarget()
    try await residue.remove()
    try await removeCompanionResidue(name)
    try await flushSource()
    return try published(name, occupant)
  }

  // MARK: -

  func note(_ manner: PublishNote.Manner, _ item: PublishedItem, _ name: String) async throws {
    // A file without a name needs no note: after a crash it is recognised by its bytes.
    if item.isOpen, item.oldName == nil, durability == .process, manner == .atOnce, companions.isEmpty { return }
    try await note(manner, item.status, name)
  }

  func note(_ manner: PublishNote.Manner, _ status: FileStatus, _ name: String) async throws {
    let target = (components + [name]).joined(separator: "/")
    let companions = companions.map { companion in
      companion.map { PublishNote.Companion(inode: $0.item.status.inode, size: $0.item.status.size) } ?? .init()
    }
    try await context.note(
      PublishNote(manner: manner, status: status, target: target, companions: companions).text)
  }

  func result(_ name: String, _ status: FileStatus, _ taking: Taking) throws(SystemError) -> Settled {
    Settled(artifact: try published(name, status), leavesOldName: taking == .linked)
  }

  private func published(_ name: String, _ status: FileStatus) throws(SystemError) -> Artifact {
    var published = artifact.published(at: PathText.join(folder.path, name), status)
    if !artifact.companions.isEmpty { published.companions = try publishedCompanions(name) }
    return published
  }

  func exists(_ reason: String, _ taken: String? = nil) -> DownloadError {
    DownloadError(.alreadyExists, "\(PathText.join(folder.path, taken ?? name)) exists already, and \(reason)")
  }

  /// Flushes the contents of the item before it gets its name.
  private func flushData(of item: PublishedItem) async throws {
    guard durability == .power else { return }
    guard let file = item.held?.file else { return try await flush(item.entry) }
    try await BlockingThreads.run { _ in try file.flush() }
  }

  func flush(_ entry: Entry) async throws {
    guard durability == .power else { return }
    try await BlockingThreads.run { [folder] _ in
      try withExtendedLifetime(folder) { try FileTree(system: system).flush(entry) }
    }
  }

  func flushTarget() async throws {
    guard durability == .power else { return }
    try await BlockingThreads.run { _ in try folder.flush(durability) }
  }

  private func flushSource() async throws {
    guard durability == .power, let path = artifact.path else { return }
    try await BlockingThreads.run { _ in try OpenFolder.flush(above: path, durability, system: system) }
  }
}
