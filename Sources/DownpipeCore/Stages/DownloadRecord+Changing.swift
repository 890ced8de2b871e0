package import Foundation

// Every ledger changes requests through these functions, so that the rules for what a change keeps exist once.
extension DownloadRecord {
  /// Applies another addition of the same download.
  ///
  /// - Parameter isFinished: Whether another download has finished, for new dependencies.
  /// - Returns: Whether the record has changed.
  package mutating func addAgain(
    _ addition: LedgerAddition, at now: Date, ranking: Ranking, _ isFinished: (DownloadID) throws -> Bool
  ) rethrows -> Bool {
    guard addition.ifKnown == .update else { return false }
    let before = self
    var new = request.takingOver(addition.request, since: added ?? request)
    // The file is already at its destination.
    if phase == .finished || isAsking, !new.asksForAnotherFile(than: request) {
      new.destination = request.destination
    }
    if set(new, added: addition.request, ranking) { takeEffect(since: before.request, ranking) }
    try follow(since: before.request.after, isFinished)
    location = location ?? addition.location
    apply(.addedAgain)
    if phase == .finished, request.refresh.asks(at: now, freshUntil: checkpoint.freshUntil) {
      apply(.refresh)
      rank = ranking.rank(rankingContext)
    }
    return finish(since: before, at: now)
  }

  /// Applies a change. Only the request, `added`, the location, the earlier artifact, the left artifacts, and the artifact and
  /// note of `steps` are taken from it.
  ///
  /// - Parameters:
  ///   - owner: The owner that makes the change.
  ///   - isFinished: Whether another download has finished, for new dependencies.
  /// - Returns: Whether the record has changed.
  package mutating func update(
    by owner: String, at now: Date, ranking: Ranking, isFinished: (DownloadID) throws -> Bool,
    _ change: (inout DownloadRecord) throws -> Void
  ) rethrows -> Bool {
    let before = self
    var wish = self
    try change(&wish)
    // A change that sets `added` to `nil` declares that the request is as it was added.
    let base = wish.added ?? (added == nil ? request : wish.request)
    let isRepair = phase == .finished && wish.request.isRepair(of: request)
    // What is repaired is the file as it is now.
    if isRepair { steps.artifact = wish.steps.artifact }
    // An owner that sets `awaited` to `nil` has refreshed its link: its work is for the fresh one.
    let isOwnLink = before.owner == owner && before.awaited == .link && wish.awaited == nil
    if set(wish.request, added: base, ranking) {
      takeEffect(since: before.request, ranking, isOwnLink: isOwnLink)
    }
    try follow(since: before.request.after, isFinished)
    location = wish.location
    if !isRepair, before.owner == nil || before.owner == owner {
      if wish.steps.artifact != before.steps.artifact { steps.artifact = wish.steps.artifact }
      if wish.steps.note != before.steps.note { steps.note = wish.steps.note }
      if wish.earlierArtifact != before.earlierArtifact { earlierArtifact = wish.earlierArtifact }
      if wish.leftArtifacts != before.leftArtifacts { leftArtifacts = wish.leftArtifacts }
    }
    // The published file would keep its place if it has not changed.
    if isAsking, !phase.isActive, request.destination != before.request.destination { fetchAnew() }
    return finish(since: before, at: now)
  }

  /// Takes the URL, header fields and head start that an attempt has changed from its record.
  package mutating func setLink(of record: DownloadRecord, ranking: Ranking) {
    var new = request
    new.url = record.request.url
    new.headers = record.request.headers
    new.headStart = record.request.headStart
    set(new, added: added ?? request, ranking)
  }

