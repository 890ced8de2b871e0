import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// One artifact on its way to one folder.
struct Publication: Sendable {
  let publisher: Publisher
  let artifact: Artifact
  /// The partial whose bytes it has, if no step has changed them.
  let held: HeldFile?
  let folder: OpenFolder
  /// The name it should get.
  let name: String
  /// The folders between root and target.
  let components: [String]
  /// The name that an earlier run may have taken with something empty.
  let claimed: String?
  let context: ProcessingContext

  /// How often others may take the chosen name first.
  private static let maximumRaces = 100

  /// What has its final name.
  private struct Settled: Sendable {
    let artifact: Artifact
    /// Whether the item's old name is still there, and has to go.
    let leavesOldName: Bool
  }

  /// How a name was taken.
  private enum Taking: Sendable {
    case renamed, linked
  }

  private var system: FileSystem { publisher.system }
  private var durability: Durability { publisher.durability }
  private var aside: Entry { folder.entry(Leftovers.asideName(artifact, context.request.id)) }
  private var hidden: Entry { folder.entry(Leftovers.copyName(artifact, context.request.id)) }

  /// Publishes.
  func run() async throws -> Artifact {
    var item = try await stage()
    var occupant: FileStatus?
    if item.isOpen {
      // Between its link and its rename, an earlier run may have died.
      if context.wasInterrupted { try FileTree(system: system).remove(hidden) }
    } else {
      occupant = try system.statusIfPresent(folder.entry(name))
    }
    if !item.isCopy {
      if let occupant, occupant.isSame(as: item.status) { return try await acknowledge(occupant, for: item) }
      try await flushData(of: item)
    }
    do {
      let final: Settled
      do {
        final = try await settle(item, occupant)
      } catch let error as SystemError where error.needsOtherItem(than: item) {
        // Another file system: copy beside the target, then rename there. No links: rename what has a name.
        item = try await error.code == EXDEV ? copy() : named()
        final = try await settle(item, try system.statusIfPresent(folder.entry(name)))
      }
      // With power loss in mind: the new name first, then the loss of the old one.
      if item.isCopy, final.leavesOldName { try removeOldName(of: item) }
      try await flushTarget()
      if !item.isCopy, final.leavesOldName { try removeOldName(of: item) }
      if item.isCopy, let path = artifact.path {
        try await Blocking.run { _ in try FileTree(system: system).remove(Entry(path)) }
      }
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

  // MARK: What is to appear

  private func stage() async throws -> PublishedItem {
    if let held {
      // A file that had a name and lost it, since another program has put its own there, cannot be linked any more.
      if held.name != nil, held.status.links == 0 { return try await copy() }
      return PublishedItem(held: held)
    }
    guard let path = artifact.path else { return try await copy() }
    guard let status = try system.statusIfPresent(Entry(path)), !isOnlyHeld(status) else {
      throw DownloadError(
        .storage, "\(path), which was to be published, is gone: remove the download and start it again")
    }
    guard status.kind == (artifact.kind == .file ? .file : .folder) else {
      throw DownloadError(
        .storage, "\(path), which was to be published, is not a \(artifact.kind == .file ? "file" : "folder")")
    }
    return PublishedItem(folder: FileSystem.anywhere, name: path, status: status, isCopy: false)
  }

  /// The open file under its own name, where it still has that; otherwise a copy.
  private func named() async throws -> PublishedItem {
    guard let held, let path = held.name,
      let status = try system.statusIfPresent(Entry(path)), status.isSame(as: held.status)
    else { return try await copy() }
    return PublishedItem(folder: FileSystem.anywhere, name: path, status: held.status, isCopy: false)
  }

  /// Whether there is nothing at the artifact's path but the empty file that holds its name.
  private func isOnlyHeld(_ status: FileStatus) -> Bool {
    guard status.kind == .file, status.size == 0, case .known(let size) = artifact.size else { return false }
    return size > 0
  }

  /// Copies the artifact to a hidden name in the target's folder.
  private func copy() async throws -> PublishedItem {
    let name = Leftovers.copyName(artifact, context.request.id)
    return try await Blocking.run { cancellation in
      let tree = FileTree(system: system, isCancelled: { cancellation.isCancelled })
      let target = folder.entry(name)
      try tree.remove(target)
      do {
        switch artifact.location {
        case .path where held != nil:
          if let held { try tree.copy(held.descriptor, to: target, durability: durability, held.status) }
        case .path(let path): try tree.copy(Entry(path), to: target, durability: durability)
        case .memory(let bytes): try tree.write(bytes, to: target, durability: durability)
        }
        let status = try system.status(target)
        return PublishedItem(folder: folder.descriptor, name: name, status: status, isCopy: true)
      } catch {
        try? tree.remove(target)
        throw error
      }
    }
  }

  /// The target is the very file: it lies there already, or has this name as a second one.
  private func acknowledge(_ occupant: FileStatus, for item: PublishedItem) async throws -> Artifact {
    let leftovers = Leftovers(
      artifact: artifact, id: context.request.id, folder: folder, name: name, published: occupant)
    if let path = artifact.path, try !leftovers.isTarget(path) { try await note(.atOnce, item, name) }
    try await flushData(of: item)
    try await flushTarget()
    try await leftovers.remove()
    try await flushSource()
    return artifact.published(at: PathText.join(folder.path, name), occupant)
  }

  // MARK: Conflicts

  /// Gives the item its name, which `occupant` has at the moment; an open file takes its chance first.
  private func settle(_ item: PublishedItem, _ occupant: FileStatus?) async throws -> Settled {
    if let claimed, try isPlaceholder(claimed, for: item) {
      try await note(.claiming, item, claimed)
      if try fill(claimed, with: item) { return result(claimed, item.status, .renamed) }
    }
    var occupant = occupant
    for _ in 0..<Self.maximumRaces {
      var candidate = name
      if let occupant, try await isEarlierResult(name, occupant, for: item) { return result(name, occupant, .linked) }
      switch (publisher.onConflict, occupant) {
      case (.replace, nil) where item.isOpen:
        break
      case (.replace, let occupant):
        try await replace(occupant, by: item)
        return result(name, item.status, item.isOpen ? .linked : .renamed)
      case (_, nil):
        break
      case (.fail, _):
        throw exists("the conflict policy is to fail: remove it, or choose another name or policy")
      case (.reuse, let occupant?):
        if try await reuse(occupant, for: item) { return result(name, occupant, .linked) }
        candidate = try freeName()
      case (.keepBoth, _):
        let (last, free) = try numberedNames()
        if let last, let status = try system.statusIfPresent(folder.entry(last)),
          try await isEarlierResult(last, status, for: item)
        {
          return result(last, status, .linked)
        }
        candidate = free
      }
      if let taking = try await take(candidate, for: item) { return result(candidate, item.status, taking) }
      // The name is taken, for longer or just now.
      occupant = try system.statusIfPresent(folder.entry(name))
    }
    throw DownloadError(
      .storage,
      "others keep taking the names in \(folder.path) first: start the download again, or choose another folder")
  }

  /// Whether a file is what an earlier run, which ended with its process, has published without a note.
  private func isEarlierResult(_ name: String, _ status: FileStatus, for item: PublishedItem) async throws -> Bool {
    guard item.isOpen, context.wasInterrupted else { return false }
    return try await isEqual(item, to: name, status)
  }

  private func freeName() throws(SystemError) -> String { try numberedNames().free }

  /// The last name with a number that is taken, and the next one.
  private func numberedNames() throws(SystemError) -> (last: String?, free: String) {
    let number = try NumberedName.firstFree { number throws(SystemError) in
      let name = NumberedName.make(name, number, kind: artifact.kind)
      return try system.statusIfPresent(folder.entry(name)) != nil
    }
    let last = number > 1 ? NumberedName.make(name, number - 1, kind: artifact.kind) : nil
    return (last, NumberedName.make(name, number, kind: artifact.kind))
  }

  /// Takes a name that nobody has; `nil` when somebody was faster.
  private func take(_ candidate: String, for item: PublishedItem) async throws -> Taking? {
    if item.status.kind == .file {
      try await note(.atOnce, item, candidate)
      do {
        // Unlike rename, link never takes the place of another file.
        try item.link(to: folder.entry(candidate), system)
        return .linked
      } catch {
        if error.code == EEXIST { return nil }
        // An open file has to be named first.
        if item.isOpen || !error.saysNoHardLinks { throw error }
      }
    }
    try await note(.claiming, item, candidate)
    do {
      if item.status.kind == .folder {
        try system.makeFolder(folder.entry(candidate))
      } else {
        try system.close(try system.open(folder.entry(candidate), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW))
      }
    } catch {
      if error.code == EEXIST { return nil }
      throw error
    }
    do {
      return try fill(candidate, with: item) ? .renamed : nil
    } catch {
      try? item.status.kind == .folder
        ? system.removeFolder(folder.entry(candidate)) : system.unlink(folder.entry(candidate))
      throw error
    }
  }

  /// Puts the item in the place of the empty file or folder that holds its name; `false` when
  /// somebody has put something into the folder.
  private func fill(_ name: String, with item: PublishedItem) throws(SystemError) -> Bool {
    do {
      try item.rename(to: folder.entry(name), by: hidden, system)
      return true
    } catch {
      if item.status.kind == .folder, error.code == ENOTEMPTY || error.code == EEXIST { return false }
      throw error
    }
  }

  private func isPlaceholder(_ name: String, for item: PublishedItem) throws(SystemError) -> Bool {
    guard let status = try system.statusIfPresent(folder.entry(name)), status.kind == item.status.kind else {
      return false
    }
    // Renaming a folder onto another one fails unless that is empty.
    return status.kind == .folder || status.size == 0
  }

  private func replace(_ occupant: FileStatus?, by item: PublishedItem) async throws {
    // Renaming would remove whatever has the name: a pipe that another program reads, a link that was set on purpose.
    let obstacle: String? =
      switch (item.status.kind, occupant?.kind) {
      case (_, nil), (.file, .file), (.folder, .folder): nil
      case (_, .folder): "a folder"
      case (_, .file): "a file"
      case (_, .link): "a symbolic link"
      case (_, .other): "a pipe, a socket or a device"
      }
    if let obstacle {
      let what = item.status.kind == .folder ? "folder" : "file"
      throw exists("\(obstacle) is in the place of the \(what): remove it, or choose another name")
    }
    try await note(.atOnce, item, name)
    let target = folder.entry(name)
    if item.status.kind == .folder, occupant != nil {
      try displace(target, by: item)
    } else {
      try item.rename(to: target, by: hidden, system)
    }
    // A run that died between its two renames has left the old folder aside.
    if item.status.kind == .folder, context.priorNote != nil { try FileTree(system: system).remove(aside) }
  }

  /// Puts a folder in the place of another one. No call does that at once unless the old one is empty, so it
  /// steps aside, under a name that the next run knows.
  private func displace(_ target: Entry, by item: PublishedItem) throws(SystemError) {
    do throws(SystemError) {
      return try item.rename(to: target, by: hidden, system)
    } catch {
      if error.code != ENOTEMPTY && error.code != EEXIST { throw error }
    }
    let tree = FileTree(system: system)
    try tree.remove(aside)
    try system.rename(target, to: aside)
    do throws(SystemError) {
      try item.rename(to: target, by: hidden, system)
    } catch {
      try? system.rename(aside, to: target)
      throw error
    }
    try tree.remove(aside)
  }

  /// Whether the file that is there holds the same bytes; then the new one is dropped.
  private func reuse(_ occupant: FileStatus, for item: PublishedItem) async throws -> Bool {
    guard try await isEqual(item, to: name, occupant) else { return false }
    try await note(.atOnce, occupant, name)
    // Its writer may not have waited for the disk.
    try await flush(folder.entry(name))
    return true
  }

  private func isEqual(_ item: PublishedItem, to name: String, _ status: FileStatus) async throws -> Bool {
    guard status.kind == .file, item.status.kind == .file, status.size == item.status.size else { return false }
    return try await Blocking.run { cancellation in
      let tree = FileTree(system: system, isCancelled: { cancellation.isCancelled })
      return try item.isEqual(to: folder.entry(name), tree)
    }
  }

  // MARK: -

  private func note(_ manner: PublishNote.Manner, _ item: PublishedItem, _ name: String) async throws {
    // A file that had no name proves by its bytes that it was published.
    if item.isOpen, item.oldName == nil, durability == .process, manner == .atOnce { return }
    try await note(manner, item.status, name)
  }

  private func note(_ manner: PublishNote.Manner, _ status: FileStatus, _ name: String) async throws {
    let target = (components + [name]).joined(separator: "/")
    try await context.note(PublishNote(manner: manner, status: status, target: target).text)
  }

  private func result(_ name: String, _ status: FileStatus, _ taking: Taking) -> Settled {
    Settled(
      artifact: artifact.published(at: PathText.join(folder.path, name), status), leavesOldName: taking == .linked)
  }

  private func exists(_ reason: String) -> DownloadError {
    DownloadError(.alreadyExists, "\(PathText.join(folder.path, name)) exists already, and \(reason)")
  }

  /// Before anything has its name: what is in it.
  private func flushData(of item: PublishedItem) async throws {
    guard durability == .power else { return }
    guard let file = item.held?.descriptor else { return try await flush(item.entry) }
    try await Blocking.run { _ in try system.flush(file) }
  }

  private func flush(_ entry: Entry) async throws {
    guard durability == .power else { return }
    try await Blocking.run { [folder] _ in
      try withExtendedLifetime(folder) { try FileTree(system: system).flush(entry) }
    }
  }

  private func flushTarget() async throws {
    guard durability == .power else { return }
    try await Blocking.run { _ in try folder.flush(durability) }
  }

  private func flushSource() async throws {
    guard durability == .power, let path = artifact.path else { return }
    try await Blocking.run { _ in try OpenFolder.flush(above: path, durability, system: system) }
  }
}
