internal import Foundation
internal import Synchronization

// What follows when a whole file was proved wrong: the place that has sent it is excluded, and the next one is asked.
extension Run {
  /// Failures that prove the bytes on disk wrong.
  static let provesWrongBytes: Set<DownloadError.Code> = [.digestMismatch, .damaged]

  // MARK: Places

  /// Whether there is a place beside the one in use that has not sent wrong bytes.
  var hasOtherPlace: Bool {
    guard read({ !$0.request.mirrors.isEmpty }) else { return false }
    let places = places
    return places.hasOther(than: places.currentURL)
  }

  /// Forgets which places were excluded after the download has failed, or when they are all that is left: the next run
  /// asks all of them.
  func forgetExclusions(after error: DownloadError, _ decision: RetryDecision) {
    if case .giveUp = decision { return context.placeMemory.forget(key) }
    if Self.provesWrongBytes.contains(error.code), !hasOtherPlace { context.placeMemory.forget(key) }
  }

  /// An error with the place that has sent wrong bytes, and all such places if there are several.
  func naming(_ error: DownloadError) -> DownloadError {
    var error = error
    var wrong = read { context.placeMemory.excluded(of: $0) }
    if Self.provesWrongBytes.contains(error.code) {
      let known = originsOfBytes.known.map(\.place)
      if known.count > 1 {
        error.message += "; its bytes came from \(Self.list(known))"
        return error
      }
      if let place = known.first { error = error.located(stage: nil, url: place, attempt: nil) }
      wrong += known.filter { !wrong.contains($0) }
      if wrong.count < 2 { return error }
    }
    if error.code == .pieceMismatch {
      let senders = findings.withLock { $0.places.senders }
      if let first = senders.first { error = error.located(stage: nil, url: first, attempt: nil) }
      wrong += senders.filter { !wrong.contains($0) }
    }
    if !wrong.isEmpty { error.message += "; wrong bytes came from \(Self.list(wrong))" }
    return error
  }

  /// Where the bytes on disk came from.
  private var originsOfBytes: (known: [(place: URL, bytes: ByteRangeSet)], unknown: ByteRangeSet) {
    let bytes = read { $0.checkpoint.ranges }
    return findings.withLock { $0.origins.origins(of: bytes) }
  }

  private static func list(_ places: [URL]) -> String { places.map(\.redacted).joined(separator: " and ") }

  // MARK: The next place

  /// Prepares the run to go on after its file was proved wrong.
  ///
  /// A place that has sent the whole file alone is excluded, and the next one is asked. If several places have sent
  /// parts of it, those of the others are fetched again from the place in use: the rest is most likely right. If it is
  /// not known where the bytes came from, because an earlier run has got them, the retry policy decides.
  /// - Returns: `false` when the run has failed.
  @inline(never)  // The frame is needed only after a failure.
  func goesOn(after error: DownloadError) async throws -> Bool {
    if error.code == .pieceMismatch, let wrong = error.wrongBytes { return try await repairs(wrong, after: error) }
    guard Self.provesWrongBytes.contains(error.code), stopReason == nil, !Task.isCancelled else { return false }
    let places = places
    let (known, unknown) = originsOfBytes
    let others = known.filter { $0.place != places.currentURL }
    if !others.isEmpty, known.count > 1 || !unknown.isEmpty {
      // No mixture again: it would not be known who is wrong.
      context.doubtedMirrors.insert(id)
      note(naming(error))
      try await forget(others.reduce(into: ByteRangeSet()) { $0.formUnion($1.bytes) })
      announce(state: .transferring)
      return true
    }
    guard unknown.isEmpty, let wrong = known.first?.place, places.hasOther(than: wrong) else { return false }
    note(naming(error))
    context.placeMemory.exclude(wrong, of: record)
    let next = self.places.next(insteadOf: wrong)
    context.furthest.note(id, read { $0.checkpoint.ranges.byteCount })
    try await forget(read { $0.checkpoint.ranges }, withFacts: true)
    use(next)
    announce(state: .transferring)
    return true
  }

  /// Prepares the run to fetch wrong pieces again: from a place that has not sent them, if there is one, and at last once
  /// more from the one that has, because bytes may be damaged on their way.
  ///
  /// The wrong bytes are removed from the record in any case, and the right ones are kept.
  /// - Returns: `false` when every place was asked.
  private func repairs(_ wrong: ByteRangeSet, after error: DownloadError) async throws -> Bool {
    guard stopReason == nil, !Task.isCancelled else { return false }
    let current = places.currentURL
    findings.withLock { findings in
      let known = findings.origins.origins(of: wrong).known.map(\.place)
      findings.places.senders = known.isEmpty ? [current] : known
    }
    let hasNext = places.nextForPieces != nil
    let isLeft = hasNext || takeWholePlace()
    if isLeft { note(naming(error)) }
    // The digests of the pieces prove the bytes on disk; marks would have to cover each range of them.
    update { $0.checkpoint.marks = [] }
    try await forget(wrong)
    guard isLeft else { return false }
    findings.withLock { $0.repair = hasNext ? .pieces : .whole }
    announce(state: .transferring)
    return true
  }

  /// Goes on with a place that has not sent wrong bytes, but sends the file as a whole only.
  private func takeWholePlace() -> Bool {
    let index = places.nextForWhole
    return findings.withLock { findings in
      guard findings.places.wholeOnly.popLast() != nil, let index else { return false }
      findings.places.current = index
      return true
    }
  }

  /// Notes a failure of a place, after which the run goes on: when no place is left, the retry policy decides on all of
  /// them.
  private func note(_ error: DownloadError) {
    let error = error.located(stage: nil, url: nil, attempt: read { $0.attempts })
    announce(.attemptFailed(error))
    update { record in
      let before = record.error?.isOfSameKind(as: error) == true ? record.repeatedFailures : 0
      record.repeatedFailures = before.next
      record.error = error
    }
  }

  /// Removes wrong bytes from the record, first in the ledger, and from the disk when none are left.
  ///
  /// - Parameter hasFacts: Whether also the size and the validator that came with them are forgotten: another place that has the
  ///   right file may state others.
  private func forget(_ wrong: ByteRangeSet, withFacts hasFacts: Bool = false) async throws {
    let left = update { record in
      for range in wrong.ranges { record.checkpoint.remove(range) }
      record.checkpoint.isComplete = false
      record.dropSteps()
      record.apply(.bytesWrong)
      return record.checkpoint.ranges
    }
    if left.isEmpty { forgetBytes() }
    if hasFacts { update { $0.checkpoint = Checkpoint() } }
    try await save([.checkpoint, .steps, .state])
    if left.isEmpty { try await located(storageName) { try await storage.removePartial(partialKey) } }
  }
}
