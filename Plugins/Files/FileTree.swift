import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What is done to a file, or to a folder and all below it.
///
/// Symbolic links are never followed. Trees deeper than ``maximumDepth`` are refused: each level holds a
/// descriptor open.
struct FileTree: Sendable {
  /// The most folders below each other.
  static let maximumDepth = 256

  let system: FileSystem
  /// Says when to give up.
  var isCancelled: @Sendable () -> Bool = { false }

  // MARK: Removing

  /// Removes an entry and all below it; nothing when it is not there.
  func remove(_ entry: Entry) throws(SystemError) {
    try remove(entry, depth: 0)
  }

  private func remove(_ entry: Entry, depth: Int) throws(SystemError) {
    do throws(SystemError) {
      let status = try system.status(entry)
      guard status.kind == .folder else { return try system.unlink(entry) }
      try checkDepth(depth)
      do {
        return try system.removeFolder(entry)
      } catch {
        guard error.code == ENOTEMPTY || error.code == EEXIST else { throw error }
      }
      let folder = try system.open(entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      try closing(folder) { () throws(SystemError) in
        for child in try system.entries(of: folder) { try remove(child, depth: depth + 1) }
      }
      try system.removeFolder(entry)
    } catch {
      if error.code != ENOENT { throw error }
    }
  }

  // MARK: Flushing

  /// Flushes a file, or every file and folder of a tree, to the disk.
  func flush(_ entry: Entry) throws(SystemError) {
    try flush(entry, depth: 0)
  }

  private func flush(_ entry: Entry, depth: Int) throws(SystemError) {
    let status = try system.status(entry)
    switch status.kind {
    case .file:
      let file = try system.open(entry, O_RDONLY | O_NOFOLLOW)
      try closing(file) { () throws(SystemError) in try system.flush(file) }
    case .folder:
      try checkDepth(depth)
      let folder = try system.open(entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      try closing(folder) { () throws(SystemError) in
        for child in try system.entries(of: folder) { try flush(child, depth: depth + 1) }
        try system.flushFolder(folder)
      }
    case .link, .other:
      break
    }
  }

  // MARK: Copying

  /// Copies a file or a tree to a name that is free, with its permissions and the times of its files.
  func copy(_ source: Entry, to target: Entry, durability: Durability) throws {
    try copy(source, to: target, durability: durability, depth: 0)
  }

  private func copy(_ source: Entry, to target: Entry, durability: Durability, depth: Int) throws {
    let status = try system.status(source)
    switch status.kind {
    case .file:
      let input = try system.open(source, O_RDONLY | O_NOFOLLOW)
      try closing(input) {
        try copy(input, to: target, durability: durability, permissions: status.permissions, status)
      }
    case .folder:
      try checkDepth(depth)
      let input = try system.open(source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      try closing(input) {
        try system.makeFolder(target)
        let output = try system.open(target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
        try closing(output) {
          for child in try system.entries(of: input) {
            try copy(child, to: child.moved(to: output), durability: durability, depth: depth + 1)
          }
          try system.setPermissions(output, status.permissions)
          if durability == .power { try system.flushFolder(output) }
        }
      }
    case .link:
      try system.makeLink(target, to: try system.target(ofLink: source))
    case .other:
      throw DownloadError(.storage, "\(source.name) is neither a file nor a folder: it cannot be moved")
    }
  }

  /// Makes a file with bytes that are in memory.
  func write(_ bytes: [UInt8], to target: Entry, durability: Durability) throws {
    try write(to: target, durability: durability) { output in
      try bytes.withUnsafeBytes { buffer in try system.write(output, buffer, at: 0) }
    }
  }

  /// Copies an open file to a name that is free, with the permissions of a new file unless others are given.
  func copy(
    _ source: CInt, to target: Entry, durability: Durability, permissions: mode_t? = nil, _ status: FileStatus
  ) throws {
    try write(to: target, durability: durability, permissions: permissions, status) { output in
      try copyBytes(from: source, to: output)
    }
  }

  private func write(
    to target: Entry, durability: Durability, permissions: mode_t? = nil, _ status: FileStatus? = nil,
    _ fill: (CInt) throws -> Void
  ) throws {
    let output = try system.open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
    try closing(output) {
      try fill(output)
      // Some file systems have neither; the bytes are what matters.
      if let permissions { try? system.setPermissions(output, permissions) }
      if let status { try? system.setModified(output, like: status) }
      if durability == .power { try system.flush(output) }
    }
  }

  private static let bufferSize = 1 << 20

  private func copyBytes(from input: CInt, to output: CInt) throws {
    try withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 16) { buffer in
      var offset: Int64 = 0
      while true {
        if isCancelled() { throw CancellationError() }
        let count = try system.read(input, into: buffer, at: offset)
        try system.write(output, UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
        offset += Int64(count)
        if count < buffer.count { return }
      }
    }
  }

  // MARK: Comparing

  /// Whether two files hold the same bytes.
  func isEqual(_ one: Entry, _ other: Entry) throws -> Bool {
    let left = try system.open(one, O_RDONLY | O_NOFOLLOW)
    return try closing(left) { try isEqual(left, other) }
  }

  /// Whether an open file holds the same bytes as another one.
  func isEqual(_ left: CInt, _ other: Entry) throws -> Bool {
    let right = try system.open(other, O_RDONLY | O_NOFOLLOW)
    return try closing(right) {
      guard try system.status(left).size == system.status(right).size else { return false }
      return try withUnsafeTemporaryAllocation(byteCount: 2 * Self.bufferSize, alignment: 16) { buffer in
        let first = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Self.bufferSize])
        let second = UnsafeMutableRawBufferPointer(rebasing: buffer[Self.bufferSize...])
        var offset: Int64 = 0
        while true {
          if isCancelled() { throw CancellationError() }
          let count = try system.read(left, into: first, at: offset)
          guard try system.read(right, into: second, at: offset) == count else { return false }
          guard count > 0 else { return true }
          guard let one = first.baseAddress, let other = second.baseAddress, memcmp(one, other, count) == 0
          else { return false }
          offset += Int64(count)
        }
      }
    }
  }

  // MARK: -

  private func checkDepth(_ depth: Int) throws(SystemError) {
    if depth >= Self.maximumDepth { throw SystemError(ELOOP) }
  }

  /// Closes a descriptor after the work; the work's error comes before that of closing.
  private func closing<Value, Failure: Error>(_ descriptor: CInt, _ body: () throws(Failure) -> Value) throws -> Value {
    let value: Value
    do {
      value = try body()
    } catch {
      try? system.close(descriptor)
      throw error
    }
    try system.close(descriptor)
    return value
  }

  private func closing(_ descriptor: CInt, _ body: () throws(SystemError) -> Void) throws(SystemError) {
    do {
      try body()
    } catch {
      try? system.close(descriptor)
      throw error
    }
    try system.close(descriptor)
  }
}
