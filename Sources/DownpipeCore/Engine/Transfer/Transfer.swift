internal import Foundation
internal import Synchronization

/// Gets the bytes of a download into its partial: asks, plans, writes, until all are there.
struct Transfer: Sendable {
  let run: Run
  let book: CheckpointBook

  init(_ run: Run) {
    self.run = run
    book = CheckpointBook(run)
  }

  /// Transfers what is missing, from the URL and then from its mirrors.
  /// - Throws: what ended the transfer; bytes received by then are in the partial and in the record's checkpoint.
  func perform() async throws -> CompleteFile {
    let storage = run.storage
    // A name that another owner had is claimed before anything is fetched again.
    let isNew = run.read {
      $0.checkpoint.ranges.isEmpty && $0.request.headStart == nil && $0.steps.artifact == nil
        && $0.error?.code != .inUse
    }
    let partial = try await run.located(storage.name) { try await storage.openPartial(run.key, isNew: isNew) }
    do {
      if !isNew {
        try await verifyTail(of: partial)
        if let headStart = run.read({ $0.request.headStart }) { try await take(headStart, into: partial) }
      }
      try await transferFromAny(into: partial)
    } catch {
      await book.keepBytes(of: partial)
      throw error
    }
    do {
      return try await finish(partial, isNew: isNew)
    } catch {
      book.closeLosing(partial)
      throw error
    }
  }

  /// Ends writing: the file has the length that was promised, and the bytes are as durable as the storage says.
  private func finish(_ partial: any Partial, isNew: Bool) async throws -> CompleteFile {
    try await run.located(run.storage.name) {
      let checkpoint = run.read { $0.checkpoint }
      let end = checkpoint.ranges.prefixLength
      let size = try partial.size()
      if size > end { try partial.truncate(to: end) }
      guard size >= end else {
        throw DownloadError(.storage, "\(size) bytes are left of the \(end) that were written: they are fetched again")
      }
      // Bytes that no checkpoint has named need no name yet: the finished file proves itself.
      if !isNew || book.hasCommitted || run.storage.durability == .power { try await book.flush(partial) }
      // Older marks alone would not cover the end.
      if !checkpoint.marks.isEmpty { book.markTail(of: partial) }
      try partial.finish()
      run.update { $0.checkpoint.isComplete = true }
      return CompleteFile(
        artifact: try partial.artifact(name: run.nameOfBytes, mediaType: checkpoint.mediaType),
        partial: partial, isUntouched: true, mayLeaveTraces: !isNew || partial.isNamed)
    }
  }

  // MARK: Mirrors

  private func transferFromAny(into partial: any Partial) async throws {
    let urls = run.read { [$0.request.url] + $0.request.mirrors }
    var offline: DownloadError?
    let first = min(run.state.withLock { $0.place }, urls.count - 1)
    for (index, url) in urls.enumerated().dropFirst(first) {
      run.state.withLock { $0.place = index }
      do {
        while try await transferTrusting(url, into: partial) { try await book.commitBetweenBodies(partial) }
        return
      } catch let error as DownloadError {
        // Another mirror is only asked when trying this one again makes no sense. What mirrors answer in the place of
        // one to which there was no way is not what the download fails with.
        guard index + 1 < urls.count, run.stopReason == nil, isFault(error, ofSourceAt: url),
          isFinal(error, isMirror: index > 0)
        else { throw offline ?? error }
        if error.code == .offline { offline = error }
        run.announce(.attemptFailed(error.located(stage: nil, url: url, attempt: run.read { $0.attempts })))
      }
    }
  }

  /// Whether another place may do better: the failure is the source's, and not about the file as such.
  private func isFault(_ error: DownloadError, ofSourceAt url: URL) -> Bool {
    guard !Self.aboutTheFile.contains(error.code) else { return false }
    let source = run.stages.source(for: url)?.stage
    return source == nil || error.stage == source?.name
  }

  private static let aboutTheFile: Set<DownloadError.Code> = [
    .contentChanged, .sizeChanged, .tooLarge, .digestMismatch, .notOwner, .ledger, .cancelled,
  ]

  /// Whether the retry policy would not try the same place again.
  private func isFinal(_ error: DownloadError, isMirror: Bool) -> Bool {
    switch run.decision(on: run.failure(error)) {
    case .giveUp: true
    // Only the first link is renewed.
    case .refresh: run.pipeline.refresher == nil || isMirror
    // There may be a way to another one; what is on disk is worth waiting for.
    case .wait(for: .network, _): run.read { $0.checkpoint.ranges.isEmpty }
    case .resume, .restart, .wait: false
    }
  }

  /// Asks once; when the answer's range cannot be used, asks at once in a way that depends less on the server, as
  /// long as there is one. What is on disk stays.
  private func transferTrusting(_ url: URL, into partial: any Partial) async throws -> Bool {
    // Kept here too: the memory of the downloader has no room for any number of URLs.
    var trust = run.context.trust.level(of: url)
    while true {
      do {
        return try await transferOnce(from: url, trusting: trust, into: partial)
      } catch let error as DownloadError {
        guard run.stopReason == nil, let less = RangeTrust.left(after: error.code, of: trust),
          run.read({ !$0.checkpoint.ranges.isEmpty })
        else { throw error }
        trust = less
        run.context.trust.lower(url, to: less)
        run.announce(.refused(error))
      }
    }
  }
}
