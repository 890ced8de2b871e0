#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension FileSystem {
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

  /// Gives an open file a name; fails with `EEXIST` when that is taken, with `ENOENT` when the file had names and has
  /// lost the last one.
  func link(_ descriptor: CInt, to new: Entry) throws(SystemError) {
    #if os(Linux)
      _ = try withPath(new) { to throws(SystemError) in
        try withPath("/proc/self/fd/\(descriptor)") { from throws(SystemError) in
          try call(.link, new.name) { linkat(Self.anywhere, from, new.folder, to, AT_SYMLINK_FOLLOW) }
        }
      }
    #else
      throw SystemError(ENOTSUP)
    #endif
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

  func makeFolder(_ entry: Entry, mode: mode_t = 0o777) throws(SystemError) {
    _ = try withPath(entry) { pointer throws(SystemError) in
      try call(.makeFolder, entry.name) { mkdirat(entry.folder, pointer, mode) }
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

  /// The same where the file system keeps permissions; some have them for all files at once.
  func permit(_ descriptor: CInt, _ permissions: mode_t) throws(SystemError) {
    do {
      try setPermissions(descriptor, permissions)
    } catch {
      guard [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS].contains(error.code) else { throw error }
    }
  }

  /// Sets the time of the last change to the present time of the file system; of a symbolic link itself.
  func touch(_ entry: Entry) throws(SystemError) {
    _ = try withPath(entry) { pointer throws(SystemError) in
      try call(.setAttributes, entry.name) { utimensat(entry.folder, pointer, nil, AT_SYMLINK_NOFOLLOW) }
    }
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

  /// Does something that needs a free name, and removes what has it.
  func makeRoom<Value>(
    at entry: Entry, _ body: () throws(SystemError) -> Value
  ) throws(SystemError) -> Value {
    for _ in 0..<8 {
      do {
        return try body()
      } catch {
        guard error.code == EEXIST else { throw error }
      }
      do { try unlink(entry) } catch { if error.code != ENOENT { throw error } }
    }
    return try body()
  }
}
