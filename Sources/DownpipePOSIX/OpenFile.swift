import Synchronization

#if canImport(Glibc)
  package import Glibc
#elseif canImport(Musl)
  package import Musl
#elseif canImport(Darwin)
  package import Darwin
#endif

/// An open file. It owns its descriptor and closes it when the last reference is released.
///
/// Its calls block. They repeat a call that a signal interrupted, and reads and writes go on until all bytes are moved.
package final class OpenFile: Sendable {
  /// Valid until ``close()`` or the end of this object.
  package let descriptor: CInt
  package let system: FileSystem
  private let isClosed = Atomic(false)

  private init(taking descriptor: CInt, system: FileSystem) {
    self.descriptor = descriptor
    self.system = system
  }

  deinit { try? close() }

  /// Opens an entry with the flags of open(2); `O_CLOEXEC` is added.
  package convenience init(
    _ entry: Entry, _ flags: CInt, mode: mode_t = 0o666, system: FileSystem = .system
  ) throws(SystemError) {
    self.init(taking: try system.open(entry, flags, mode: mode), system: system)
  }

  /// Opens a file for reading. It does not wait when the path is a FIFO without a writer: check ``status()`` first.
  ///
  /// - Parameter followingLink: Whether a symbolic link at the end of the path is followed; otherwise it fails with
  ///   `ELOOP`.
  package convenience init(
    reading path: String, followingLink: Bool = true, system: FileSystem = .system
  ) throws(SystemError) {
    try self.init(Entry(path), O_RDONLY | O_NONBLOCK | (followingLink ? 0 : O_NOFOLLOW), system: system)
  }

  /// Opens an entry; `nil` when it does not exist.
  package static func ifPresent(
    _ entry: Entry, _ flags: CInt, system: FileSystem = .system
  ) throws(SystemError) -> OpenFile? {
    do {
      return try OpenFile(entry, flags, system: system)
    } catch {
      if error.code == ENOENT { return nil }
      throw error
    }
  }

  /// Creates a file without a name in a folder; see ``FileSystem/openUnnamed(in:mode:)``.
  package static func unnamed(in folder: String, system: FileSystem = .system) throws(SystemError) -> OpenFile {
    OpenFile(taking: try system.openUnnamed(in: folder), system: system)
  }

  /// A second descriptor of the same open file.
  package func duplicate() throws(SystemError) -> OpenFile {
    OpenFile(taking: try system.duplicate(descriptor), system: system)
  }

  /// Closes the file now, once, and reports errors of earlier writes that the system reports only here.
  package func close() throws(SystemError) {
    if !isClosed.exchange(true, ordering: .acquiringAndReleasing) { try system.close(descriptor) }
  }

  package func status() throws(SystemError) -> FileStatus { try system.status(descriptor) }

  package func setPermissions(_ permissions: mode_t) throws(SystemError) {
    try system.permit(descriptor, permissions)
  }

  // MARK: Reading

  /// Reads until the buffer is full or the file ends, and returns the number of bytes.
  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
    try system.read(descriptor, into: buffer, at: offset)
  }

  /// Reads at most `count` bytes; fewer at the end of the file.
  package func read(_ count: Int, at offset: Int64) throws(SystemError) -> [UInt8] {
    var failure: SystemError?
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      do throws(SystemError) {
        filled = try read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return bytes
  }

  /// Reads the first `count` bytes, or all of them, in blocks; `body` returns whether it wants more.
  ///
  /// - Parameters:
  ///   - size: The bytes of a block; the last one is shorter.
  ///   - body: Receives each block and its offset.
  /// - Returns: The number of bytes read.
  @discardableResult
  package func forEachBlock(
    of size: Int, upTo count: Int64 = .max, _ body: (RawSpan, _ offset: Int64) throws -> Bool
  ) throws -> Int64 {
    try forEachBlock(of: size, in: 0..<max(0, count), body)
  }

  /// Reads a range in blocks, as far as the file has it.
  ///
  /// - Returns: The number of bytes read.
  @discardableResult
  package func forEachBlock(
    of size: Int, in range: Range<Int64>, _ body: (RawSpan, _ offset: Int64) throws -> Bool
  ) throws -> Int64 {
    try withUnsafeTemporaryAllocation(byteCount: size, alignment: 16) { buffer in
      var offset = range.lowerBound
      while offset < range.upperBound {
        let wanted = Int(min(Int64(size), range.upperBound - offset))
        let got = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
        guard got > 0 else { break }
        let block = UnsafeRawBufferPointer(rebasing: buffer[..<got]).bytes
        let wantsMore = try body(block, offset)
        offset += Int64(got)
        if got < wanted || !wantsMore { break }
      }
      return offset - range.lowerBound
    }
  }

  // MARK: Writing

  /// Writes all the bytes.
  package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
    try system.write(descriptor, bytes, at: offset)
  }

  /// Writes all the bytes.
  package func write(_ bytes: RawSpan, at offset: Int64) throws(SystemError) {
    try bytes.withUnsafeBytes { buffer throws(SystemError) in try write(buffer, at: offset) }
  }

  package func truncate(to size: Int64) throws(SystemError) { try system.truncate(descriptor, to: size) }

  /// Returns when the file's bytes and its size are on the disk.
  package func flush() throws(SystemError) { try system.flush(descriptor) }
}
