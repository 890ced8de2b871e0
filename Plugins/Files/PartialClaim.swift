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

/// The right to write the named file of a partial, which one opening has at a time, among all processes that reach its
/// folder.
///
/// It is an entry beside the partial, `<partial>.owner`, that is made only where there is none and says whose it is
/// (see ``ClaimEntry``). That works on network file systems, too, and costs one call to take. The holder renews its
/// time of change (see ``ClaimRenewal``).
///
/// - A holder that provably lives keeps the claim, also a stopped one.
/// - The claim of a holder that is provably gone is removed at once.
/// - All others are given up when they were not renewed for ``lease`` seconds, by the clock of the file system. Such a
///   holder may come back and go on writing, so that the successor gets a file of its own: a copy under the name.
///
/// Those who remove a claim exclude each other by a lock on the folder. Where there are no such locks a copy is made as
/// well. Then claiming begins anew, so that only making the entry decides.
final class PartialClaim: Sendable {
  /// The end of a claim's name.
  static let suffix = ".owner"
  /// The end of the name of a copy that is being made.
  static let copySuffix = ".copy"
  /// How long a claim is valid after it was made or renewed, in seconds.
  static let lease: Int64 = 60
  /// How often others may be faster.
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
  ///   - partial: its path; nothing has to be there but its folder.
  ///   - keepingBytes: whether what lies under the name is still wanted. If not, it is removed where its holder may
  ///     still write it.
  /// - Throws: `DownloadError` with `.inUse` while another owner holds it, or may; `SystemError`.
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

  /// Gives the claim back. When the file system does not let go of the entry, its holder is gone nevertheless.
  func release() {
    guard !isReleased.exchange(true, ordering: .relaxed) else { return }
    ClaimRenewal.remove(self)
    if (try? isOurs()) != false { entry.remove() }
    owner.end()
  }

  /// Makes sure that the lease has not been given up meanwhile.
  /// - Throws: `DownloadError` with `.inUse` when another owner has taken over; `SystemError`.
  func check() throws {
    if try isOurs() { return }
    throw DownloadError(
      .inUse,
      "\(partial) was taken over by another owner, since this process did not renew its claim for \(Self.lease) "
        + "seconds: wait until it is done")
  }

  /// Extends the lease.
  func renew() {
    if (try? isOurs()) == true { try? system.touch(Entry(entry.path)) }
  }

  /// Whether an owner holds a partial who is not provably gone, and whose lease is not over.
  static func isHeld(_ partial: String, system: FileSystem) throws(SystemError) -> Bool {
    let entry = ClaimEntry(path: partial + suffix, system: system)
    guard let text = try entry.text() else { return false }
    return try !entry.isAbandoned(text)
  }

  // MARK: -

  private func isOurs() throws(SystemError) -> Bool { try entry.text() == owner.text }

  private func take(keepingBytes: Bool, _ durability: Durability) throws {
    for _ in 0..<Self.maximumRounds {
      if try entry.place(owner.text) { return }
      // Given back meanwhile.
      guard let present = try entry.text() else { continue }
      // Some network file systems make a call twice, and report how the second one went.
      if present == owner.text { return }
      guard try entry.isAbandoned(present) else { throw inUse(present) }
      try remove(present, keepingBytes: keepingBytes, durability)
    }
    throw DownloadError(.inUse, "\(partial) is wanted by too many at once: try again later")
  }

  /// Removes the claim of a holder that is gone, or whose lease is over, unless another one is doing so.
  private func remove(_ present: String, keepingBytes: Bool, _ durability: Durability) throws {
    let folder = try OpenFolder(PathText.split(partial).folder, system: system)
    let isLocked: Bool
    do {
      isLocked = try system.lock(folder.descriptor)
    } catch {
      if error.code != EWOULDBLOCK { throw error }
      sched_yield()
      return
    }
    guard try entry.text() == present, try entry.isAbandoned(present) else { return }
    // The file before the claim: who dies in between leaves a claim that says the same as before.
    if !isLocked || ClaimEntry.standing(present) != .gone {
      try replaceFile(keepingBytes: keepingBytes, durability)
    }
    try system.unlink(Entry(entry.path))
  }

  /// Makes what the earlier holder may still write another file than the one under the name.
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
      holder =
        "\(owner.process == self.owner.process && owner.boot == self.owner.boot ? "another download of this process," : "the process") "
        + "\(owner.process) on \(owner.host)"
    } else {
      holder = "an unknown owner"
    }
    let advice =
      ClaimEntry.standing(text) == .alive
      ? "wait until it is done, or end it"
      : "wait; it is given up \(Self.lease) seconds after its owner has last renewed \(entry.path)"
    return DownloadError(.inUse, "\(partial) is held by \(holder): \(advice)")
  }
}
