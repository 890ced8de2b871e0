import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The right to write a partial, which one opening has at a time, among all processes that reach its folder.
///
/// It is an entry beside the partial, `<partial>.owner`, that is made only where there is none and says whose it is.
/// That works on network file systems too, unlike `flock`, and costs one call to take and one to give back.
///
/// A holder that is provably gone has a successor, and only one: whoever makes `<partial>.owner.<hash of the
/// holder>`, which again is made only where there is none. A successor that dies before it has put its entry in the
/// holder's place is succeeded in the same way, so that there is a chain. Nobody unlinks what another one relies on,
/// as breaking a lock would:
/// - no two claims have the same text, so `<partial>.owner` never says again what it said before;
/// - who has made the last link reads all the others again, and `<partial>.owner` last. If that still names the first
///   of the chain, nobody has taken over meanwhile, and nobody can any more: whoever tries goes through this link;
/// - only then the link replaces the claim, by a rename.
struct PartialClaim: Sendable {
  /// The end of a claim's name.
  static let suffix = ".owner"
  /// How often others may be faster.
  private static let maximumRounds = 100
  /// The most successors that died before they had taken over. More means that somebody plays with the folder.
  private static let maximumLinks = 64

  private let partial: String
  private let path: String
  private let number: UInt64
  private let system: FileSystem

  /// Claims a partial.
  ///
  /// - Parameters:
  ///   - partial: its path; nothing has to be there but its folder.
  ///   - store: the store that the claim is for.
  /// - Returns: the claim, which is given back with ``release()``.
  /// - Throws: `DownloadError` with `.inUse` while somebody holds it, or may; `SystemError`.
  static func take(_ partial: String, for store: UInt64, system: FileSystem) throws -> PartialClaim {
    let claim = PartialClaim(
      partial: partial, path: partial + suffix, number: Claimants.begin(for: store), system: system)
    do {
      try claim.take()
    } catch {
      Claimants.end(claim.number)
      throw error
    }
    return claim
  }

  /// Gives the claim back. When the file system does not let go of the entry, it goes with the process at the latest.
  func release() {
    try? system.unlink(Entry(path))
    Claimants.end(number)
  }

  /// Removes a link that is left of a takeover, as the holder may: no chain leads to it any more.
  func removeLink(_ hash: Substring) {
    try? system.unlink(Entry(path + "." + hash))
  }

  /// Whether a store of this process holds a partial.
  static func isHeld(_ partial: String, by store: UInt64, system: FileSystem) throws(SystemError) -> Bool {
    try ClaimRecord.read(partial + suffix, system: system)?.store == store
  }

  /// Whether somebody holds a partial who is not provably gone.
  static func isHeld(_ partial: String, system: FileSystem) throws(SystemError) -> Bool {
    let path = partial + suffix
    var record = try ClaimRecord.read(path, system: system)
    for _ in 0..<maximumLinks {
      guard let last = record else { return false }
      if !last.isGone { return true }
      record = try ClaimRecord.read(path + "." + last.hash, system: system)
    }
    return true
  }

  // MARK: -

  private var text: String { Claimants.text(of: number) }

  private func take() throws {
    for _ in 0..<Self.maximumRounds {
      if try place(path) { return }
      // Given back meanwhile.
      guard let present = try ClaimRecord.read(path, system: system) else { continue }
      // Some network file systems make a call twice, and report how the second one went.
      if present.text == text { return }
      if try succeed(present) { return }
    }
    throw DownloadError(.inUse, "\(partial) is wanted by too many at once: try again later")
  }

  /// A link to a holder's successor, which is gone as well.
  private struct Link {
    let path: String
    let record: ClaimRecord
  }

  /// Takes over from a holder that is gone; false when somebody was faster.
  private func succeed(_ first: ClaimRecord) throws -> Bool {
    var links: [Link] = []
    var last = first
    while true {
      guard last.isGone, links.count < Self.maximumLinks else { throw last.inUse(partial, claim: path) }
      let link = path + "." + last.hash
      if try place(link) { return try replace(first, links, by: link) }
      guard let next = try ClaimRecord.read(link, system: system) else { return false }
      if next.text == text { return try replace(first, links, by: link) }
      links.append(Link(path: link, record: next))
      last = next
    }
  }

  /// Puts our link in the claim's place, if it is the last one of the chain that begins with the claim.
  ///
  /// An error leaves the link there: it is the next one to be succeeded.
  private func replace(_ first: ClaimRecord, _ links: [Link], by link: String) throws -> Bool {
    if let young = try youngest(in: [first] + links.map(\.record), at: link) {
      try? system.unlink(Entry(link))
      throw young.inUse(partial, claim: path)
    }
    // The claim last: see above.
    for (path, record) in links.map({ ($0.path, $0.record) }) + [(path, first)] {
      guard try ClaimRecord.read(path, system: system) == record else {
        try? system.unlink(Entry(link))
        return false
      }
    }
    do {
      try system.rename(Entry(link), to: Entry(path))
    } catch {
      if error.code != ENOENT { throw error }
    }
    guard try ClaimRecord.read(path, system: system)?.text == text else { return false }
    for link in links { try? system.unlink(Entry(link.path)) }
    return true
  }

  /// The holder that may still be writing its claim, if there is one. Our own link shows what time it is there.
  private func youngest(in records: [ClaimRecord], at link: String) throws(SystemError) -> ClaimRecord? {
    guard let record = records.max(by: { ($0.unfinishedSince ?? .min) < ($1.unfinishedSince ?? .min) }),
      let since = record.unfinishedSince
    else { return nil }
    let now = try system.status(Entry(link)).modified.seconds
    return now.subtractingReportingOverflow(since).partialValue < ClaimRecord.patience ? record : nil
  }

  private func place(_ path: String) throws(SystemError) -> Bool {
    try ClaimRecord.place(text, at: path, system: system)
  }
}
