package import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A new file with the first bytes of a partial: all the bytes that were requested, or no file.
///
/// The bytes are copied into a file without a name (or with a hidden name, where the file system has no files without
/// one), which gets its name when it is complete. When the process ends before, at most the hidden file remains. Only
/// on a file system that can neither link files nor rename them to free names only, an empty file can remain under the name:
/// it reserves the name for the rename.
package struct ExportedFile {
  package let path: String
  package let count: Int64
  package let durability: Durability
  package let system: FileSystem

  /// - Parameters:
  ///   - path: `~` is the home directory, other relative paths start at the working directory.
  ///   - count: The number of bytes that the file must have.
  package init(_ path: String, count: Int64, durability: Durability = .process, system: FileSystem = .system) {
    self.path = PathText.absolute(path)
    self.count = count
    self.durability = durability
    self.system = system
  }

  /// Creates the file.
  ///
  /// - Parameter fill: Writes the bytes into the open file and returns their number. It is called again with another
  ///   file when the first one cannot be linked.
  /// - Throws: `DownloadError` with `.alreadyExists`; `.storage` when there are fewer bytes or the folder does not
  ///   exist; errors of `fill`.
  package func make(_ fill: (OpenFile) throws -> Int64) throws {
    guard count >= 0 else {
      throw DownloadError(.invalidRequest, "\(count) bytes cannot be exported: ask for 0 or more")
    }
    let (parent, name) = PathText.split(path)
    let folder = try open(parent)
    do {
      // Checked first to avoid a copy in vain. Another process can still take the name before the link.
      if try system.statusIfPresent(folder.entry(name)) != nil { throw SystemError(EEXIST) }
      if try !makeUnnamed(name, in: folder, fill) { try makeHidden(name, in: folder, fill) }
    } catch let error as SystemError {
      guard error.code == EEXIST else { throw error.downloadError("create", path) }
      throw DownloadError(.alreadyExists, "\(path) exists already: choose another name", cause: error)
    }
    do {
      try reporting("flush", parent) { () throws(SystemError) in try folder.flush(durability) }
    } catch {
      try? system.unlink(folder.entry(name))
      throw error
    }
  }

  private func open(_ parent: String) throws -> OpenFolder {
    do {
      return try OpenFolder(parent, system: system)
    } catch  where error.code == ENOENT {
      throw DownloadError(
        .storage, "the folder \(parent) does not exist: create it, or choose another one", cause: error)
    } catch {
      throw error.downloadError("open the folder", parent)
    }
  }

  /// - Returns: False where a file without a name cannot be created or linked.
  private func makeUnnamed(_ name: String, in folder: OpenFolder, _ fill: (OpenFile) throws -> Int64) throws -> Bool {
    guard let file = try openUnnamed(in: folder) else { return false }
    try complete(file, fill)
    do {
      // Unlike rename, link never replaces another file.
      try system.link(file.descriptor, to: folder.entry(name))
      return true
    } catch {
      guard error.saysNoHardLinks || error.code == ENOENT else { throw error }
      return false
    }
  }

  private func openUnnamed(in folder: OpenFolder) throws(SystemError) -> OpenFile? {
    do {
      return try OpenFile.unnamed(in: folder.path, system: system)
    } catch {
      guard error.saysNoUnnamedFiles else { throw error }
      return nil
    }
  }

  private func makeHidden(_ name: String, in folder: OpenFolder, _ fill: (OpenFile) throws -> Int64) throws {
    let hidden = folder.entry(".downpipe-\(DownloadID()).part")
    let file = try OpenFile(hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, system: system)
    defer { try? system.unlink(hidden) }
    try complete(file, fill)
    try? file.close()
    do {
      try system.link(hidden, to: folder.entry(name))
    } catch {
      guard error.saysNoHardLinks else { throw error }
      try rename(hidden, to: folder.entry(name))
    }
  }

  /// Gives the hidden file a free name without a link.
  private func rename(_ hidden: Entry, to target: Entry) throws(SystemError) {
    do {
      return try system.rename(hidden, toFree: target)
    } catch {
      guard error.saysNoExclusiveRename else { throw error }
    }
    // An empty file reserves the name.
    let placeholder = try OpenFile(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, system: system)
    do throws(SystemError) {
      try placeholder.close()
      try system.rename(hidden, to: target)
    } catch {
      try? system.unlink(target)
      throw error
    }
  }

  /// Fills a file and reports its errors before it has a name.
  private func complete(_ file: OpenFile, _ fill: (OpenFile) throws -> Int64) throws {
    let written = try reporting("export the partial to", path) {
      let written = try fill(file)
      if durability == .power { try file.flush() }
      // Network file systems report lost bytes at closing, and linking needs the descriptor.
      try file.duplicate().close()
      return written
    }
    guard written == count else {
      throw DownloadError(
        .storage, "the partial has \(written) of the \(count) bytes to export: export fewer bytes")
    }
  }
}
