#if canImport(Glibc)
  package import Glibc
#elseif canImport(Musl)
  package import Musl
#elseif canImport(Darwin)
  package import Darwin
#endif

/// The system calls on files and folders. Every file operation of the plug-ins goes through this type.
///
/// In production a call is the system call and a test of one optional. Tests set ``intercept`` to make any call fail,
/// move fewer bytes, or be the last one before a simulated crash.
package struct FileSystem: Sendable {
  /// The system calls that tests can intercept.
  package enum Call: String, Sendable, CaseIterable {
    case open, write, read, truncate, flush, flushFolder, close
    case openUnnamed, lock
    case rename, renameToFree, link, unlink, removeFolder, makeFolder
    case status, readLink, makeLink, setAttributes, space
  }

  /// What happens to an intercepted call.
  package enum Verdict: Sendable {
    /// The call is made.
    case proceed
    /// The call is not made; it fails with this error.
    case fail(CInt)
    /// The call is made, and reported as failed: a network file system that repeats a call does this.
    case makeAndFail(CInt)
    /// The call is made with at most this many bytes. Only reads and writes use it.
    case atMost(Int)
  }

  /// Receives each call and its path, which is empty for calls on a descriptor.
  package var intercept: (@Sendable (Call, String) -> Verdict)?

  package init(intercept: (@Sendable (Call, String) -> Verdict)? = nil) { self.intercept = intercept }

  /// The system calls, not intercepted.
  package static let system = FileSystem()

  /// The folder descriptor for absolute paths.
  package static let anywhere = AT_FDCWD

  /// Makes a call and repeats it as long as signals interrupt it.
  func call<Result: SignedInteger>(
    _ call: Call, _ path: String = "", _ body: () -> Result
  ) throws(SystemError) -> Result {
    try self.call(call, path, count: 0) { _ in body() }
  }

  /// Makes a call that moves up to `count` bytes.
  private func call<Result: SignedInteger>(
    _ call: Call, _ path: String = "", count: Int, _ body: (Int) -> Result
  ) throws(SystemError) -> Result {
    while true {
      var error: SystemError
      switch intercept?(call, path) ?? .proceed {
      case .proceed:
        let result = body(count)
        if result >= 0 { return result }
        error = .current
      case .atMost(let most):
        let result = body(min(most, count))
        if result >= 0 { return result }
        error = .current
      case .makeAndFail(let code):
        _ = body(count)
        error = SystemError(code)
      case .fail(let code):
        error = SystemError(code)
      }
      if error.code != EINTR { throw error }
    }
  }

  // MARK: Bytes

  package func open(_ entry: Entry, _ flags: CInt, mode: mode_t = 0o666) throws(SystemError) -> CInt {
    try withPath(entry) { pointer throws(SystemError) in
      try call(.open, entry.name) { openat(entry.folder, pointer, flags | O_CLOEXEC, mode) }
    }
  }

  /// Creates a file without a name in a folder. It is deleted when it is closed, unless it was linked before.
  ///
  /// Fails with an error that ``SystemError/saysNoUnnamedFiles`` recognises where this is not possible.
  package func openUnnamed(in folder: String, mode: mode_t = 0o666) throws(SystemError) -> CInt {
    #if os(Linux)
      guard Self.canLinkOpenFiles else { throw SystemError(EOPNOTSUPP) }
      // The C library's O_TMPFILE is a macro that Swift does not import.
      return try withPath(folder) { pointer throws(SystemError) in
        try call(.openUnnamed, folder) {
          openat(Self.anywhere, pointer, 0o20000000 | O_DIRECTORY | O_RDWR | O_CLOEXEC, mode)
        }
      }
    #else
      throw SystemError(ENOTSUP)
    #endif
  }

  /// Whether an open file can be linked by its descriptor, which needs `/proc`.
  private static let canLinkOpenFiles = access("/proc/self/fd", X_OK) == 0

  /// Writes all the bytes, in several calls if necessary.
  package func write(_ descriptor: CInt, _ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
    guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
    guard offset >= 0, offset <= .max - Int64(bytes.count) else { throw SystemError(EFBIG) }
    var done = 0
    while done < bytes.count {
      let written = try call(.write, count: bytes.count - done) { count in
        pwrite(descriptor, base + done, count, off_t(offset) + off_t(done))
      }
      // A device that accepts no bytes and reports no error would make this loop endless.
      if written == 0 { throw SystemError(EIO) }
      done += written
    }
  }

  /// Reads until the buffer is full or the file ends, and returns the number of bytes.
  package func read(_ descriptor: CInt, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64)
    throws(SystemError) -> Int
  {
    guard let base = buffer.baseAddress, !buffer.isEmpty else { return 0 }
    guard offset >= 0, offset <= .max - Int64(buffer.count) else { throw SystemError(EINVAL) }
    var done = 0
    while done < buffer.count {
      let got = try call(.read, count: buffer.count - done) { count in
        pread(descriptor, base + done, count, off_t(offset) + off_t(done))
      }
      if got == 0 { break }
      done += got
    }
    return done
  }

  package func truncate(_ descriptor: CInt, to size: Int64) throws(SystemError) {
    _ = try call(.truncate) { ftruncate(descriptor, off_t(size)) }
  }

  /// Returns when the bytes, and the metadata needed to read them, are on the disk.
  package func flush(_ descriptor: CInt) throws(SystemError) {
    #if canImport(Darwin)
      // fsync on Darwin leaves the bytes in the drive's cache. Not every file system supports F_FULLFSYNC.
      do throws(SystemError) {
        _ = try call(.flush) { fcntl(descriptor, F_FULLFSYNC) }
      } catch {
        guard error.code == ENOTSUP || error.code == EINVAL || error.code == ENOTTY else { throw error }
        _ = try call(.flush) { fsync(descriptor) }
      }
    #else
      _ = try call(.flush) { fdatasync(descriptor) }
    #endif
  }

  /// Returns when the entries of a folder are on the disk.
  package func flushFolder(_ descriptor: CInt) throws(SystemError) {
    do {
      _ = try call(.flushFolder) { fsync(descriptor) }
    } catch {
      // Some network and user-space file systems cannot flush folders, and there is no other call.
      if error.code != EINVAL && error.code != ENOTSUP { throw error }
    }
  }

  package func close(_ descriptor: CInt) throws(SystemError) {
    var failure: SystemError?
    if case .fail(let code) = intercept?(.close, "") { failure = SystemError(code) }
    // The descriptor is closed even if close fails, also with EINTR. Closing it again could close one that another
    // thread has opened since.
    #if canImport(Glibc)
      let result = Glibc.close(descriptor)
    #elseif canImport(Musl)
      let result = Musl.close(descriptor)
    #else
      let result = Darwin.close(descriptor)
    #endif
    if result != 0 && errno != EINTR { failure = failure ?? .current }
    if let failure { throw failure }
  }

  /// Locks a file or folder until the descriptor is closed; false where the file system has no locks.
  ///
  /// Fails with `EWOULDBLOCK` while another descriptor holds the lock.
  package func lock(_ descriptor: CInt) throws(SystemError) -> Bool {
    do throws(SystemError) {
      _ = try call(.lock) { flock(descriptor, LOCK_EX | LOCK_NB) }
      return true
    } catch {
      if error.code == EWOULDBLOCK { throw error }
      return false
    }
  }

  package func duplicate(_ descriptor: CInt) throws(SystemError) -> CInt {
    try call(.open) { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }
  }

  // MARK: Paths

  /// Passes a path as a C string. C would cut it at a NUL and use another file.
  package func withPath<Result>(
    _ path: String, _ body: (UnsafePointer<CChar>) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    let length = path.utf8.count
    let outcome: Swift.Result<Result, SystemError> = path.withCString { pointer in
      guard strlen(pointer) == length else { return .failure(SystemError(EINVAL)) }
      do throws(SystemError) {
        return .success(try body(pointer))
      } catch {
        return .failure(error)
      }
    }
    return try outcome.get()
  }

  package func withPath<Result>(
    _ entry: Entry, _ body: (UnsafePointer<CChar>) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    guard let bytes = entry.bytes else { return try withPath(entry.name, body) }
    return try body(bytes)
  }
}
