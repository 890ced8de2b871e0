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
  private func call<Result: SignedInteger>(
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

  func duplicate(_ descriptor: CInt) throws(SystemError) -> CInt {
    try call(.open) { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }
  }

  // MARK: Entries

  func rename(_ old: Entry, to new: Entry) throws(SystemError) {
    _ = try withPath(old) { from throws(SystemError) in
      try withPath(new) { to throws(SystemError) in
        try call(.rename, new.name) { renameat(old.folder, from, new.folder, to) }
      }
    }
  }

  /// Gives a file a second name; fails with `EEXIST` when that is taken.
  func link(_ old: Entry, to new: Entry) throws(SystemError) {
    _ = try withPath(old) { from throws(SystemError) in
      try withPath(new) { to throws(SystemError) in
        try call(.link, new.name) { linkat(old.folder, from, new.folder, to, 0) }
      }
    }
  }

  func unlink(_ entry: Entry) throws(SystemError) {
    _ = try withPath(entry) { pointer throws(SystemError) in
      try call(.unlink, entry.name) { unlinkat(entry.folder, pointer, 0) }
    }
  }

  func removeFolder(_ entry: Entry) throws(SystemError) {
    _ = try withPath(entry) { pointer throws(SystemError) in
      try call(.removeFolder, entry.name) { unlinkat(entry.folder, pointer, AT_REMOVEDIR) }
    }
  }

  func makeFolder(_ entry: Entry) throws(SystemError) {
    _ = try withPath(entry) { pointer throws(SystemError) in
      try call(.makeFolder, entry.name) { mkdirat(entry.folder, pointer, 0o777) }
    }
  }

  /// What an entry is; a symbolic link itself unless it is to be followed.
  func status(_ entry: Entry, following: Bool = false) throws(SystemError) -> FileStatus {
    var raw = stat()
    _ = try withPath(entry) { pointer throws(SystemError) in
      try call(.status, entry.name) { fstatat(entry.folder, pointer, &raw, following ? 0 : AT_SYMLINK_NOFOLLOW) }
    }
    return FileStatus(raw)
  }

  /// What an entry is; `nil` when there is none.
  func statusIfPresent(_ entry: Entry, following: Bool = false) throws(SystemError) -> FileStatus? {
    do {
      return try status(entry, following: following)
    } catch {
      if error.isAbsence { return nil }
      throw error
    }
  }

  func status(_ descriptor: CInt) throws(SystemError) -> FileStatus {
    var raw = stat()
    _ = try call(.status) { fstat(descriptor, &raw) }
    return FileStatus(raw)
  }

  /// The target of a symbolic link, as it is stored.
  func target(ofLink entry: Entry) throws(SystemError) -> [CChar] {
    try withPath(entry) { pointer throws(SystemError) in
      var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
      let count = try call(.readLink, entry.name) { readlinkat(entry.folder, pointer, &buffer, buffer.count - 1) }
      return Array(buffer[..<count]) + [0]
    }
  }

  func makeLink(_ entry: Entry, to target: [CChar]) throws(SystemError) {
    _ = try withPath(entry) { name throws(SystemError) in
      try call(.makeLink, entry.name) { symlinkat(target, entry.folder, name) }
    }
  }

  func setPermissions(_ descriptor: CInt, _ permissions: mode_t) throws(SystemError) {
    _ = try call(.setAttributes) { fchmod(descriptor, permissions) }
  }

  func setModified(_ descriptor: CInt, like status: FileStatus) throws(SystemError) {
    let time = timespec(tv_sec: time_t(status.modified.seconds), tv_nsec: Int(status.modified.nanoseconds))
    _ = try call(.setAttributes) { futimens(descriptor, [time, time]) }
  }

  /// The bytes that may still be written to the file system that holds a path.
  func availableBytes(at path: String) throws(SystemError) -> Int64 {
    #if canImport(Darwin)
      // statvfs counts blocks in 32 bits there.
      var raw = statfs()
      _ = try withPath(path) { pointer throws(SystemError) in try call(.space, path) { statfs(pointer, &raw) } }
      let (blocks, size) = (UInt64(raw.f_bavail), UInt64(raw.f_bsize))
    #else
      var raw = statvfs()
      _ = try withPath(path) { pointer throws(SystemError) in try call(.space, path) { statvfs(pointer, &raw) } }
      let (blocks, size) = (UInt64(raw.f_bavail), UInt64(raw.f_frsize))
    #endif
    let (bytes, isTooMuch) = blocks.multipliedReportingOverflow(by: size)
    return isTooMuch ? .max : Int64(clamping: bytes)
  }

  /// The same for a folder that may not be there yet: the nearest one above it counts.
  func availableBytes(atOrAbove path: String) throws(SystemError) -> Int64 {
    do {
      return try availableBytes(at: path)
    } catch {
      guard error.code == ENOENT, path != "/" else { throw error }
      return try availableBytes(atOrAbove: PathText.split(path).folder)
    }
  }

  /// The entries of an open folder, without `.` and `..`.
  func entries(of descriptor: CInt) throws(SystemError) -> [Entry] {
    // The stream takes its descriptor over, and a duplicate would share the position.
    let own = try open(Entry(".", in: descriptor), O_RDONLY | O_DIRECTORY)
    guard let stream = fdopendir(own) else {
      let error = SystemError.current
      try close(own)
      throw error
    }
    defer { closedir(stream) }
    var entries: [Entry] = []
    while true {
      errno = 0
      guard let next = readdir(stream) else { break }
      let name = withUnsafePointer(to: &next.pointee.d_name) { field in
        field.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: field.pointee)) { pointer in
          Array(UnsafeBufferPointer(start: pointer, count: strlen(pointer) + 1))
        }
      }
      let entry = Entry(bytes: name, in: descriptor)
      if entry.name != "." && entry.name != ".." { entries.append(entry) }
    }
    if errno != 0 { throw .current }
    return entries
  }

  // MARK: Paths

  /// Hands over a path. C would silently cut it at a NUL, and mean another file.
  private func withPath<Result>(
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

  private func withPath<Result>(
    _ entry: Entry, _ body: (UnsafePointer<CChar>) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    guard let bytes = entry.bytes else { return try withPath(entry.name, body) }
    return try body(bytes)
  }
}
