import DownpipeCore
import DownpipePOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

// Companions get their names before the artifact gets its own: where the artifact is, all of them are. What ends in
// between is found by the note, and taken back. An artifact without companions costs no call.

/// A companion of the artifact that is published.
struct CompanionItem: Sendable {
  let suffix: String
  /// The companion as a file of its own, at its old path.
  let file: Artifact
  let item: PublishedItem
}

extension Publication {
  /// The companions that are published with the artifact.
  var companionItems: [CompanionItem] { companions.compactMap(\.self) }

  /// Returns the publication with the companions of its artifact.
  ///
  /// - Parameter copying: Whether they are copied beside the target, as the artifact is.
  /// - Throws: `DownloadError` with `.storage` if one is missing. One that was published before is left where it is then,
  ///   and if it was changed since.
  func withCompanions(copying: Bool) async throws -> Publication {
    guard !artifact.companions.isEmpty else { return self }
    var publication = self
    publication.companions = []
    for (companion, file) in zip(artifact.companions, artifact.companionFiles) {
      let status = try system.statusIfPresent(Entry(companion.path))
      guard let status, status.kind == .file, !isPublished || file.isDescribed(by: status) else {
        guard isPublished else {
          throw DownloadError(
            .storage,
            "the companion to publish, \(companion.path), is missing or no file: remove the download and add it again"
          )
        }
        publication.companions.append(nil)
        continue
      }
      let item: PublishedItem
      if copying {
        item = try await copy(file)
      } else {
        item = PublishedItem(folder: FileSystem.anywhere, name: companion.path, status: status, isCopy: false)
        try await flush(item.entry)
      }
      publication.companions.append(CompanionItem(suffix: companion.suffix, file: file, item: item))
    }
    return publication
  }

  /// Copies a companion to a hidden name in the target's folder.
  private func copy(_ file: Artifact) async throws -> PublishedItem {
    let name = PublishResidue.copyName(file, context.request.id)
    return try await BlockingThreads.run { cancellation in
      let tree = FileTree(system: system, isCancelled: { cancellation.isCancelled })
      let target = folder.entry(name)
      try tree.remove(target)
      try tree.copy(Entry(file.path ?? ""), to: target, durability: durability)
      return PublishedItem(folder: folder.descriptor, name: name, status: try system.status(target), isCopy: true)
    }
  }

  /// The first name of a companion that another file has; `nil` if all are free.
  func takenCompanionName(_ name: String) throws(SystemError) -> String? {
    for companion in companionItems where try companionEntry(companion, name, isOther: true) != nil {
      return name + companion.suffix
    }
    return nil
  }

  /// The entry with a companion's name, if it is another file, or if it is the companion itself.
  private func companionEntry(
    _ companion: CompanionItem, _ name: String, isOther: Bool
  ) throws(SystemError) -> FileStatus? {
    let status = try system.statusIfPresent(folder.entry(name + companion.suffix))
    guard let status, status.isSame(as: companion.item.status) != isOther else { return nil }
    return status
  }

  /// Throws if something else than a file has the name of a companion, which would replace it.
  func checkReplacedCompanions() throws {
    for companion in companionItems {
      guard let other = try companionEntry(companion, name, isOther: true), other.kind != .file else { continue }
      throw exists(
        "is no file, which a companion would replace: remove it, or choose another name", name + companion.suffix)
    }
  }

  /// Gives the companions their names, and calls `body`, which gives the artifact its own. If it returns `nil` or throws, the
  /// companions lose them again; those that have replaced other files, which are gone, keep them until the next call.
  ///
  /// - Returns: `nil`, too, if another program took a name first.
  func withPlacedCompanions<Result: Sendable>(
    as name: String, of item: PublishedItem, replacing: Bool = false, _ body: () async throws -> Result?
  ) async throws -> Result? {
    guard !companionItems.isEmpty else { return try await body() }
    try await note(.atOnce, item, name)
    do {
      for companion in companionItems {
        guard try await place(companion, as: name, of: item, replacing: replacing) else {
          try await withdrawCompanions(from: name)
          return nil
        }
      }
      // After a loss of power they are there if the artifact is.
      try await flushTarget()
      if let result = try await body() { return result }
    } catch {
      if !replacing { try? await withdrawCompanions(from: name) }
      throw error
    }
    try await withdrawCompanions(from: name)
    return nil
  }