  /// Writes the given fields of a record, as ``LedgerStore/save(_:_:at:)`` does.
  package mutating func write(
    _ fields: RecordFields, of record: DownloadRecord, ranking: @autoclosure () -> Ranking
  ) {
    if fields.contains(.link) { setLink(of: record, ranking: ranking()) }
    if fields.contains(.checkpoint) {
      let isLearned = checkpoint.total != record.checkpoint.total
      checkpoint = record.checkpoint
      versions = record.versions
      // Policies rank by the size, which the server has stated now. A finished download is not ranked any more.
      if isLearned, record.phase != .finished { rank = ranking().rank(rankingContext) }
    }
    if fields.contains(.steps) { (steps, refreshing) = (record.steps, record.refreshing) }
    guard fields.contains(.state) else { return }
    phase = record.phase
    notBefore = record.notBefore
    isPausedTogether = record.isPausedTogether
    awaited = record.awaited
    error = record.error
    attempts = record.attempts
    consecutiveFailures = record.consecutiveFailures
    repeatedFailures = record.repeatedFailures
    bytesFetched = record.bytesFetched
    resumedFrom = record.resumedFrom
    wasInterrupted = record.wasInterrupted
    earlierArtifact = record.earlierArtifact
    leftArtifacts = record.leftArtifacts
    if !phase.isActive {
      owner = nil
      isOutdated = false
    }
    reopen(afterWorkFor: record.request, ranking())
  }

  /// Judges a saved outcome by the request as it is now, which may have changed since the run began: a download that has
  /// finished or failed with the earlier request waits again, and one that has finished for another destination keeps the
  /// destination that its run has used.
  ///
  /// - Parameter earlier: The request that the run worked for.
  /// - Returns: Whether the record has changed.
  @discardableResult
  package mutating func reopen(
    afterWorkFor earlier: DownloadRequest, _ ranking: @autoclosure () throws -> Ranking
  ) rethrows -> Bool {
    guard !phase.isActive else { return false }
    let before = self
    // The file is where the run has put it.
    if phase == .finished, !request.asksForAnotherFile(than: earlier), request.destination != earlier.destination {
      let asked = added ?? request
      request.destination = earlier.destination
      added = asked == request ? nil : asked
    }
    let changesWork = request.changesWork(begunFor: earlier)
    guard changesWork || request.destination != earlier.destination else { return self != before }
    if changesWork, phase == .failed { apply(.addedAgain) }
    takeEffect(since: earlier, try ranking())
    return self != before
  }

  /// Adapts bytes, steps and phase to a changed request, unless an owner works on the download: its run stops, and
  /// ``reopen(afterWorkFor:_:)`` follows when it saves its outcome.
  ///
  /// - Parameter isOwnLink: Whether an owner has refreshed the link for its own work.
  private mutating func takeEffect(since before: DownloadRequest, _ ranking: Ranking, isOwnLink: Bool = false) {
    let hasOtherURL = request.hasOtherURL(than: before)
    // What the old link waited for does not apply to a new link.
    if hasOtherURL { awaited = nil }
    // What was proved for another file proves nothing.
    if !isOwnLink, request.headStart?.proof == .digests, request.asksForAnotherFile(than: before) {
      request.headStart = nil
    }
    if phase == .finished, request.isRepair(of: before) {
      apply(.restart)
      rank = ranking.rank(rankingContext)
      return
    }
    guard request.changesWork(begunFor: before) else {
      // The settings of steps may be among the metadata: those that have completed run again, and so do those that have put the
      // file in an earlier place.
      let isUnfinished = !phase.isActive && phase != .finished && !isAsking
      let isElsewhere = steps.artifact?.modifiedAt != nil && request.destination != before.destination
      if isUnfinished, request.metadata != before.metadata || isElsewhere { dropSteps() }
      return
    }
    if phase.isActive {
      if !isOwnLink { isOutdated = true }
      return
    }
    if phase == .finished {
      guard request.asksForAnotherFile(than: before) else { return }
      apply(.restart)
      // Those of another file.
      checkpoint = Checkpoint()
      rank = ranking.rank(rankingContext)
      return
    }
    if isAsking {
      guard request.asksForAnotherFile(than: before) else { return }
      fetchAnew()
      checkpoint = Checkpoint()
      if hasOtherURL, phase == .waiting { forgetFailures() }
      rank = ranking.rank(rankingContext)
      return
    }
    dropSteps()
    if hasOtherURL {
      doubtBytes()
      // The failures were those of the old link.
      if phase == .waiting { forgetFailures() }
    }
    dropBytesOfOtherSize()
  }

