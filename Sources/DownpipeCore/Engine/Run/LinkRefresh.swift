internal import Foundation
internal import Synchronization

/// The refresh of an expired link, with which a run begins.
struct LinkRefresh: Sendable {
  let run: Run

  /// Refreshes the link. The fresh link is saved in the ledger before it is used.
  func perform() async throws {
    guard let refresher = run.pipeline.refresher else { return }
    let record = run.record
    let fresh = try await freshLink(of: record, from: refresher)
    var request = record.request
    request.url = fresh.url
    if let headers = fresh.headers {
      request.headers = headers
    } else {
      request.bindHeaders(givenFor: record.request.url)
    }
    try request.check(against: run.pipeline)
    try await keep(request, inPlaceOf: record.request)
    run.update { $0.awaited = nil }
    try await run.save([.state])
    run.announce(.linkRefreshed(to: fresh.url.redacted))
  }

  private func freshLink(of record: DownloadRecord, from refresher: any LinkRefresher) async throws -> FreshLink {
    do {
      return try await refresher.refresh(
        ExpiredLink(request: record.request, error: record.error, received: record.checkpoint.ranges.byteCount))
    } catch let error where !(error is CancellationError) {
      // The descriptions of other errors may contain the link, which is a secret: only the type is shown.
      throw error as? DownloadError
        ?? DownloadError(
          .linkExpired, "the link could not be refreshed: \(type(of: error))", stage: refresher.name, cause: error)
    }
  }

  /// Saves a fresh link, unless the URL of the request was changed meanwhile.
  private func keep(_ fresh: DownloadRequest, inPlaceOf expired: DownloadRequest) async throws {
    let generation = run.key.generation
    run.state.withLock { $0.freshLink = fresh.url }
    let saved = try await run.located(run.context.ledgerName) {
      try await run.context.store.update(run.id, at: run.context.time.date) { saved in
        guard saved.generation == generation, !saved.request.hasOtherURL(than: expired) else { return }
        saved.request.url = fresh.url
        saved.request.headers = fresh.headers
        // The work of this run is for the fresh link.
        saved.awaited = nil
      }
    }
    if let saved, saved.generation == generation, saved.request.hasOtherURL(than: fresh) {
      run.stop(.changed)
      throw CancellationError()
    }
    run.state.withLock { state in
      state.request.url = fresh.url
      state.request.headers = fresh.headers
      state.record.request.url = fresh.url
      state.record.request.headers = fresh.headers
    }
  }
}
