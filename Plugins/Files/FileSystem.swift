#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The calls to the operating system that this plug-in makes: all of them go through here.
///
/// In production each is the bare system call, plus the test of one optional. Tests put ``intercept``
/// in between and make any call fail, fall short, or be the last one before the "crash".
struct FileSystem: Sendable {
  /// The calls.
  enum Call: String, Sendable, CaseIterable {
    case open, write, read, truncate, flush, flushFolder, close
    case openUnnamed, lock
    case rename, link, unlink, removeFolder, makeFolder
    case status, readLink, makeLink, setAttributes, space
  }

  /// What becomes of a call.
  enum Verdict: Sendable {
    /// It is made.
    case proceed
    /// It is not made and fails with this number.
    case fail(CInt)
    /// It is made and fails with this number all the same, as when a network file system repeats a call.
    case makeAndFail(CInt)
    /// It is made with at most this many bytes; only reading and writing heed it.
    case atMost(Int)
  }

  /// Asked before each call with the path it is about, which is empty for calls on a descriptor.
  var intercept: (@Sendable (Call, String) -> Verdict)?

  /// The bare system calls.
  static let system = FileSystem()

  /// The descriptor that stands for "paths are absolute".
  static let anywhere = AT_FDCWD

  /// Makes a call, and makes it again while signals interrupt it.
  func call<Result: SignedInteger>(
    _ call: Call, _ path: String = "", _ body: () -> Result
  ) throws(SystemError) -> Result {
    try self.call(call, path, count: 0) { _ in body() }
  }

  /// The same for a call that moves up to `count` bytes.
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

  func open(_ entry: Entry, _ flags: CInt, mode: mode_t = 0o666) throws(SystemError) -> CInt {
    try withPath(entry) { pointer throws(SystemError) in
      try call(.open, entry.name) { openat(entry.folder, pointer, flags | O_CLOEXEC, mode) }
    }
  }

  /// Opens an entry; `nil` when there is none.
  func openIfPresent(_ entry: Entry, _ flags: CInt) throws(SystemError) -> CInt? {
    do {
      return try open(entry, flags)
    } catch {
      if error.code == ENOENT { return nil }
      throw error
    }
  }

  /// Opens a new file without a name in a folder: it is gone when it is closed, unless it was linked before.
  ///
  /// Fails with `EOPNOTSUPP` and others where the system or the file system has no such files; see
  /// ``SystemError/saysNoUnnamedFiles``.
  func openUnnamed(in folder: String, mode: mode_t = 0o666) throws(SystemError) -> CInt {
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

  /// Whether a file can be given a name by its descriptor: `/proc` may not be there.
  private static let canLinkOpenFiles = access("/proc/self/fd", X_OK) == 0

  /// Writes all the bytes; the system may take them in several pieces.
  func write(_ descriptor: CInt, _ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
    guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
    guard offset >= 0, offset <= .max - Int64(bytes.count) else { throw SystemError(EFBIG) }
    var done = 0
    while done < bytes.count {
      let written = try call(.write, count: bytes.count - done) { count in
        pwrite(descriptor, base + done, count, off_t(offset) + off_t(done))
      }
      // A device that takes nothing and reports nothing would keep us here for ever.
      if written == 0 { throw SystemError(EIO) }
      done += written
    }
  }

  /// Reads until the buffer is full or the file ends, and returns how many bytes there were.
  func read(_ descriptor: CInt, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int
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

  func truncate(_ descriptor: CInt, to size: Int64) throws(SystemError) {
    _ = try call(.truncate) { ftruncate(descriptor, off_t(size)) }
  }

  /// Returns when the bytes, and what is needed to find them, are on the disk.
  func flush(_ descriptor: CInt) throws(SystemError) {
    #if canImport(Darwin)
      // fsync on Darwin leaves the bytes in the drive's cache. File systems that cannot do better get fsync.
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
  func flushFolder(_ descriptor: CInt) throws(SystemError) {
    do {
      _ = try call(.flushFolder) { fsync(descriptor) }
    } catch {
      // Some network and user-space file systems have no such thing; there is nothing better to call.
      if error.code != EINVAL && error.code != ENOTSUP { throw error }
    }
  }

  func close(_ descriptor: CInt) throws(SystemError) {
    var failure: SystemError?
    if case .fail(let code) = intercept?(.close, "") { failure = SystemError(code) }
    // The descriptor is gone whatever close returns, after EINTR too: closing again might hit somebody else's.
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

  /// Keeps others from locking the same file or folder until the descriptor is closed; false where the file system has
  /// no such locks. Fails with `EWOULDBLOCK` while another one has it.
  func lock(_ descriptor: CInt) throws(SystemError) -> Bool {
    do throws(SystemError) {
      _ = try call(.lock) { flock(descriptor, LOCK_EX | LOCK_NB) }
      return true
    } catch {
      if error.code == EWOULDBLOCK { throw error }
      return false
    }
  }

  func duplicate(_ descriptor: CInt) throws(SystemError) -> CInt {
    try call(.open) { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }
  }

  // MARK: Paths

  /// Hands over a path. C would silently cut it at a NUL, and mean another file.
  func withPath<Result>(
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

  func withPath<Result>(
    _ entry: Entry, _ body: (UnsafePointer<CChar>) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    guard let bytes = entry.bytes else { return try withPath(entry.name, body) }
    return try body(bytes)
  }
}
