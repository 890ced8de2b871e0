internal import Foundation
internal import Synchronization

// Commands for many downloads.
//
// A filter is judged once, in the turn that begins the command: the ledger changes the matching downloads
// that no owner holds in one transaction, and the matching runs are stopped. Nothing is leased in between. What follows
// concerns only the downloads of these runs, so a download that matches later, such as one that a stopped run or a free
// slot has put into the phase of the filter, is not affected.
extension Engine {
  /// Applies a command to the downloads that match a filter.
  /// - Returns: The number of downloads that have changed.
  nonisolated func apply(_ command: LifecycleCommand, to filter: DownloadFilter) async throws -> Int {
    try await context.mailbox.call(for: nil) { _ in
      { state, _ in state.apply(command, to: .matching(filter), after: 0) }
    }
  }

  // MARK: Changing requests

  /// Changes the requests of the downloads that match a filter, in one transaction of the ledger; those that earlier
  /// commands have not finished with are changed after these, in another.
  /// - Returns: The number of downloads that have changed.
  nonisolated func updateAll(
    _ filter: DownloadFilter, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> Int {
    try await rankOnce()
    return try await context.mailbox.call(for: nil) { _ in
      { state, _ in state.change(.matching(filter), change, after: 0) }
    }
  }
}

extension EngineState {
  /// Applies an event to the downloads of a selection that do not run, and stops runs: all of them, but those that earlier
  /// commands concern in a later turn. It waits, too, for those that have ended but are not saved.
  /// - Parameters:
  ///   - earlier: The number of downloads that earlier turns of the command have changed.
  ///   - deletions: The ends of the errands that it has begun.
  mutating func apply(
    _ command: LifecycleCommand, to selection: LedgerSelection, after earlier: Int, _ deletions: [Completion] = []
  ) -> NextAction<Int> {
    let runs = slots.runs(in: selection)
    let contested = commands.contested(runs, by: turn.command)
    let awaited = runs.filter {
      command.stopReason != nil || !$0.read(\.phase.isActive) || contested.contains($0.id)
    }
    let idle = slots.idle(in: selection)
    return .job { context, changes in
      // The ledger comes first: if it fails, no run is stopped.
      let result = try await context.transition(idle, command.event, &changes)
      return { state, _ in
        let own = awaited.filter { !contested.contains($0.id) }
        if let reason = command.stopReason { for run in own { state.stop(run, reason) } }
        var deletions = deletions
        if command.event == .cancel, result.count > 0 {
          deletions.append(state.beginDeletingPartials(ofCancelled: result, selection))
        }
        state.commands.narrow(state.turn.command, to: Set(awaited.map(\.id)))
        return .wait(for: own) { [deletions] state, _ in
          // The first ones are for earlier commands to end, others have ended for another reason.
          let rest = awaited.filter { contested.contains($0.id) || !command.isDoneAmongMany(by: $0) }.map(\.id)
          let count = earlier + result.count + awaited.count - rest.count
          return rest.isEmpty
            ? .over(count, after: deletions) : state.apply(command, to: .ids(rest.sorted()), after: count, deletions)
        }
      }
    }
  }

  /// Begins to delete the partials of cancelled downloads, also if the command fails. Their runs wait, each until its
  /// partial is deleted.
  private mutating func beginDeletingPartials(
    ofCancelled result: LedgerBulkResult, _ selection: LedgerSelection
  ) -> Completion {
    let (end, ids) = (Completion(), result.ids.filter { slots.runs[$0] == nil })
    context.onErrand.begin(Set(ids))
    begin(
      Errand(ids: []) { context, _ in
        await context.deletePartials(ofCancelled: ids) { context.onErrand.end([$0]) }
        end.complete(
          await Result {
            // The ledger has not named all of them.
            guard result.count > result.ids.count, case .matching(let filter) = selection else { return }
            try await context.deletePartials(ofCancelled: filter)
          })
        return nil
      })
    return end
  }

  /// - Parameter earlier: The number of downloads that earlier turns of the command have changed.
  fileprivate mutating func change(
    _ selection: LedgerSelection, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void,
    after earlier: Int
  ) -> NextAction<Int> {
    let contested = commands.contested(slots.runs(in: selection), by: turn.command)
    let (pipeline, before) = (stages.current.pipeline, slots.requests)
    return .job { context, changes in
      let location = try context.storage.location
      let now = context.time.date
      let update = { @Sendable (record: inout DownloadRecord) in
        guard record.belongs(to: location), !contested.contains(record.id) else { return }
        let destination = record.request.destination
        try record.changeRequest(change, checkedBy: pipeline)
        // Runs that begin to publish would have to be waited for, one by one.
        guard record.request.destination == destination else {
          throw DownloadError(
            .invalidRequest,
            "“\(record.id)”: the destinations of many downloads cannot be changed together: update each")
        }
      }
      let result = try await context.change { try await context.store.update(selection, at: now, number: $0, update) }
      // Some may have been released before their due times; the turn looks at them after this command.
      if result.count > 0 { changes.due.insert(.timer) }
      changes.updates.append(result)
      // The result has a bounded number of ids; there are few runs.
      let records = (try? await context.store.records(of: Array(before.keys))) ?? []
      return { state, _ in
        state.takeOverChanges(records, since: before)
        state.commands.narrow(state.turn.command, to: contested)
        let count = earlier + result.count
        guard !contested.isEmpty else { return .over(count) }
        return .wait(for: []) { state, _ in state.change(.ids(contested.sorted()), change, after: count) }
      }
    }
  }

  private mutating func takeOverChanges(
    _ records: [DownloadRecord], since before: OrderedTable<DownloadID, DownloadRequest>
  ) {
    for record in records {
      guard let run = slots.runs[record.id] else { continue }
      let old = run.read { $0.request }
      takeOver(record, since: before[record.id])
      if context.hub.isWatched(run.id), run.read({ $0.request }) != old { add(.announcePresentState(run)) }
    }
  }
}

extension EngineContext {
  /// Deletes the partials of any number of cancelled downloads, a page at a time.
  fileprivate func deletePartials(ofCancelled filter: DownloadFilter) async throws {
    var cancelled = filter
    cancelled.phases = [.cancelled]
    cancelled.location = cancelled.location ?? locationForReading
    try await forEachPage { records in
      guard !stopsErrands.load(ordering: .relaxed) else { throw DownloadError.shutDown }
      let ids = Set(records.filter(cancelled.matches).map(\.id))
      onErrand.begin(ids)
      defer { onErrand.end(ids) }
      await deletePartials(ofCancelled: ids.sorted())
    }
  }

  /// Reads all records, a page at a time.
  func forEachPage(_ body: ([DownloadRecord]) async throws -> Void) async throws {
    var last = Int64.min
    while true {
      let page = try await store.records(after: last, limit: Self.page)
      guard let end = page.last else { return }
      try await body(page)
      last = end.generation
    }
  }
}
