#if canImport(Glibc)
  package import Glibc
#elseif canImport(Musl)
  package import Musl
#elseif canImport(Darwin)
  package import Darwin
#endif

extension FileSystem {
  /// Gives a file a second name; fails with `EEXIST` when the name exists.
  package func link(_ old: Entry, to new: Entry) throws(SystemError) {
    _ = try withPath(old) { from throws(SystemError) in
      try withPath(new) { to throws(SystemError) in
        try call(.link, new.name) { linkat(old.folder, from, new.folder, to, 0) }
      }
    }
  }

  /// Gives an open file a name. Fails with `EEXIST` when the name exists, and with `ENOENT` when the file had names and
  /// all of them were removed.
  package func link(_ descriptor: CInt, to new: Entry) throws(SystemError) {
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

  package func unlink(_ entry: Entry) throws(SystemError) {
    _ = try withPath(entry) { pointer throws(SystemError) in
      try call(.unlink, entry.name) { unlinkat(entry.folder, pointer, 0) }
    }
  }

  package func removeFolder(_ entry: Entry) throws(SystemError) {
    _ = try withPath(entry) { pointer throws(SystemError) in
      try call(.removeFolder, entry.name) { unlinkat(entry.folder, pointer, AT_REMOVEDIR) }
    }
  }

  package func makeFolder(_ entry: Entry, mode: mode_t = 0o777) throws(SystemError) {
    _ = try withPath(entry) { pointer throws(SystemError) in
      try call(.makeFolder, entry.name) { mkdirat(entry.folder, pointer, mode) }
    }
  }

  /// The status of an entry; of a symbolic link itself unless `following`.
  package func status(_ entry: Entry, following: Bool = false) throws(SystemError) -> FileStatus {
    var raw = stat()
    _ = try withPath(entry) { pointer throws(SystemError) in
      try call(.status, entry.name) { fstatat(entry.folder, pointer, &raw, following ? 0 : AT_SYMLINK_NOFOLLOW) }
    }
    return FileStatus(raw)
  }

  /// The status of an entry; `nil` when it does not exist.
  package func statusIfPresent(_ entry: Entry, following: Bool = false) throws(SystemError) -> FileStatus? {
    do {
      return try status(entry, following: following)
    } catch {
      if error.isAbsence { return nil }
      throw error
    }
  }

  package func status(_ descriptor: CInt) throws(SystemError) -> FileStatus {
    var raw = stat()
    _ = try call(.status) { fstat(descriptor, &raw) }
    return FileStatus(raw)
  }

  /// The target of a symbolic link, as it is stored.
  package func target(ofLink entry: Entry) throws(SystemError) -> [CChar] {
    try withPath(entry) { pointer throws(SystemError) in
      var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
      let count = try call(.readLink, entry.name) { readlinkat(entry.folder, pointer, &buffer, buffer.count - 1) }
      return Array(buffer[..<count]) + [0]
    }
  }

  package func makeLink(_ entry: Entry, to target: [CChar]) throws(SystemError) {
    _ = try withPath(entry) { name throws(SystemError) in
      try call(.makeLink, entry.name) { symlinkat(target, entry.folder, name) }
    }
  }

  package func setPermissions(_ descriptor: CInt, _ permissions: mode_t) throws(SystemError) {
    _ = try call(.setAttributes) { fchmod(descriptor, permissions) }
  }

  /// Sets the owner and the group, which needs the rights of the superuser for another owner.
  package func setOwner(_ descriptor: CInt, user: uid_t, group: gid_t) throws(SystemError) {
    _ = try call(.setAttributes) { fchown(descriptor, user, group) }
  }

  /// Sets permissions, and ignores file systems that do not store them for each file.
  package func permit(_ descriptor: CInt, _ permissions: mode_t) throws(SystemError) {
    do {
      try setPermissions(descriptor, permissions)
    } catch {
      guard [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS].contains(error.code) else { throw error }
    }
  }

  /// Sets the modification time to the current time of the file system; of a symbolic link itself.
  package func touch(_ entry: Entry) throws(SystemError) {
    _ = try withPath(entry) { pointer throws(SystemError) in
      try call(.setAttributes, entry.name) { utimensat(entry.folder, pointer, nil, AT_SYMLINK_NOFOLLOW) }
    }
  }

  package func setModified(_ descriptor: CInt, like status: FileStatus) throws(SystemError) {
    try setModified(descriptor, seconds: status.modified.seconds, nanoseconds: status.modified.nanoseconds)
  }

  /// Sets the times of the last access and the last change, in seconds since 1970.
  package func setModified(_ descriptor: CInt, seconds: Int64, nanoseconds: Int64) throws(SystemError) {
    let time = timespec(tv_sec: time_t(seconds), tv_nsec: Int(nanoseconds))
    _ = try call(.setAttributes) { futimens(descriptor, [time, time]) }
  }

  /// The free bytes of the file system that holds a path; any number if it has no size, as some in user space.
  package func availableBytes(at path: String) throws(SystemError) -> Int64 {
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
    guard raw.f_blocks > 0 else { return .max }
    let (bytes, isTooMuch) = blocks.multipliedReportingOverflow(by: size)
    return isTooMuch ? .max : Int64(clamping: bytes)
  }

  /// The free bytes where a folder is or will be: the nearest existing folder above it counts.
  package func availableBytes(atOrAbove path: String) throws(SystemError) -> Int64 {
    do {
      return try availableBytes(at: path)
    } catch {
      guard error.code == ENOENT, path != "/" else { throw error }
      return try availableBytes(atOrAbove: PathText.split(path).folder)
    }
  }

  /// The entries of an open folder, without `.` and `..`.
  package func entries(of descriptor: CInt) throws(SystemError) -> [Entry] {
    // The stream takes over its descriptor, and a duplicate would share the position.
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

  /// Runs `body`, which needs a free name, and removes the entry that has the name.
  package func makeRoom<Value>(
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