  /// Gives up what is known of the published file while its server is asked about it: the file is fetched as a whole, and
  /// stays in place until then.
  mutating func fetchAnew() {
    if let artifact = steps.artifact?.replaceable { earlierArtifact = artifact }
    checkpoint = checkpoint.facts
    versions.mayChange = true
    steps = StepLog()
    refreshing = .fetching
  }

  /// The URL may be another one than that of the bytes: a transfer has to prove them, and takes another file if it is one.
  private mutating func doubtBytes() {
    guard checkpoint != Checkpoint() else { return }
    checkpoint.doubt()
    versions.earlier?.doubt()
    versions.mayChange = true
  }

  /// Whether the server is still to be asked about the published file. The checkpoint describes its bytes until then.
  var isAsking: Bool { refreshing == .asking }

  /// The bytes of the partial: none while the server is asked about the published file.
  var partialRanges: ByteRangeSet { isAsking ? ByteRangeSet() : checkpoint.ranges }

  /// The published artifact that stays in place while its download is refreshed or fetched again.
  var artifactInPlace: StoredArtifact? { isAsking ? steps.artifact : earlierArtifact }

  /// Removes the results of steps.
  ///
  /// A step may have moved its artifact to its final place, or to that of the earlier artifact: what is fetched next takes its
  /// place. Only what is in its place has a time.
  mutating func dropSteps() {
    if let artifact = steps.artifact?.replaceable, artifact.modifiedAt != nil {
      if earlierArtifact == nil || earlierArtifact?.path == artifact.path {
        let suffixes = artifact.companions.map(\.suffix)
        let left = earlierArtifact?.companions.filter { !suffixes.contains($0.suffix) } ?? []
        earlierArtifact = artifact
        earlierArtifact?.companions += left
      } else {
        leftArtifacts.removeAll { $0.path == artifact.path }
        leftArtifacts.append(artifact)
      }
    }
    steps = StepLog()
  }

  /// The files that the download has published, or that its steps have put in their places. A file that was there before the
  /// download is not among them.
  var artifactsToDelete: [StoredArtifact] {
    var record = self
    if phase != .finished, !isAsking { record.dropSteps() }
    let inPlace = phase == .finished ? steps.artifact : record.artifactInPlace
    return ([inPlace].compactMap { $0 } + record.leftArtifacts).compactMap(\.unlessReused)
  }

  /// Gives up what an owner has done for a request that was changed meanwhile, because it has ended without an outcome.
  mutating func dropOutdatedWork() {
    guard isOutdated else { return }
    isOutdated = false
    if isAsking {
      fetchAnew()
      return checkpoint = Checkpoint()
    }
    dropSteps()
    doubtBytes()
    dropBytesOfOtherSize()
  }

  /// Gives up bytes of a file whose size the request excludes.
  private mutating func dropBytesOfOtherSize() {
    guard case .known(let size) = request.expectedSize, case .known(let total) = checkpoint.total, size != total,
      checkpoint.contentCoding == nil
    else { return }
    checkpoint = Checkpoint()
    versions.earlier = nil
  }

  /// - Returns: Whether the request has changed.
  @discardableResult
  private mutating func set(_ new: DownloadRequest, added: DownloadRequest, _ ranking: Ranking) -> Bool {
    let before = request
    request = new
    // The id stays as it was first written: equal ids can differ in their bytes.
    request.id = before.id
    var added = added
    added.id = before.id
    self.added = added == request ? nil : added
    guard request != before else { return false }
    rank = ranking.rank(rankingContext)
    return true
  }

  private mutating func finish(since before: DownloadRecord, at now: Date) -> Bool {
    guard self != before else { return false }
    updatedAt = now
    return true
  }
}

extension DownloadRequest {
  /// Whether this request has a head start that its digests prove, which an earlier one did not have: a finished download is
  /// then fetched again from it.
  fileprivate func isRepair(of earlier: DownloadRequest) -> Bool {
    headStart?.proof == .digests && headStart != earlier.headStart
  }
}

extension Date {
  /// The latest valid due time. A later one was set by a clock that has jumped, and counts as due. No back-off and no
  /// `Retry-After` is longer than a year.
  package var furthestDue: Date { addingTimeInterval(400 * 86_400) }
}
