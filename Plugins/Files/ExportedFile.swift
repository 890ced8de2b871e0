import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A new file that the first bytes of a partial are copied into: all that were asked for, or no file.
///
/// They are copied into a file without a name, or with a hidden one where the file system has no such files, which gets
/// its name once it is whole. What ends the process before leaves at most the hidden file. Only on a file system without
/// hard links can it leave an empty file under the name: the name is taken with one, and renaming replaces that.
struct ExportedFile {
  let path: String
  let count: Int64
  let durability: Durability
  let system: FileSystem

  /// - Parameters:
  ///   - path: the file; `~` is the home directory, other relative paths begin at the working directory.
  ///   - count: how many bytes it is to have.
  init(_ path: String, count: Int64, durability: Durability = .process, system: FileSystem = .system) {
    self.path = PathText.absolute(path)
    self.count = count
    self.durability = durability
    self.system = system
  }

  /// Makes the file.
  ///
  /// - Parameter fill: writes the bytes into the open file, and returns how many there were. Called again for another
  ///   file where the first one cannot be given a name.
  /// - Throws: `DownloadError` with `.alreadyExists`; `.storage` when there are fewer bytes, or there is no such folder;
  ///   what `fill` throws.
  func make(_ fill: (CInt) throws -> Int64) throws {
    guard count >= 0 else { throw DownloadError(.invalidRequest, "\(count) bytes cannot be exported") }
    let (parent, name) = PathText.split(path)
    let folder = try open(parent)
    do {
      // Nothing is copied for a name that is taken. Others may still take it meanwhile.
      if try system.statusIfPresent(folder.entry(name)) != nil { throw SystemError(EEXIST) }
      if try !makeUnnamed(name, in: folder, fill) { try makeHidden(name, in: folder, fill) }
    } catch let error as SystemError {
      guard error.code == EEXIST else { throw error.downloadError("make", path) }
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
      throw DownloadError(.storage, "there is no folder \(parent): make it, or name another one", cause: error)
    } catch {
      throw error.downloadError("open the folder", parent)
    }
  }

  /// - Returns: false where a file without a name cannot be made or linked.
  private func makeUnnamed(_ name: String, in folder: OpenFolder, _ fill: (CInt) throws -> Int64) throws -> Bool {
    guard let file = try openUnnamed(in: folder) else { return false }
    defer { try? system.close(file) }
    try complete(file, fill)
    do {
      // Unlike rename, link never takes the place of another file.
      try system.link(file, to: folder.entry(name))
      return true
    } catch {
      guard error.saysNoHardLinks || error.code == ENOENT else { throw error }
      return false
    }
  }

  private func openUnnamed(in folder: OpenFolder) throws(SystemError) -> CInt? {
    do {
      return try system.openUnnamed(in: folder.path)
    } catch {
      guard error.saysNoUnnamedFiles else { throw error }
      return nil
    }
  }

  private func makeHidden(_ name: String, in folder: OpenFolder, _ fill: (CInt) throws -> Int64) throws {
    let hidden = folder.entry(".downpipe-\(DownloadID()).part")
    let file = try system.open(hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
    defer { try? system.unlink(hidden) }
    do {
      defer { try? system.close(file) }
      try complete(file, fill)
    }
    do {
      try system.link(hidden, to: folder.entry(name))
    } catch {
      guard error.saysNoHardLinks else { throw error }
      try rename(hidden, to: folder.entry(name))
    }
  }

  /// Gives a file a name that nobody has, without a link.
  private func rename(_ hidden: Entry, to target: Entry) throws(SystemError) {
    let placeholder = try system.open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
    do throws(SystemError) {
      try system.close(placeholder)
      try system.rename(hidden, to: target)
    } catch {
      try? system.unlink(target)
      throw error
    }
  }

  /// Fills a file; what is wrong with it comes to light before it has its name.
  private func complete(_ file: CInt, _ fill: (CInt) throws -> Int64) throws {
    let written = try reporting("export the partial to", path) {
      let written = try fill(file)
      if durability == .power { try system.flush(file) }
      // Network file systems tell at closing that earlier bytes were lost; linking needs the descriptor.
      try system.close(try system.duplicate(file))
      return written
    }
    guard written == count else {
      throw DownloadError(.storage, "the partial has \(written) bytes, \(count) were to be exported")
    }
  }
}

extension FileSystem {
  /// Copies the first bytes of one file into another that is empty.
  ///
  /// - Returns: how many there were.
  func copyBytes(
    of source: CInt, into target: CInt, count: Int64, _ cancellation: Blocking.Cancellation
  ) throws -> Int64 {
    try withUnsafeTemporaryAllocation(byteCount: 1 << 20, alignment: 16) { buffer in
      var done: Int64 = 0
      while done < count {
        try cancellation.check()
        let chunk = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(Int64(buffer.count), count - done))])
        let got = try read(source, into: chunk, at: done)
        try write(target, UnsafeRawBufferPointer(rebasing: chunk[..<got]), at: done)
        done += Int64(got)
        if got < chunk.count { break }
      }
      return done
    }
  }
}
