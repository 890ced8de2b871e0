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

  /// What is to appear: the artifact itself, or its copy beside the target.
  private struct Item: Sendable {
    let folder: CInt
    let name: String
    let status: FileStatus
    let isCopy: Bool

    var entry: Entry { Entry(name, in: folder) }
  }

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

  /// Publishes.
  func run() async throws -> Artifact {
    var item = try await stage()
    let occupant = try system.statusIfPresent(folder.entry(name))
    if !item.isCopy {
      if let occupant, occupant.isSame(as: item.status) { return try await acknowledge(occupant, for: item) }
      try await flushData(of: item.entry)
    }
    do {
      let final: Settled
      do {
        final = try await settle(item, occupant)
      } catch let error as SystemError where error.code == EXDEV && !item.isCopy {
        // The destination is on another file system: copy beside the target, then rename there.
        item = try await copy()
        final = try await settle(item, try system.statusIfPresent(folder.entry(name)))
      }
      // With power loss in mind: the new name first, then the loss of the old one.
      if item.isCopy, final.leavesOldName { try system.unlink(item.entry) }
      try await flushTarget()
      if !item.isCopy, final.leavesOldName { try system.unlink(item.entry) }
      if item.isCopy, let path = artifact.path {
        try await Blocking.run { _ in try FileTree(system: system).remove(Entry(path)) }
      }
      try await flushSource()
      return final.artifact
    } catch {
      if item.isCopy { try? FileTree(system: system).remove(item.entry) }
      throw error
    }
  }

  // MARK: What is to appear

  private func stage() async throws -> Item {
    guard let path = artifact.path else { return try await copy() }
    guard let status = try system.statusIfPresent(Entry(path)), !isOnlyHeld(status) else {
      throw DownloadError(
        .storage, "\(path), which was to be published, is gone: remove the download and start it again")
    }
    guard status.kind == (artifact.kind == .file ? .file : .folder) else {
      throw DownloadError(
        .storage, "\(path), which was to be published, is not a \(artifact.kind == .file ? "file" : "folder")")
    }
    return Item(folder: FileSystem.anywhere, name: path, status: status, isCopy: false)
  }

  /// Whether there is nothing at the artifact's path but the empty file that holds its name.
  private func isOnlyHeld(_ status: FileStatus) -> Bool {
    guard status.kind == .file, status.size == 0, case .known(let size) = artifact.size else { return false }
    return size > 0
  }

  /// Copies the artifact to a hidden name in the target's folder.
  private func copy() async throws -> Item {
    let name = Leftovers.copyName(artifact, context.request.id)
    return try await Blocking.run { cancellation in
      let tree = FileTree(system: system, isCancelled: { cancellation.isCancelled })
      let target = folder.entry(name)
      try tree.remove(target)
      do {
        switch artifact.location {
        case .path(let path): try tree.copy(Entry(path), to: target, durability: durability)
        case .memory(let bytes): try tree.write(bytes, to: target, durability: durability)
        }
        return Item(folder: folder.descriptor, name: name, status: try system.status(target), isCopy: true)
      } catch {
        try? tree.remove(target)
        throw error
      }
    }
  }

  /// The target is the very file: it lies there already, or has this name as a second one.
  private func acknowledge(_ occupant: FileStatus, for item: Item) async throws -> Artifact {
    let leftovers = Leftovers(
      artifact: artifact, id: context.request.id, folder: folder, name: name, published: occupant)
    if try !leftovers.isTarget(item.name) { try await note(.atOnce, item.status, name) }
    try await flushData(of: folder.entry(name))
    try await flushTarget()
    try await leftovers.remove()
    try await flushSource()
    return artifact.published(at: PathText.join(folder.path, name), occupant)
  }

  // MARK: Conflicts

  /// Gives the item its name, which `occupant` has at the moment.
  private func settle(_ item: Item, _ occupant: FileStatus?) async throws -> Settled {
    if let claimed, try isPlaceholder(claimed, for: item) {
      try await note(.claiming, item.status, claimed)
      if try fill(claimed, with: item) { return result(claimed, item.status, .renamed) }
    }
    var occupant = occupant
    for _ in 0..<Self.maximumRaces {
      var candidate = name
      switch (publisher.onConflict, occupant) {
      case (.replace, let occupant):
        try await replace(occupant, by: item)
        return result(name, item.status, .renamed)
      case (_, nil):
        break
      case (.fail, _):
        throw exists("the conflict policy is to fail: remove it, or choose another name or policy")
      case (.reuse, let occupant?):
        if try await reuse(occupant, for: item) { return result(name, occupant, .linked) }
        candidate = try freeName()
      case (.keepBoth, _):
        candidate = try freeName()
      }
      if let taking = try await take(candidate, for: item) { return result(candidate, item.status, taking) }
      // Somebody was faster.
      occupant = try system.statusIfPresent(folder.entry(name))
    }
    throw DownloadError(
      .storage,
      "others keep taking the names in \(folder.path) first: start the download again, or choose another folder")
  }

  private func freeName() throws(SystemError) -> String {
    let number = try NumberedName.firstFree { number throws(SystemError) in
      let name = NumberedName.make(name, number, kind: artifact.kind)
      return try system.statusIfPresent(folder.entry(name)) != nil
    }
    return NumberedName.make(name, number, kind: artifact.kind)
  }

  /// Takes a name that nobody has; `nil` when somebody was faster.
  private func take(_ candidate: String, for item: Item) async throws -> Taking? {
    if item.status.kind == .file {
      try await note(.atOnce, item.status, candidate)
      do {
        // Unlike rename, link never takes the place of another file.
        try system.link(item.entry, to: folder.entry(candidate))
        return .linked
      } catch {
        switch error.code {
        case EEXIST: return nil
        case EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS, EMLINK: break  // no hard links here
        default: throw error
        }
      }
    }
    try await note(.claiming, item.status, candidate)
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
  private func fill(_ name: String, with item: Item) throws(SystemError) -> Bool {
    do {
      try system.rename(item.entry, to: folder.entry(name))
      return true
    } catch {
      if item.status.kind == .folder, error.code == ENOTEMPTY || error.code == EEXIST { return false }
      throw error
    }
  }

  private func isPlaceholder(_ name: String, for item: Item) throws(SystemError) -> Bool {
    guard let status = try system.statusIfPresent(folder.entry(name)), status.kind == item.status.kind else {
      return false
    }
    // Renaming a folder onto another one fails unless that is empty.
    return status.kind == .folder || status.size == 0
  }

  private func replace(_ occupant: FileStatus?, by item: Item) async throws {
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
    try await note(.atOnce, item.status, name)
    let target = folder.entry(name)
    if item.status.kind == .folder, occupant != nil {
      try displace(target, by: item)
    } else {
      try system.rename(item.entry, to: target)
    }
    // A run that died between its two renames has left the old folder aside.
    if item.status.kind == .folder, context.priorNote != nil { try FileTree(system: system).remove(aside) }
  }

  /// Puts a folder in the place of another one. No call does that at once unless the old one is empty, so it
  /// steps aside, under a name that the next run knows.
  private func displace(_ target: Entry, by item: Item) throws(SystemError) {
    do throws(SystemError) {
      return try system.rename(item.entry, to: target)
    } catch {
      if error.code != ENOTEMPTY && error.code != EEXIST { throw error }
    }
    let tree = FileTree(system: system)
    try tree.remove(aside)
    try system.rename(target, to: aside)
    do throws(SystemError) {
      try system.rename(item.entry, to: target)
    } catch {
      try? system.rename(aside, to: target)
      throw error
    }
    try tree.remove(aside)
  }

  /// Whether the file that is there holds the same bytes; then the new one is dropped.
  private func reuse(_ occupant: FileStatus, for item: Item) async throws -> Bool {
    guard occupant.kind == .file, item.status.kind == .file, occupant.size == item.status.size else { return false }
    let isEqual = try await Blocking.run { cancellation in
      try FileTree(system: system, isCancelled: { cancellation.isCancelled })
        .isEqual(item.entry, folder.entry(name))
    }
    guard isEqual else { return false }
    try await note(.atOnce, occupant, name)
    // Whoever has written it may not have waited for the disk.
    try await flushData(of: folder.entry(name))
    return true
  }

  // MARK: -

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
  private func flushData(of entry: Entry) async throws {
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
