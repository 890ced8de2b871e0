import DownpipePOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What is published: an entry at its path, a copy of it beside the target, or an open file.
struct PublishedItem: Sendable {
  /// The folder and the name of the entry; for an open file, its name among the partials, or an empty name.
  let folder: CInt
  let name: String
  let status: FileStatus
  let isCopy: Bool
  let held: HeldFile?

  init(folder: CInt, name: String, status: FileStatus, isCopy: Bool) {
    self.folder = folder
    self.name = name
    self.status = status
    self.isCopy = isCopy
    held = nil
  }

  init(held: HeldFile) {
    folder = FileSystem.anywhere
    name = held.name ?? ""
    status = held.status
    isCopy = false
    self.held = held
  }

  var isOpen: Bool { held != nil }
  var entry: Entry { Entry(name, in: folder) }
  /// The name to remove after publishing.
  var oldName: Entry? { name.isEmpty ? nil : entry }

  /// Gives the item a second name; fails with `EEXIST` when the name exists.
  func link(to target: Entry, _ system: FileSystem) throws(SystemError) {
    guard let held else { return try system.link(entry, to: target) }
    do {
      try system.link(held.file.descriptor, to: target)
    } catch {
      // The system cannot link an open file, or the file has just lost its name.
      if error.code == ENOENT || error.code == ENOTSUP { throw SystemError(ENOTSUP) }
      throw error
    }
  }

  /// Replaces the target; an open file is linked to a hidden name first.
  func rename(to target: Entry, by hidden: Entry, _ system: FileSystem) throws(SystemError) {
    guard isOpen else { return try system.rename(entry, to: target) }
    do {
      try link(to: hidden, system)
    } catch {
      guard error.code == EEXIST else { throw error }
      try system.unlink(hidden)
      try link(to: hidden, system)
    }
    do {
      try system.rename(hidden, to: target)
    } catch {
      try? system.unlink(hidden)
      throw error
    }
  }

  /// Whether a file has the same bytes.
  func isEqual(to other: Entry, _ tree: FileTree) throws -> Bool {
    if let held { return try tree.isEqual(held.file, other) }
    return try tree.isEqual(entry, other)
  }
}

extension SystemError {
  /// Whether a copy of the item, or its own name, may be published where the item cannot.
  func needsOtherItem(than item: PublishedItem) -> Bool {
    !item.isCopy && (code == EXDEV || (item.isOpen && saysNoHardLinks))
  }
}
