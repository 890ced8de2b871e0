import CSystemCalls
package import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension FileSystem {
  /// Sets the modification time of an open file; its access time stays. The file system may round the time or take the
  /// nearest one that it can store: read it back.
  package func setModified(_ descriptor: CInt, to date: Date) throws(SystemError) {
    let interval = date.timeIntervalSince1970
    let whole = interval.rounded(.down)
    guard let seconds = time_t(exactly: whole) else { throw SystemError(EINVAL) }
    let nanoseconds = Int(((interval - whole) * 1_000_000_000).rounded(.down))
    _ = try call(.setAttributes) { downpipe_set_modified(descriptor, Int64(seconds), min(nanoseconds, 999_999_999)) }
  }

  /// Sets an extended attribute of an open file.
  ///
  /// - Returns: False where the file system has no extended attributes, no room for this one, or if the file is
  ///   read-only.
  package func setAttribute(_ descriptor: CInt, _ name: String, _ value: [UInt8]) throws(SystemError) -> Bool {
    do throws(SystemError) {
      _ = try call(.setAttributes) { downpipe_set_attribute(descriptor, name, value, UInt(value.count)) }
      return true
    } catch {
      guard
        // Of a file without the right to write, Linux refuses with EACCES.
        [ENOTSUP, EOPNOTSUPP, ENOSYS, EPERM, EACCES, EINVAL, ENOSPC, EDQUOT, E2BIG, ERANGE, ENAMETOOLONG].contains(
          error.code)
      else { throw error }
      return false
    }
  }

  /// The value of an extended attribute of an open file; `nil` without one, and for a value of more than 64 KiB.
  package func attribute(_ descriptor: CInt, _ name: String) -> [UInt8]? {
    var value = [UInt8](repeating: 0, count: 65_536)
    let count = downpipe_attribute(descriptor, name, &value, UInt(value.count))
    return count >= 0 ? Array(value[..<count]) : nil
  }

  /// Returns when the bytes of an open file, and its times, permissions and extended attributes are on the disk.
  /// ``flush(_:)`` leaves out what is not needed to read the bytes.
  package func flushWithAttributes(_ descriptor: CInt) throws(SystemError) {
    #if canImport(Darwin)
      try flush(descriptor)
    #else
      _ = try call(.flush) { fsync(descriptor) }
    #endif
  }
}
