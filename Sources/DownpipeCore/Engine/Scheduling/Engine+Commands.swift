internal import Foundation

// What users command: pause, resume, cancel, remove, suspend. A run is stopped at once; what is decided over the ledger
// is decided by the loop, where nothing is being leased.
extension Engine {
  // MARK: One download

  /// Applies a command to a download, whether it runs or not.
  ///
  /// - Parameters:
  ///   - event: what is commanded.
  ///   - phase: the phase that it leads to.
  ///   - reason: what a run is told; `nil` for commands that mean nothing to a run.
  /// - Returns: whether it meant anything in the phase the download was in.
  func command(_ event: Lifecycle.Event, to phase: DownloadState.Phase, reason: StopReason?, _ id: DownloadID)
    async throws -> Bool
  {
    try checkOpen()
    // At once; then again by the loop, for a run that begins in between.
    if let reason { slots.runs[id]?.stop(reason) }
    while true {
      let turn: Turn = try await context.mailbox.perform { engine in
        if let run = engine.slots.runs[id] {
          if let reason { run.stop(reason) }
          if reason != nil || !run.read({ $0.phase.isActive }) { return .wait(for: run) }
        }
        return .over(try await engine.transition(id, event))
      }
      switch turn {
      case .over(let isMeaningful):
        return isMeaningful
      case .wait(let run):
        try await run.endUnlessCancelled()
        // Something else may have ended it first.
        if reason != nil, run.read({ $0.phase }) == phase { return true }
      }
    }
  }

  private enum Turn: Sendable {
    case over(Bool)
    case wait(for: Run)
  }

  private func transition(_ id: DownloadID, _ event: Lifecycle.Event) async throws -> Bool {
    guard try await record(id) != nil else {
      throw DownloadError(.invalidRequest, "there is no download “\(id)”")
    }
    let result = try await store.transition(.ids([id]), event, at: time.date)
    if result.count > 0 { await carriedOut(event, on: result.ids) }
    return result.count > 0
  }

  /// Removes what a cancelled download has on disk, and tells those who watch.
  private func carriedOut(_ event: Lifecycle.Event, on ids: [DownloadID]) async {
    for id in ids where event == .cancel || hub.isWatched(id) {
      guard let record = try? await store.record(id), slots.runs[id] == nil else { continue }
      if event == .cancel, record.phase == .cancelled { try? await context.storage.removePartial(record.partialKey) }
      hub.publish(stateOf: status(of: record))
    }
  }

  /// Removes a download: its work is ended first.
  func remove(_ id: DownloadID, deletingFile: Bool) async throws -> Bool {
    try checkOpen()
    slots.runs[id]?.stop(.remove)
    while true {
      let turn: Removal = try await context.mailbox.perform { engine in
        if let run = engine.slots.runs[id] {
          run.stop(.remove)
          return .wait(for: run)
        }
        return .over(try await engine.forget(id))
      }
      switch turn {
      case .over(let records):
        try await cleanUp(after: records, deletingFiles: deletingFile)
        return !records.isEmpty
      case .wait(let run):
        try await run.endUnlessCancelled()
      }
    }
  }

  /// Removes a record, a damaged one too, if it belongs here.
  private func forget(_ id: DownloadID) async throws -> [DownloadRecord] {
    let isDamaged = try await store.damaged().contains { $0.id == id }
    if !isDamaged, try await record(id) == nil { return [] }
    return try await store.remove(.ids([id]), limit: 1)
  }

  private enum Removal: Sendable {
    case over([DownloadRecord])
    case wait(for: Run)
  }

  private func cleanUp(after records: [DownloadRecord], deletingFiles: Bool) async throws {
    var failure: (any Error)?
    for record in records {
      let state = state(of: record)
      do {
        try await context.storage.removePartial(record.partialKey)
        if deletingFiles, case .finished(let artifact) = state { try await context.storage.remove(artifact) }
      } catch {
        failure = failure ?? error
      }
      hub.finish(record.id)
      context.furthest.forget(record.id)
    }
    if let failure { throw failure }
  }

  // MARK: Many downloads

