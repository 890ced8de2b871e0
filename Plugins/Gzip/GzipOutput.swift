#if Zlib
  import DownpipeCore

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// The unpacked file: written in the workspace under a temporary name, renamed when it is whole, and
  /// removed when it never becomes so.
  ///
  /// It has a folder of its own in the workspace, so that a name which the network had a say in cannot hit
  /// anything else that is kept there, and so that what a run left behind before it died is found again.
  struct GzipOutput: ~Copyable {
    private static let temporaryName = ".unpacking"

    private let folder: String
    private let temporaryPath: String
    private var descriptor: Int32
    private var isCommitted = false

    /// Opens an empty file.
    ///
    /// - Parameters:
    ///   - workspace: the folder of the download's steps; it exists.
    ///   - input: the path of the packed file, which must stay as it is.
    /// - Throws: ``DownloadError`` with `.noSpace`, `.permission` or `.storage`.
    init(in workspace: String, beside input: String?) throws(DownloadError) {
      // The input of a second Gunzip is the output of the first, and lies in the first one's folder.
      let first = workspace + "/gunzip"
      let folder = input.map { isFile($0, in: first) } == true ? workspace + "/gunzip-2" : first
      self.folder = folder
      temporaryPath = folder + "/" + Self.temporaryName
      descriptor = -1
      if mkdir(folder, 0o777) != 0, errno != EEXIST { throw .file("make the folder", folder, errno) }
      // What a run that died has left.
      if unlink(temporaryPath) != 0, errno != ENOENT { throw .file("remove", temporaryPath, errno) }
      descriptor = open(temporaryPath, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
      if descriptor < 0 {
        let code = errno
        _ = rmdir(folder)
        throw .file("make", temporaryPath, code)
      }
    }

    deinit {
      guard !isCommitted else { return }
      // The error that brought us here is the one to report.
      if descriptor >= 0 { _ = close(descriptor) }
      _ = unlink(temporaryPath)
      _ = rmdir(folder)
    }

    /// Writes the whole of a block.
    /// - Throws: ``DownloadError`` with `.noSpace`, `.permission` or `.storage`.
    func write(_ bytes: RawSpan) throws(DownloadError) {
      let descriptor = descriptor
      let code = bytes.withUnsafeBytes { bytes -> Int32 in
        var offset = 0
        while offset < bytes.count {
          let count = systemWrite(descriptor, bytes.baseAddress?.advanced(by: offset), bytes.count - offset)
          if count > 0 {
            offset += count
          } else if count == 0 {
            return EIO
          } else if errno != EINTR {
            return errno
          }
        }
        return 0
      }
      guard code == 0 else { throw .file("write", temporaryPath, code) }
    }

    /// Closes the file and gives it its name; with ``Durability/power`` both are on the disk when it returns.
    ///
    /// - Returns: its path.
    /// - Throws: ``DownloadError``, also for errors that only flushing or closing brings to light.
    mutating func commit(as name: String, durability: Durability) throws(DownloadError) -> String {
      if durability == .power { try Self.flush(descriptor, temporaryPath) }
      let closed = close(descriptor)
      let code = errno
      descriptor = -1
      // An interrupted close has closed on every system we know, and must not be repeated.
      guard closed == 0 || code == EINTR else { throw .file("close", temporaryPath, code) }
      let path = folder + "/" + name
      guard rename(temporaryPath, path) == 0 else { throw .file("rename to", path, errno) }
      isCommitted = true
      if durability == .power {
        // The name of the file, and that of the folder it is in.
        for folder in [folder, folder + "/.."] {
          let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
          guard descriptor >= 0 else { throw .file("open", folder, errno) }
          defer { _ = close(descriptor) }
          try Self.flush(descriptor, folder)
        }
      }
      return path
    }

    /// Returns when what was written is on the disk.
    private static func flush(_ descriptor: Int32, _ path: String) throws(DownloadError) {
      #if canImport(Darwin)
        // fsync on Darwin leaves the bytes in the drive's cache; not every file system can do better.
        if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
      #endif
      guard fsync(descriptor) == 0 || errno == EINVAL else { throw .file("flush", path, errno) }
    }
  }

  /// Whether a file lies directly in a folder, whichever way the two paths are written.
  private func isFile(_ path: String, in folder: String) -> Bool {
    let parent = path.lastIndex(of: "/").map { String(path[..<$0]) + "/." } ?? "."
    var left = stat()
    var right = stat()
    return stat(parent, &left) == 0 && stat(folder, &right) == 0 && left.st_dev == right.st_dev
      && left.st_ino == right.st_ino
  }

  /// `write(2)`, which a method of the same name hides.
  private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    write(descriptor, bytes, count)
  }
#endif
