import DownpipePOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The entry in a folder that represents a claim. Its text is a ``ProcessOwner``, and its modification time is the
/// start of the lease.
///
/// The entry is a symbolic link whose target is the text. One call creates it completely, and fails if it exists. On
/// file systems without symbolic links it is a file whose text ends with a line break.
struct ClaimEntry: Sendable {
  let path: String
  let system: FileSystem

  /// The longest text that is read, in bytes.
  private static let maximumLength = 4096

  private var entry: Entry { Entry(path) }

  /// Whether the owner is gone, or is not provably alive and has not renewed its lease.
  func isAbandoned(_ text: String) throws(SystemError) -> Bool {
    switch ProcessOwner.standing(of: text) {
    case .alive: false
    case .gone: true
    case .unknown: try hasExpired()
    }
  }

  /// Whether the lease has expired, by the clock of the file system: touching the folder reads that clock. The clocks
  /// of two machines may differ.
  private func hasExpired() throws(SystemError) -> Bool {
    guard let status = try system.statusIfPresent(entry) else { return true }
    let folder = Entry(PathText.split(path).folder)
    try system.touch(folder)
    let now = try system.status(folder).modified.seconds
    let (age, overflow) = now.subtractingReportingOverflow(status.modified.seconds)
    // A time far in the future comes from a clock that was set back since.
    return overflow || age >= PartialClaim.lease || age <= -PartialClaim.lease
  }

  /// Creates the entry; false when it exists.
  func create(_ text: String) throws(SystemError) -> Bool {
    do {
      try system.makeLink(entry, to: Array(text.utf8CString))
      return true
    } catch {
      switch error.code {
      case EEXIST: return false
      // The file system has no symbolic links, or only shorter ones.
      case EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS, ENAMETOOLONG: return try createFile(text)
      default: throw error
      }
    }
  }

  private func createFile(_ text: String) throws(SystemError) -> Bool {
    let file: OpenFile
    do {
      file = try OpenFile(entry, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, system: system)
    } catch {
      if error.code == EEXIST { return false }
      throw error
    }
    do throws(SystemError) {
      try file.write(Array("\(text)\n".utf8).span.bytes, at: 0)
      try file.close()
      // If writing took longer than the lease, another process may have removed the entry.
      return try self.text() == text
    } catch {
      remove()
      throw error
    }
  }

  func remove() { try? system.unlink(entry) }

  /// The text of the entry; empty when it is incomplete, `nil` when the entry does not exist.
  func text() throws(SystemError) -> String? {
    do throws(SystemError) {
      let target = try system.target(ofLink: entry)
      return String(decoding: target.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    } catch {
      if error.isAbsence { return nil }
      if error.code != EINVAL { throw error }
    }
    do throws(SystemError) {
      return try textOfFile()
    } catch {
      if error.isAbsence { return nil }
      // A symbolic link has replaced the file since.
      if error.code == ELOOP || error.code == EMLINK { return try text() }
      throw error
    }
  }

  private func textOfFile() throws(SystemError) -> String {
    let file = try OpenFile(reading: path, followingLink: false, system: system)
    guard try file.status().kind == .file else { return "" }
    let bytes = try file.read(Self.maximumLength, at: 0)
    guard bytes.last == UInt8(ascii: "\n"), !bytes.contains(0) else { return "" }
    return String(decoding: bytes.dropLast(), as: UTF8.self)
  }
}