  /// Gives a companion its name; false if another program took it first.
  private func place(
    _ companion: CompanionItem, as name: String, of item: PublishedItem, replacing: Bool
  ) async throws -> Bool {
    let (source, target) = (companion.item.entry, folder.entry(name + companion.suffix))
    if try companionEntry(companion, name, isOther: false) != nil { return true }
    if replacing {
      try system.rename(source, to: target)
      return true
    }
    do {
      try system.link(source, to: target)
      return true
    } catch {
      // A network file system that repeats a call finds the result of the first one.
      if error.code == EEXIST { return try companionEntry(companion, name, isOther: false) != nil }
      if !error.saysNoHardLinks { throw error }
    }
    do {
      try system.rename(source, toFree: target)
      return true
    } catch {
      if error.code == EEXIST { return try companionEntry(companion, name, isOther: false) != nil }
      if !error.saysNoExclusiveRename { throw error }
    }
    try await note(.claiming, item, name)
    do {
      try system.close(try system.open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW))
    } catch {
      if error.code == EEXIST { return false }
      throw error
    }
    do {
      try system.rename(source, to: target)
    } catch {
      if try companionEntry(companion, name, isOther: false) == nil { try? system.unlink(target) }
      throw error
    }
    return true
  }

  private func withdrawCompanions(from name: String) async throws {
    for companion in companionItems {
      guard let status = try companionEntry(companion, name, isOther: false) else { continue }
      try residue(of: companion, as: name, status).withdraw()
    }
    try await flushTarget()
  }

  /// Whether the existing files with the names of the companions have their bytes.
  func areCompanionsEqual() async throws -> Bool {
    for companion in companionItems {
      let other = folder.entry(name + companion.suffix)
      guard let status = try system.statusIfPresent(other), status.kind == .file,
        status.size == companion.item.status.size
      else { return false }
      let isEqual = try await BlockingThreads.run { cancellation in
        let tree = FileTree(system: system, isCancelled: { cancellation.isCancelled })
        return try companion.item.isEqual(to: other, tree)
      }
      guard isEqual else { return false }
      try await flush(other)
    }
    return true
  }

  /// Removes the old names of the companions, and hidden copies.
  func removeCompanionResidue(_ name: String) async throws {
    for companion in companionItems {
      let status = try system.statusIfPresent(folder.entry(name + companion.suffix)) ?? companion.item.status
      try await residue(of: companion, as: name, status).remove()
    }
  }

  private func residue(of companion: CompanionItem, as name: String, _ status: FileStatus) -> PublishResidue {
    PublishResidue(
      artifact: companion.file, id: context.request.id, folder: folder, name: name + companion.suffix,
      published: status, isPublished: isPublished)
  }

  /// Removes the hidden copies of companions.
  func removeCompanionCopies() throws(SystemError) {
    for file in artifact.companionFiles {
      try FileTree(system: system).remove(folder.entry(PublishResidue.copyName(file, context.request.id)))
    }
  }

  /// The companions at their new places, as they are there.
  func publishedCompanions(_ name: String) throws(SystemError) -> [Artifact.Companion] {
    var published: [Artifact.Companion] = []
    for companion in companionItems {
      guard let status = try system.statusIfPresent(folder.entry(name + companion.suffix)) else { continue }
      published.append(Artifact.Companion(suffix: companion.suffix, in: folder, beside: name, status))
    }
    return published
  }
}

extension Publisher {
  /// Completes what an earlier run has left of the companions of an artifact that it has published, and returns those that
  /// are there.
  func resumeCompanions(
    of artifact: Artifact, _ note: PublishNote, in folder: OpenFolder, _ name: String, _ isPublished: Bool,
    _ id: DownloadID
  ) async throws -> [Artifact.Companion] {
    var companions: [Artifact.Companion] = []
    for (index, file) in artifact.companionFiles.enumerated() {
      let suffix = artifact.companions[index].suffix
      guard note.companions.indices.contains(index), note.companions[index] != PublishNote.Companion(),
        let status = try system.statusIfPresent(folder.entry(name + suffix)), status.kind == .file,
        note.manner == .reusing || note.describes(status, companion: index)
      else { continue }
      try await PublishResidue(
        artifact: file, id: id, folder: folder, name: name + suffix, published: status, isPublished: isPublished
      ).remove()
      companions.append(Artifact.Companion(suffix: suffix, in: folder, beside: name, status))
    }
    return companions
  }

  /// Takes back what an earlier run has done for an artifact with companions that it has not published.
  func withdrawCompanions(
    of artifact: Artifact, _ note: PublishNote, in folder: OpenFolder, _ name: String, _ id: DownloadID
  ) throws(SystemError) {
    guard !note.companions.isEmpty else { return }
    for (index, file) in artifact.companionFiles.enumerated() {
      let name = name + artifact.companions[index].suffix
      guard let status = try system.statusIfPresent(folder.entry(name)) else { continue }
      if note.describes(status, companion: index) {
        try PublishResidue(
          artifact: file, id: id, folder: folder, name: name, published: status, isPublished: false
        ).withdraw()
      } else if note.manner == .claiming, status.kind == .file, status.size == 0 {
        try system.unlink(folder.entry(name))
      }
    }
    // The name was reserved for companions that may not get theirs now.
    if note.manner == .claiming, let status = try system.statusIfPresent(folder.entry(name)) {
      if status.kind == .file, status.size == 0 { try system.unlink(folder.entry(name)) }
      if status.kind == .folder, artifact.kind == .directory { try? system.removeFolder(folder.entry(name)) }
    }
    try folder.flush(durability)
  }

  /// Whether the names of all companions are free beside a file that is replaced, or are those of its own companions.
  func companionsCanReplace(
    _ earlier: Artifact, in folder: OpenFolder, _ name: String, _ companions: [Artifact.Companion]
  ) throws(SystemError) -> Bool {
    let own = Dictionary(zip(earlier.companions.map(\.suffix), earlier.companionFiles)) { first, _ in first }
    for companion in companions {
      guard let status = try system.statusIfPresent(folder.entry(name + companion.suffix)) else { continue }
      guard own[companion.suffix]?.isDescribed(by: status) == true else { return false }
    }
    return true
  }
}

extension Artifact.Companion {
  /// A companion beside its published artifact.
  fileprivate init(suffix: String, in folder: OpenFolder, beside name: String, _ status: FileStatus) {
    self.init(
      suffix: suffix, path: PathText.join(folder.path, name + suffix), size: .known(status.size),
      modifiedAt: status.modifiedAt)
  }
}
