import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A new file that the first bytes of a partial are copied into: all that were asked for, or no file.
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
  /// - Parameter fill: writes the bytes into the open file, and returns how many there were.
  /// - Throws: `DownloadError` with `.alreadyExists`; `.storage` when there are fewer bytes, or there is no such folder;
  ///   what `fill` throws.
  func make(_ fill: (CInt) throws -> Int64) throws {
    guard count >= 0 else { throw DownloadError(.invalidRequest, "\(count) bytes cannot be exported") }
    let (parent, name) = PathText.split(path)
    let folder: OpenFolder
    do {
      folder = try OpenFolder(parent, system: system)
    } catch  where error.code == ENOENT {
      throw DownloadError(.storage, "there is no folder \(parent): make it, or name another one", cause: error)
    } catch {
      throw error.downloadError("open the folder", parent)
    }
    let file: CInt
    do {
      file = try system.open(folder.entry(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
    } catch  where error.code == EEXIST {
      throw DownloadError(.alreadyExists, "\(path) exists already: choose another name", cause: error)
    } catch {
      throw error.downloadError("make", path)
    }
    do {
      let written = try reporting("export the partial to", path) {
        do {
          let written = try fill(file)
          if durability == .power { try system.flush(file) }
          try system.close(file)
          return written
        } catch {
          try? system.close(file)
          throw error
        }
      }
      guard written == count else {
        throw DownloadError(.storage, "the partial has \(written) bytes, \(count) were to be exported")
      }
      try reporting("flush", parent) { () throws(SystemError) in try folder.flush(durability) }
    } catch {
      try? system.unlink(folder.entry(name))
      throw error
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