  /// Applies a command to every download, or to those with a tag; what waits changes all at once.
  /// - Returns: how many it meant anything to.
  func commandAll(_ event: Lifecycle.Event, to phase: DownloadState.Phase, reason: StopReason?, tag: String?)
    async throws -> Int
  {
    try checkOpen()
    let selection = tag.map(LedgerSelection.tag) ?? .all
    var count = 0
    var ids: [DownloadID] = []
    while true {
      // What waits, and what runs, in one turn of the loop: nothing is leased in between. A run that ends by itself, or
      // for another reason, waits again and is met the next time.
      let (idle, runs) = try await context.mailbox.perform { engine in
        let result = try await engine.store.transition(selection, event, at: engine.time.date)
        let runs = reason == nil ? [] : engine.slots.runs(tag: tag)
        if let reason { for run in runs { run.stop(reason) } }
        return (result, runs)
      }
      count += idle.count
      ids += idle.ids
      if runs.isEmpty { break }
      for run in runs { try await run.endUnlessCancelled() }
      count += runs.count { $0.read { $0.phase } == phase }
    }
    let moved = ids
    // By the loop: none of them may begin to run meanwhile.
    _ = try await context.mailbox.perform { await $0.carriedOut(event, on: moved) }
    if event == .cancel, count > ids.count { try await removePartials(ofCancelledWith: tag) }
    context.mailbox.wake()
    return count
  }

  /// Removes the partials of any number of cancelled downloads, a page at a time.
  private func removePartials(ofCancelledWith tag: String?) async throws {
    let page = 1000
    var query = DownloadQuery(phases: [.cancelled], tag: tag, location: context.storage.location, limit: page)
    while true {
      let count = try await context.mailbox.perform { [query] engine in
        let records = try await engine.store.records(query)
        for record in records where engine.slots.runs[record.id] == nil {
          try? await engine.context.storage.removePartial(record.partialKey)
        }
        return records.count
      }
      guard count == page else { return }
      query.offset += page
    }
  }

  /// Removes every download, or those with a tag.
  /// - Returns: how many were removed.
  func removeAll(tag: String?, deletingFiles: Bool) async throws -> Int {
    try checkOpen()
    // Other owners' runs, and downloads at other locations, stay.
    var page = DownloadQuery(tag: tag, location: context.storage.location, limit: 1000)
    var count = 0
    var failure: (any Error)?
    while true {
      let (ids, listed, removed, runs) = try await context.mailbox.perform { [page] engine in
        let runs = engine.slots.runs(tag: tag)
        for run in runs { run.stop(.remove) }
        let listed = try await engine.store.records(page).map(\.id)
        let ids = try await listed + engine.damaged(on: page)
        let idle = ids.filter { engine.slots.runs[$0] == nil }
        return (ids, Set(listed), try await engine.store.remove(.ids(idle), limit: idle.count), runs)
      }
      if ids.isEmpty { break }
      count += removed.count
      do { try await cleanUp(after: removed, deletingFiles: deletingFiles) } catch { failure = failure ?? error }
      for run in runs { try await run.endUnlessCancelled() }
      if runs.isEmpty { page.offset += listed.subtracting(removed.map(\.id)).count }
    }
    if let failure { throw failure }
    return count
  }

  /// The damaged records: they come with the first page, unless a tag is asked for.
  private func damaged(on page: DownloadQuery) async throws -> [DownloadID] {
    page.tag == nil && page.offset == 0 ? try await store.damaged().map(\.id) : []
  }

  /// Sends everything that runs back to waiting, and starts nothing until ``unsuspend()``.
  func suspend() async {
    mode.isSuspended = true
    let runs = try? await context.mailbox.perform { engine in
      for run in engine.slots.runs.values { run.stop(.suspend) }
      return Array(engine.slots.runs.values)
    }
    for run in runs ?? [] { try? await run.endUnlessCancelled() }
  }

  func unsuspend() {
    mode.isSuspended = false
    mode.mayLease = true
    context.mailbox.wake()
  }

  // MARK: Orphans

  /// The partials that no download of the ledger will use again, and that no owner holds.
  func orphans() async throws -> [StoredPartial] {
    try checkOpen()
    guard let orphans = try await context.storage.orphans(unknownTo: store) else {
      throw DownloadError(
        .invalidPipeline, "\(context.storage.name) cannot list its partials", stage: context.storage.name)
    }
    return orphans
  }

  /// Removes what is still an orphan. Done by the loop, so that none of them can begin to run meanwhile.
  func remove(_ orphans: [StoredPartial]) async throws -> Int {
    try checkOpen()
    return try await context.mailbox.perform { engine in
      let idle = orphans.filter { engine.slots.runs[$0.key.id]?.key != $0.key }
      return try await engine.context.storage.remove(idle, unknownTo: engine.store)
    }
  }
}
