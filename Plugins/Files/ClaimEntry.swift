import DownpipePOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The entry in a folder that a claim is: its text is a ``ProcessOwner``, its time of change begins the lease.
///
/// It is a symbolic link with the text as its target, which appears whole, in one call, and only where nothing is.
/// Where a file system has no symbolic links it is a file that ends in a line break.
struct ClaimEntry: Sendable {
  let path: String
  let system: FileSystem

  /// The longest text that is read, in bytes.
  private static let maximumLength = 4096

  /// What is known of the owner that a text names. Of text that a later version may have written only the lease tells.
  static func standing(_ text: String) -> ProcessOwner.Standing { ProcessOwner(text)?.standing ?? .unknown }

  /// Whether the owner is gone, or cannot be proved alive and has not renewed its lease.
  func isAbandoned(_ text: String) throws(SystemError) -> Bool {
    switch Self.standing(text) {
    case .alive: false
    case .gone: true
    case .unknown: try hasExpired()
    }
  }

  /// Whether the lease is over, by the clock of the file system: the time of its folder, which is changed for that.
  private func hasExpired() throws(SystemError) -> Bool {
    guard let status = try system.statusIfPresent(Entry(path)) else { return true }
    let folder = Entry(PathText.split(path).folder)
    try system.touch(folder)
    let now = try system.status(folder).modified.seconds
    let (age, overflow) = now.subtractingReportingOverflow(status.modified.seconds)
    // A time far ahead was written by a clock that has been put right since.
    return overflow || age >= PartialClaim.lease || age <= -PartialClaim.lease
  }

  /// Makes the entry where there is none; false when there is one.
  func place(_ text: String) throws(SystemError) -> Bool {
    do {
      try system.makeLink(Entry(path), to: Array(text.utf8CString))
      return true
    } catch {
      switch error.code {
      case EEXIST: return false
      case EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS, ENAMETOOLONG: break  // no symbolic links here, or not such long ones
      default: throw error
      }
    }
    return try placeFile(text)
  }

  private func placeFile(_ text: String) throws(SystemError) -> Bool {
    let file: CInt
    do {
      file = try system.open(Entry(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    } catch {
      if error.code == EEXIST { return false }
      throw error
    }
    do throws(SystemError) {
      let bytes = Array(text.utf8) + [UInt8(ascii: "\n")]
      do throws(SystemError) {
        try bytes.span.bytes.withUnsafeBytes { buffer throws(SystemError) in
          try system.write(file, buffer, at: 0)
        }
      } catch {
        try? system.close(file)
        throw error
      }
      try system.close(file)
      // A writer that was held up for longer than the lease has lost the entry.
      return try self.text() == text
    } catch {
      remove()
      throw error
    }
  }

  /// Removes the entry.
  func remove() { try? system.unlink(Entry(path)) }

  /// What the entry says, empty for what is not whole; `nil` when there is none.
  func text() throws(SystemError) -> String? {
    do throws(SystemError) {
      let target = try system.target(ofLink: Entry(path))
      return String(decoding: target.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    } catch {
      if error.isAbsence { return nil }
      if error.code != EINVAL { throw error }
    }
    do throws(SystemError) {
      return try textOfFile()
    } catch {
      if error.isAbsence { return nil }
      // A link has replaced the file just now.
      if error.code == ELOOP || error.code == EMLINK { return try text() }
      throw error
    }
  }

  private func textOfFile() throws(SystemError) -> String {
    let file = try system.open(Entry(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    defer { try? system.close(file) }
    guard try system.status(file).kind == .file else { return "" }
    var bytes = [UInt8](repeating: 0, count: Self.maximumLength)
    var span = bytes.mutableSpan
    let count = try span.withUnsafeMutableBytes { buffer throws(SystemError) in
      try system.read(file, into: buffer, at: 0)
    }
    bytes.removeLast(bytes.count - count)
    guard bytes.last == UInt8(ascii: "\n"), !bytes.contains(0) else { return "" }
    return String(decoding: bytes.dropLast(), as: UTF8.self)
  }
}
