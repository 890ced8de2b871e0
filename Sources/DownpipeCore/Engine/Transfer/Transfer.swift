internal import Foundation
internal import Synchronization

/// Transfers the bytes of a download into its partial: sends requests, plans, and writes bodies until all bytes are on
/// disk.
struct Transfer: Sendable {
  let run: Run
  let book: CheckpointBook
  let following: Following
  /// The reply with which the transfer begins, if an earlier transfer has found that it is of another version.
  let opened: AnotherVersion?

  init(_ run: Run, with opened: AnotherVersion? = nil) {
    self.run = run
    self.opened = opened
    book = CheckpointBook(run)
    following = Following(run)
  }

  /// Transfers the missing bytes, from the URL and then from its mirrors.
  /// - Returns: The complete bytes; `nil` if the server of a refreshed download has confirmed its published file.
  /// - Throws: The error that ended the transfer. The bytes received by then are in the partial and in the record's
  ///   checkpoint.
  func perform() async throws -> CompleteFile? {
    let storage = run.storage
    // A source may have a finished file that needs no room, but that is only known after the opening. The download waits
    // then although it would not have to, and the source keeps the file.
    try await claimRoom()
    // After `.inUse` the partial is not treated as new: it is opened by its name, which fails while another owner has
    // it.
    let isNew = run.read {
      $0.isAsking
        || $0.checkpoint.ranges.isEmpty && $0.request.headStart == nil && $0.steps.artifact == nil
          && $0.error?.code != .inUse
    }
    let partial = following.watch(
      try await run.located(run.storageName) { try await storage.openPartial(run.partialKey, isNew: isNew) })
    do {
      if !isNew {
        try await verifyTail(of: partial)
        if let headStart = run.read({ $0.request.headStart }) { try await take(headStart, into: partial) }
      }
      if isRepair { try await repair(partial) }
      try await transferFromAny(into: partial)
      if run.findings.withLock({ $0.isUnchanged }) {
        await discardUnused(partial)
        return nil
      }
      // Watchers get the last bytes, too: a small file arrives between two reports of progress.
      run.announce(.progress(run.progress))
    } catch {
      run.announce(.progress(run.progress))
      // First: on a full disk the partial needs the space.
      await following.end()
      // The checkpoint of a download that asks is still that of the published file.
      if run.read({ $0.isAsking }) { await discardUnused(partial) } else { await book.keepBytes(of: partial) }
      throw error
    }
    do {
      return try await finish(partial, isNew: isNew)
    } catch {
      await following.end()
      book.closeLosing(partial)
      throw error
    }
  }

  /// Ends writing: checks the length of the file and makes the bytes as durable as the storage's durability requires.
  private func finish(_ partial: any Partial, isNew: Bool) async throws -> CompleteFile {
    if let error = run.read({ $0.contradictionOfVersion }) {
      run.forgetBytes()
      throw error
    }
    return try await run.located(run.storageName) {
      let checkpoint = run.read { $0.checkpoint }
      let end = checkpoint.ranges.prefixLength
      let size = try partial.size()
      if size > end { try partial.truncate(to: end) }
      guard size >= end else {
        run.forgetBytes()
        throw DownloadError.shortened(to: size, of: end)
      }
      // Bytes without a committed checkpoint need no flush and no name: the published file proves itself.
      if !isNew || book.hasCommitted || run.storage.durability == .power { try await book.flush(partial) }
      // Older marks alone would not cover the end.
      if !checkpoint.marks.isEmpty { book.markTail(of: partial) }
      try partial.finish()
      run.update { $0.checkpoint.isComplete = true }
      // A follower of an earlier process may have left a workspace.
      let hasWorkspace =
        following.hasWorkspace || !run.pipeline.steps.isEmpty && run.read { $0.wasInterrupted }
      return CompleteFile(
        artifact: try partial.artifact(name: run.nameOfBytes, mediaType: checkpoint.mediaType),
        partial: following.base(of: partial), isUntouched: true,
        mayLeaveTraces: !isNew || partial.isNamed || hasWorkspace, following: following)
    }
  }

  // MARK: Mirrors

  private func transferFromAny(into partial: any Partial) async throws {
    var places = run.places
    var index = opened.flatMap { opened in places.urls.firstIndex { $0 == opened.request?.url } } ?? places.first
    var offline: (any Error)?
    while true {
      let url = places.urls[index]
      run.use(index)
      do {
        while try await transferTrusting(url, into: partial) { try await book.commitBetweenBodies(partial) }
        return
      } catch let error as DownloadError {
        // A step can write when the file is complete: the transfer needs the space first.
        if error.code == .noSpace, !book.hasLostBytes, run.stopReason == nil, await following.givesRoom() { continue }
        // A change of the request may have added places: its run stops.
        places = run.places
        guard let next = places.next(after: index), run.stopReason == nil, isFault(error, ofSourceAt: url) else {
          throw offline ?? error
        }
        // With segments, mirrors are as good as the URL. Without, the next mirror is only tried if the retry policy would
        // not try this URL again. If a URL was unreachable, the download fails with that error, not with a mirror's.
        let judged = hasSegments ? nil : run.judge(error)
        if let judged, !run.isFinal(judged, at: index) { throw offline ?? judged }
        if error.code == .offline { offline = judged ?? error }
        run.announce(.attemptFailed(error.located(stage: nil, url: url, attempt: run.read { $0.attempts })))
        index = next
      } catch let error as JudgedFailure {
        throw offline ?? error
      }
    }
  }

  /// Whether a mirror may succeed: the error comes from the source, and does not concern the file itself.
  func isFault(_ error: DownloadError, ofSourceAt url: URL) -> Bool {
    guard !Self.aboutTheFile.contains(error.code) else { return false }
    let source = run.stages.source(for: url)?.stage
    return source == nil || error.stage == source?.name
  }

  private static let aboutTheFile: Set<DownloadError.Code> = [
    .tooLarge, .digestMismatch, .notOwner, .ledger, .cancelled,
  ]

  /// Sends one request. If the range of the reply cannot be used, sends another one at once, which depends less on the
  /// server, until there is no such request left. The bytes on disk are kept.
  private func transferTrusting(_ url: URL, into partial: any Partial) async throws -> Bool {
    // Kept here as well, because the downloader's memory of URLs is bounded.
    var trust = run.findings.withLock { $0.places.distrusted.contains(url) } ? .none : run.context.trust.level(of: url)
    while true {
      var hasRange = false
      do {
        return try await transferOnce(from: url, trusting: trust, into: partial, hasRange: &hasRange)
      } catch let error as DownloadError {
        // A mirror that has served a segment says nothing about this URL's ranges.
        guard run.stopReason == nil, error.url == url.redacted,
          let less = RangeTrust.left(after: error.code, of: trust), !run.read({ $0.partialRanges.isEmpty })
        else { throw error }
        if RangeTrust.isAboutTheServer(error.code) {
          run.context.trust.lower(url, to: less)
        } else {
          let hasRanges = hasRange || run.findings.withLock { $0.places.usedSegments }
          guard hasRanges else { throw error }
          run.findings.withLock { $0.places.distrusted.append(url) }
        }
        trust = less
        run.announce(.refused(error))
      }
    }
  }
}
