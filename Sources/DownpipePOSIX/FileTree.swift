package import DownpipeCore

#if canImport(Glibc)
  package import Glibc
#elseif canImport(Musl)
  package import Musl
#elseif canImport(Darwin)
  package import Darwin
#endif

/// Operations on a file, or on a folder and everything below it.
///
/// Symbolic links are never followed. Trees deeper than ``maximumDepth`` are refused, since each level holds a
/// descriptor open.
package struct FileTree: Sendable {
  package static let maximumDepth = 256

  package let system: FileSystem
  /// Whether copying and comparing end with `CancellationError`.
  package let isCancelled: @Sendable () -> Bool

  package init(system: FileSystem, isCancelled: @escaping @Sendable () -> Bool = { false }) {
    self.system = system
    self.isCancelled = isCancelled
  }

  // MARK: Removing

  /// Removes an entry and everything below it; does nothing when it does not exist.
  package func remove(_ entry: Entry) throws(SystemError) {
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
      let folder = try openFolder(entry)
      for child in try system.entries(of: folder.descriptor) { try remove(child, depth: depth + 1) }
      try folder.close()
      try system.removeFolder(entry)
    } catch {
      if error.code != ENOENT { throw error }
    }
  }

  // MARK: Flushing

  /// Flushes a file, or every file and folder of a tree, to the disk.
  package func flush(_ entry: Entry) throws(SystemError) {
    try flush(entry, depth: 0)
  }

  private func flush(_ entry: Entry, depth: Int) throws(SystemError) {
    let status = try system.status(entry)
    switch status.kind {
    case .file:
      let file = try OpenFile(entry, O_RDONLY | O_NOFOLLOW, system: system)
      try file.flush()
      try file.close()
    case .folder:
      try checkDepth(depth)
      let folder = try openFolder(entry)
      for child in try system.entries(of: folder.descriptor) { try flush(child, depth: depth + 1) }
      try system.flushFolder(folder.descriptor)
      try folder.close()
    case .link, .other:
      break
    }
  }

  // MARK: Copying

  /// Copies a file or a tree to a free name, with its permissions and the times of its files.
  package func copy(_ source: Entry, to target: Entry, durability: Durability) throws {
    try copy(source, to: target, durability: durability, depth: 0)
  }

  private func copy(_ source: Entry, to target: Entry, durability: Durability, depth: Int) throws {
    let status = try system.status(source)
    switch status.kind {
    case .file:
      let input = try OpenFile(source, O_RDONLY | O_NOFOLLOW, system: system)
      try copy(input, to: target, durability: durability, permissions: status.permissions, status)
    case .folder:
      try checkDepth(depth)
      let input = try openFolder(source)
      try system.makeFolder(target)
      let output = try openFolder(target)
      for child in try system.entries(of: input.descriptor) {
        try copy(child, to: child.moved(to: output.descriptor), durability: durability, depth: depth + 1)
      }
      try system.setPermissions(output.descriptor, status.permissions)
      if durability == .power { try system.flushFolder(output.descriptor) }
      try output.close()
      // The entries refer to the descriptor, which must stay open until here.
      try input.close()
    case .link:
      try system.makeLink(target, to: try system.target(ofLink: source))
    case .other:
      throw DownloadError(
        .storage, "\(source.name) is a device, a socket or a FIFO, which cannot be moved: remove it from the folder")
    }
  }

  /// Creates a file with bytes that are in memory.
  package func write(_ bytes: [UInt8], to target: Entry, durability: Durability) throws {
    try write(to: target, durability: durability) { output in try output.write(bytes.span.bytes, at: 0) }
  }

  /// Copies an open file to a free name, with the permissions of a new file unless others are given.
  package func copy(
    _ source: OpenFile, to target: Entry, durability: Durability, permissions: mode_t? = nil, _ status: FileStatus
  ) throws {
    try write(to: target, durability: durability, permissions: permissions, status) { output in
      try source.forEachBlock(of: Self.bufferSize) { block, offset in
        if isCancelled() { throw CancellationError() }
        try output.write(block, at: offset)
        return true
      }
    }
  }

  private static let bufferSize = 1 << 20

  private func write(
    to target: Entry, durability: Durability, permissions: mode_t? = nil, _ status: FileStatus? = nil,
    _ fill: (OpenFile) throws -> Void
  ) throws {
    let output = try OpenFile(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, system: system)
    try fill(output)
    // Some file systems store neither permissions nor times, and the copy is complete without them.
    if let permissions { try? system.setPermissions(output.descriptor, permissions) }
    if let status { try? system.setModified(output.descriptor, like: status) }
    if durability == .power { try output.flush() }
    try output.close()
  }

  // MARK: Comparing

  /// Whether two files have the same bytes.
  package func isEqual(_ one: Entry, _ other: Entry) throws -> Bool {
    try isEqual(try OpenFile(one, O_RDONLY | O_NOFOLLOW, system: system), other)
  }

  /// Whether an open file has the same bytes as another file.
  package func isEqual(_ left: OpenFile, _ other: Entry) throws -> Bool {
    let right = try OpenFile(other, O_RDONLY | O_NOFOLLOW, system: system)
    guard try left.status().size == right.status().size else { return false }
    return try withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 16) { buffer in
      var isEqual = true
      let count = try left.forEachBlock(of: Self.bufferSize) { block, offset in
        if isCancelled() { throw CancellationError() }
        let mine = UnsafeMutableRawBufferPointer(rebasing: buffer[..<block.byteCount])
        let got = try right.read(into: mine, at: offset)
        isEqual = block.withUnsafeBytes { bytes in
          guard let one = bytes.baseAddress, let other = mine.baseAddress else { return false }
          return got == bytes.count && memcmp(one, other, got) == 0
        }
        return isEqual
      }
      // The other file may have grown since.
      return try isEqual && right.read(into: buffer, at: count) == 0
    }
  }

  // MARK: -

  private func openFolder(_ entry: Entry) throws(SystemError) -> OpenFile {
    try OpenFile(entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, system: system)
  }

  private func checkDepth(_ depth: Int) throws(SystemError) {
    if depth >= Self.maximumDepth { throw SystemError(ELOOP) }
  }
}
