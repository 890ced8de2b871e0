import DownpipePOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What is to appear: an entry at its own path, its copy beside the target, or a file that is open.
struct PublishedItem: Sendable {
  /// The entry; of an open file, its name among the partials, if it has one.
  let folder: CInt
  let name: String
  let status: FileStatus
  let isCopy: Bool
  /// The open file.
  let held: HeldFile?

  /// An entry.
  init(folder: CInt, name: String, status: FileStatus, isCopy: Bool) {
    self.folder = folder
    self.name = name
    self.status = status
    self.isCopy = isCopy
    held = nil
  }

  /// A file that is open.
  init(held: HeldFile) {
    folder = FileSystem.anywhere
    name = held.name ?? ""
    status = held.status
    isCopy = false
    self.held = held
  }

  var isOpen: Bool { held != nil }
  var entry: Entry { Entry(name, in: folder) }
  /// The name that goes once there is another one.
  var oldName: Entry? { name.isEmpty ? nil : entry }

  /// Gives it another name; fails with `EEXIST` when that is taken.
  func link(to target: Entry, _ system: FileSystem) throws(SystemError) {
    guard let held else { return try system.link(entry, to: target) }
    do {
      try system.link(held.file.descriptor, to: target)
    } catch {
      // The system cannot do that for a file that is open, or it has lost its name just now.
      if error.code == ENOENT || error.code == ENOTSUP { throw SystemError(ENOTSUP) }
      throw error
    }
  }

  /// Puts it in the place of what is there; an open file is linked to a hidden name first.
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

  /// Whether a file holds the same bytes.
  func isEqual(to other: Entry, _ tree: FileTree) throws -> Bool {
    if let held { return try tree.isEqual(held.file, other) }
    return try tree.isEqual(entry, other)
  }
}

/// A partial's open file on its way to publication.
struct HeldFile: Sendable {
  let file: OpenFile
  let status: FileStatus
  /// The path of its name among the partials, if it has one.
  let name: String?
  /// Keeps the file open and claimed.
  let partial: FilePartial
}

extension SystemError {
  /// Whether the item cannot get the name as it is, but perhaps a copy of it, or its own name.
  func needsOtherItem(than item: PublishedItem) -> Bool {
    !item.isCopy && (code == EXDEV || (item.isOpen && saysNoHardLinks))
  }
}
