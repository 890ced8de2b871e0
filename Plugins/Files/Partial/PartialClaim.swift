import DownpipeCore
import DownpipePOSIX
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The exclusive right to write the named file of a partial, among all processes that reach its folder.
///
/// A claim is an entry beside the partial, `<partial>.owner`, which is created only where none exists and names its
/// owner (see ``ClaimEntry``). Taking it costs one call and works on network file systems. The owner renews the entry's
/// modification time (see ``ClaimRenewal``). What happens to an existing claim depends on its owner:
///
/// - If the owner is provably alive, it keeps the claim, also when its process is stopped.
/// - If the owner is provably gone, the claim is removed at once.
/// - Otherwise the claim is removed when it was not renewed for ``lease`` seconds, by the clock of the file system.
///   Such an owner may continue and write to the file it has open. So the new owner continues with a copy of the file.
///
/// Why these mechanisms and no others:
/// - A lock of the kernel alone (flock) would not do: some network mounts keep it on one machine, and a server may hold
///   the lock of a machine that crashed for ever.
/// - Removing a claim is exclusive by a flock on the folder. Without it, two processes that find the same abandoned
///   claim could each remove an entry, the second one that of the first. Where the file system has no such locks, the
///   file is copied there, too. After the removal claiming starts again, so that only creating the entry decides.
final class PartialClaim: Sendable {
  /// The suffix of the entry's name.
  static let suffix = ".owner"
  /// The suffix of a copy while it is made.
  static let copySuffix = ".copy"
  /// The seconds that a claim is valid after it was taken or renewed.
  static let lease: Int64 = 60
  /// How often other processes may be faster before taking fails.
  private static let maximumRounds = 1000

  private let partial: String
  private let owner = ProcessOwner.new()
  private let system: FileSystem
  private let isReleased = Atomic(false)

  private var entry: ClaimEntry { ClaimEntry(path: partial + Self.suffix, system: system) }

  private init(_ partial: String, system: FileSystem) {
    self.partial = partial
    self.system = system
  }

  /// Claims a partial.
  ///
  /// - Parameters:
  ///   - partial: Its path; only its folder must exist.
  ///   - keepingBytes: Whether the file under the name is needed. If not, it is removed instead of copied where an
  ///     earlier owner may still write to it.
  /// - Throws: `DownloadError` with `.inUse` while another owner has the claim, or may have it; `SystemError`.
  static func take(
    _ partial: String, keepingBytes: Bool, durability: Durability, system: FileSystem
  ) throws -> PartialClaim {
    let claim = PartialClaim(partial, system: system)
    do {
      try claim.take(keepingBytes: keepingBytes, durability)
    } catch {
      claim.owner.end()
      throw error
    }
    ClaimRenewal.add(claim)
    return claim
  }

  /// Releases the claim. The owner ends even if the entry cannot be removed, so that others take the claim over at
  /// once.
  func release() {
    guard !isReleased.exchange(true, ordering: .relaxed) else { return }
    ClaimRenewal.remove(self)
    if (try? isOurs()) != false { entry.remove() }
    owner.end()
  }

  /// Checks that no other owner has taken the claim over.
  /// - Throws: `DownloadError` with `.inUse` if one has; `SystemError`.
  func check() throws {
    if try isOurs() { return }
    throw DownloadError(
      .inUse,
      "\(partial) was taken over by another owner, since this process did not renew its claim for \(Self.lease) "
        + "seconds: wait until it is done")
  }

  /// Starts the lease anew.
  func renew() {
    if (try? isOurs()) == true { try? system.touch(Entry(entry.path)) }
  }

  /// Whether a partial has a claim that cannot be taken over.
  static func isHeld(_ partial: String, system: FileSystem) throws(SystemError) -> Bool {
    let entry = ClaimEntry(path: partial + suffix, system: system)
    guard let text = try entry.text() else { return false }
    return try !entry.isAbandoned(text)
  }

  // MARK: -

  private func isOurs() throws(SystemError) -> Bool { try entry.text() == owner.text }

  private func take(keepingBytes: Bool, _ durability: Durability) throws {
    for _ in 0..<Self.maximumRounds {
      if try entry.create(owner.text) { return }
      // Released since.
      guard let present = try entry.text() else { continue }
      // Some network file systems repeat a call and report the result of the second one.
      if present == owner.text { return }
      guard try entry.isAbandoned(present) else { throw inUse(present) }
      try remove(present, keepingBytes: keepingBytes, durability)
    }
    throw DownloadError(.inUse, "\(partial) is requested by too many processes at once: try again later")
  }

  /// Removes an abandoned claim, unless another process is removing one in this folder.
  private func remove(_ present: String, keepingBytes: Bool, _ durability: Durability) throws {
    let folder = try OpenFolder(PathText.split(partial).folder, system: system)
    // The lock ends when the folder is closed.
    defer { withExtendedLifetime(folder) {} }
    let isLocked: Bool
    do {
      isLocked = try system.lock(folder.descriptor)
    } catch {
      if error.code != EWOULDBLOCK { throw error }
      sched_yield()
      return
    }
    guard try entry.text() == present, try entry.isAbandoned(present) else { return }
    // The file before the claim: if this process ends in between, the claim is still abandoned.
    if !isLocked || ProcessOwner.standing(of: present) != .gone {
      try replaceFile(keepingBytes: keepingBytes, durability)
    }
    try system.unlink(Entry(entry.path))
  }

  /// Gives the name to another file than the one that the earlier owner may still write to.
  private func replaceFile(keepingBytes: Bool, _ durability: Durability) throws {
    do {
      guard keepingBytes else { return try system.unlink(Entry(partial)) }
      let copy = Entry(partial + Self.copySuffix)
      let tree = FileTree(system: system)
      try tree.remove(copy)
      try tree.copy(Entry(partial), to: copy, durability: durability)
      try system.rename(copy, to: Entry(partial))
    } catch let error as SystemError where error.code == ENOENT {}
  }

  private func inUse(_ text: String) -> DownloadError {
    let holder: String
    if let owner = ProcessOwner(text) {
      let isThisProcess = owner.process == self.owner.process && owner.boot == self.owner.boot
      holder =
        (isThisProcess ? "another download of this process," : "the process") + " \(owner.process) on \(owner.host)"
    } else {
      holder = "an unknown owner"
    }
    let advice =
      ProcessOwner.standing(of: text) == .alive
      ? "wait until it is done, or end it"
      : "wait; others can take it over \(Self.lease) seconds after the owner last renewed \(entry.path)"
    return DownloadError(.inUse, "\(partial) is held by \(holder): \(advice)")
  }
}
