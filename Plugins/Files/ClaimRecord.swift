import Crypto
import DownpipeCore
import DownpipeOwner

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What a claim on a partial says: who holds it.
///
/// It is the target of a symbolic link, which appears whole, in one call, and only where nothing is. Where a file
/// system has no symbolic links it is a file that ends in a line break.
struct ClaimRecord: Equatable, Sendable {
  /// The text; of a file that is not whole, what tells it from others.
  let text: String
  /// When a file that is not whole was made, in seconds by the clock of its file system; `nil` for all others.
  var unfinishedSince: Int64?

  /// The longest text that is read, in bytes.
  private static let maximumLength = 4096
  /// How long the writer of a file may take, in seconds. A process that was stopped for longer in just that moment
  /// gives the claim up itself, well before anybody else takes it over.
  static let patience: Int64 = 60

  // MARK: Whose it is

  /// The process, and the number of its claim; `nil` when nobody can tell.
  private var claimant: (owner: ProcessOwner, number: UInt64?)? { Claimants.claimant(text) }

  /// Whether nobody can work in its name any more. False when that cannot be proved, as for text that a later
  /// version may have written, and for other machines.
  ///
  /// A file that is not whole counts as left behind; how old it is has to be looked at besides.
  var isGone: Bool {
    if unfinishedSince != nil { return true }
    guard let (owner, number) = claimant else { return false }
    if let number, owner == Claimants.process { return Claimants.store(of: number) == nil }
    return owner.isGone
  }

  /// The store of this process that holds it.
  var store: UInt64? {
    guard let (owner, number) = claimant, let number, owner == Claimants.process else { return nil }
    return Claimants.store(of: number)
  }

  /// The failure of somebody who wants the partial as well.
  ///
  /// - Parameters:
  ///   - partial: its path.
  ///   - claim: the path of the claim.
  func inUse(_ partial: String, claim: String) -> DownloadError {
    let holder: String
    if unfinishedSince != nil {
      holder = "somebody who has begun to claim it a moment ago"
    } else if let (owner, _) = claimant {
      let host = text.prefix { $0 != "/" }
      holder =
        owner == Claimants.process
        ? "another download of this process, \(owner.process) on \(host)"
        : "the process \(owner.process) on \(host)"
    } else {
      holder = "somebody unknown"
    }
    return DownloadError(
      .inUse,
      "\(partial) is held by \(holder): wait until it is done, or end it; if it is certainly gone, remove \(claim)")
  }

  /// What stands in the name of the link to the holder's successor.
  var hash: String {
    SHA256.hash(data: Array(text.utf8)).prefix(8).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  // MARK: On disk

  /// Writes a claim where there is none; false when there is one.
  static func place(_ text: String, at path: String, system: FileSystem) throws(SystemError) -> Bool {
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
    return try placeFile(text, at: path, system: system)
  }

  private static func placeFile(_ text: String, at path: String, system: FileSystem) throws(SystemError) -> Bool {
    let began = ContinuousClock.now
    let file: CInt
    do {
      file = try system.open(Entry(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
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
      if ContinuousClock.now - began > .seconds(patience / 2) { throw SystemError(ETIMEDOUT) }
    } catch {
      try? system.unlink(Entry(path))
      throw error
    }
    return true
  }

  /// Reads a claim; `nil` when there is none.
  static func read(_ path: String, system: FileSystem) throws(SystemError) -> ClaimRecord? {
    do throws(SystemError) {
      let target = try system.target(ofLink: Entry(path))
      return ClaimRecord(text: String(decoding: target.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    } catch {
      if error.isAbsence { return nil }
      if error.code != EINVAL { throw error }
    }
    do throws(SystemError) {
      return try readFile(path, system: system)
    } catch {
      if error.isAbsence { return nil }
      // A link has replaced the file just now.
      if error.code == ELOOP || error.code == EMLINK { return try read(path, system: system) }
      throw error
    }
  }

  private static func readFile(_ path: String, system: FileSystem) throws(SystemError) -> ClaimRecord {
    let file = try system.open(Entry(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    defer { try? system.close(file) }
    let status = try system.status(file)
    // Nothing that we make.
    guard status.kind == .file else { return ClaimRecord(text: "") }
    var bytes = [UInt8](repeating: 0, count: maximumLength)
    var span = bytes.mutableSpan
    let count = try span.withUnsafeMutableBytes { buffer throws(SystemError) in
      try system.read(file, into: buffer, at: 0)
    }
    bytes.removeLast(bytes.count - count)
    guard bytes.last == UInt8(ascii: "\n"), !bytes.contains(0) else {
      return ClaimRecord(
        text: "\(status.inode)/\(status.modified.seconds).\(status.modified.nanoseconds)",
        unfinishedSince: status.modified.seconds)
    }
    return ClaimRecord(text: String(decoding: bytes.dropLast(), as: UTF8.self))
  }
}
