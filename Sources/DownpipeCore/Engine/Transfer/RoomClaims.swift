internal import Synchronization

/// The space that running downloads have claimed for the bytes that they have yet to receive.
final class RoomClaims: Sendable {
  private struct Claim: Sendable {
    let run: Run
    let total: Int64
    /// The claimed bytes that are not on disk yet.
    var rest: Int64 { max(0, total - run.received) }
  }

  private let claims = Mutex<[ObjectIdentifier: Claim]>([:])

  /// The claimed bytes that are not on disk yet.
  var total: Int64 { claims.withLock { $0.values.reduce(Int64(0)) { $0.addingSaturated($1.rest) } } }

  /// The number of claims.
  var count: Int { claims.withLock { $0.count } }

  /// Whether a run has a claim.
  func hasClaim(_ run: Run) -> Bool { claims.withLock { $0[ObjectIdentifier(run)] != nil } }

  /// Claims the bytes that a run of a download of known size has yet to receive, if they fit beside those of others.
  ///
  /// - Returns: The number of missing bytes; `nil` if they fit.
  func claim(_ total: Int64, for run: Run, in room: Int64) -> Int64? {
    claims.withLock { claims in
      let claim = Claim(run: run, total: total)
      let others = claims.values.reduce(Int64(0)) { $1.run === run ? $0 : $0.addingSaturated($1.rest) }
      let needed = claim.rest.addingSaturated(others)
      guard needed <= room else { return needed.subtractingClamped(room) }
      claims[ObjectIdentifier(run)] = claim
      return nil
    }
  }

  /// Releases the claim of a run that has ended.
  func release(_ run: Run) { claims.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(run)) } }
}

extension Int64 {
  fileprivate func subtractingClamped(_ other: Int64) -> Int64 {
    let (difference, isTooMuch) = subtractingReportingOverflow(other)
    return isTooMuch ? .max : difference
  }
}
