import DownpipeCore
import DownpipePOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension Publication {
  /// Gives the item its final name. `occupant` is the entry that has the requested name; for an open file it is `nil`,
  /// and linking detects the conflict.
  func settle(_ item: PublishedItem, _ occupant: FileStatus?) async throws -> Settled {
    if let claimed, try isPlaceholder(claimed, for: item) {
      try await note(.claiming, item, claimed)
      if try fill(claimed, with: item) { return try result(claimed, item.status, .renamed) }
    }
    var occupant = occupant
    for _ in 0..<Self.maximumRaces {
      var candidate = name
      if let occupant, try await isEarlierResult(name, occupant, for: item) {
        return try adopted(name, occupant)
      }
      // The download replaces its own file.
      let isOwn = occupant.map { hasNameOfEarlier && context.replaces?.isDescribed(by: $0) == true } ?? false
      let taken = try occupant == nil ? takenCompanionName(name) : name
      switch (isOwn ? .replace : publisher.onConflict, occupant) {
      case (.replace, nil) where item.isOpen && companionItems.isEmpty:
        break
      case (.replace, let occupant):
        try await replace(occupant, by: item)
        return try result(name, item.status, item.isOpen ? .linked : .renamed)
      case (_, nil) where taken == nil:
        break
      case (.fail, _):
        throw exists("the conflict policy is to fail: remove it, or choose another name or policy", taken)
      case (.reuse, let occupant), (.keepBoth, let occupant):
        if publisher.onConflict == .reuse, let occupant, try await reuse(occupant, for: item) {
          var reused = try result(name, occupant, .linked)
          reused.artifact.isReused = true
          return reused
        }
        let (last, free) = try numberedNames()
        if let last, let status = try system.statusIfPresent(folder.entry(last)),
          try await isEarlierResult(last, status, for: item)
        {
          return try adopted(last, status)
        }
        candidate = free
      }
      let taking = try await withPlacedCompanions(as: candidate, of: item) { try await take(candidate, for: item) }
      if let taking { return try result(candidate, item.status, taking) }
      // Another entry has the name.
      occupant = try system.statusIfPresent(folder.entry(name))
    }
    throw DownloadError(
      .storage,
      "other programs keep creating files with the names to use in \(folder.path): start the download again, or choose another folder"
    )
  }

  /// The result with a file that is not known to be this run's own: it may be the user's, with the same bytes.
  private func adopted(_ name: String, _ status: FileStatus) throws -> Settled {
    var adopted = try result(name, status, .linked)
    adopted.artifact.identity = nil
    return adopted
  }

  /// Whether a file is the result of an earlier run, which was interrupted after it published the item without a note.
  private func isEarlierResult(_ name: String, _ status: FileStatus, for item: PublishedItem) async throws -> Bool {
    // One with companions has left a note.
    guard item.isOpen, context.wasInterrupted, companions.isEmpty else { return false }
    return try await isEqual(item, to: name, status)
  }

  /// The last name with a number that exists, and the next one.
  private func numberedNames() throws(SystemError) -> (last: String?, free: String) {
    let number = try NumberedName.firstFree { number throws(SystemError) in
      let name = NumberedName.make(name, number, kind: artifact.kind)
      if try system.statusIfPresent(folder.entry(name)) != nil { return true }
      return try takenCompanionName(name) != nil
    }
    let last = number > 1 ? NumberedName.make(name, number - 1, kind: artifact.kind) : nil
    return (last, NumberedName.make(name, number, kind: artifact.kind))
  }

  /// Takes a free name; `nil` if another program took it first.
  private func take(_ candidate: String, for item: PublishedItem) async throws -> Taking? {
    if item.status.kind == .file {
      try await note(.atOnce, item, candidate)
      do {
        // Unlike rename, link never replaces another file.
        try item.link(to: folder.entry(candidate), system)
        return .linked
      } catch {
        if error.code == EEXIST { return try isTaken(candidate, by: item) ? .linked : nil }
        // An open file needs a name first.
        if item.isOpen || !error.saysNoHardLinks { throw error }
      }
    }
    if !item.isOpen {
      try await note(.atOnce, item, candidate)
      do {
        try system.rename(item.entry, toFree: folder.entry(candidate))
        return .renamed
      } catch {
        if error.code == EEXIST { return try isTaken(candidate, by: item) ? .renamed : nil }
        if !error.saysNoExclusiveRename { throw error }
      }
    }
    return try await reserve(candidate, for: item) ? .renamed : nil
  }

  /// Takes a name on a file system that can neither link the item nor rename it to a free name only: an empty file or folder
  /// reserves the name, and the item replaces it. False if another program took the name first.
  private func reserve(_ candidate: String, for item: PublishedItem) async throws -> Bool {
    try await note(.claiming, item, candidate)
    do {
      if item.status.kind == .folder {
        try system.makeFolder(folder.entry(candidate))
      } else {
        try system.close(try system.open(folder.entry(candidate), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW))
      }
    } catch {
      if error.code == EEXIST { return false }
      throw error
    }
    do {
      return try fill(candidate, with: item)
    } catch {
      // A network file system may report a failure of what it has done.
      if try isPlaceholder(candidate, for: item), try !isTaken(candidate, by: item) {
        try? item.status.kind == .folder
          ? system.removeFolder(folder.entry(candidate)) : system.unlink(folder.entry(candidate))
      }
      throw error
    }
  }

  /// Whether the item has the name already: a network file system that repeats a call finds the result of the first one.
  private func isTaken(_ candidate: String, by item: PublishedItem) throws(SystemError) -> Bool {
    try system.statusIfPresent(folder.entry(candidate))?.isSame(as: item.status) ?? false
  }

  /// Replaces the empty file or folder that reserves the name; false if another program put something into the folder.
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
    // A folder can be renamed to the name of another folder only if that is empty.
    return status.kind == .folder || status.size == 0
  }

  private func replace(_ occupant: FileStatus?, by item: PublishedItem) async throws {
    // Renaming would also remove a FIFO that another program reads, or a symbolic link that a user created.
    let obstacle: String? =
      switch (item.status.kind, occupant?.kind) {
      case (_, nil), (.file, .file), (.folder, .folder): nil
      case (_, .folder): "a folder"
      case (_, .file): "a file"
      case (_, .link): "a symbolic link"
      case (_, .other): "a FIFO, a socket or a device"
      }
    if let obstacle {
      let what = item.status.kind == .folder ? "folder" : "file"
      throw exists("\(obstacle) cannot be replaced by a \(what): remove it, or choose another name")
    }
    try checkReplacedCompanions()
    try await note(.atOnce, item, name)
    let target = folder.entry(name)
    _ = try await withPlacedCompanions(as: name, of: item, replacing: true) {
      if item.status.kind == .folder, occupant != nil {
        try displace(target, by: item)
      } else {
        try item.rename(to: target, by: hidden, system)
      }
      return true
    }
    // A run that ended between its two renames has left the old folder.
    if item.status.kind == .folder, context.priorNote != nil { try FileTree(system: system).remove(aside) }
  }

  /// Replaces a folder by another one. No single call does this unless the old folder is empty, so the old folder is
  /// renamed first, to a name that the next run can derive.
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

  /// Whether the existing file has the same bytes. Then it is used, and the new one is dropped.
  private func reuse(_ occupant: FileStatus, for item: PublishedItem) async throws -> Bool {
    guard try await isEqual(item, to: name, occupant), try await areCompanionsEqual() else { return false }
    try await note(.reusing, occupant, name)
    // The program that wrote it may not have flushed it.
    try await flush(folder.entry(name))
    return true
  }

  private func isEqual(_ item: PublishedItem, to name: String, _ status: FileStatus) async throws -> Bool {
    guard status.kind == .file, item.status.kind == .file, status.size == item.status.size else { return false }
    return try await BlockingThreads.run { cancellation in
      let tree = FileTree(system: system, isCancelled: { cancellation.isCancelled })
      return try item.isEqual(to: folder.entry(name), tree)
    }
  }
}
