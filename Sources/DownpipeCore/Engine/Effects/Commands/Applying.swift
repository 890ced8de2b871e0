internal import Foundation

/// A command that applies an event of the lifecycle: pause, resume, restart, refresh, cancel.
struct LifecycleCommand: Sendable {
  let event: Lifecycle.Event
  /// Why a run is stopped; `nil` for commands that do not affect a run.
  var stopReason: StopReason?
  /// The phase after the run if stopping it completes the command; `nil` if the event has to be applied after the run.
  var phase: DownloadState.Phase?

  static let pause = LifecycleCommand(event: .pause, stopReason: .pause, phase: .paused)
  static let pauseAll = LifecycleCommand(event: .pauseAll, stopReason: .pauseAll, phase: .paused)
  static let resume = LifecycleCommand(event: .resume)
  static let resumeTogether = LifecycleCommand(event: .resumeTogether)
  static let restart = LifecycleCommand(event: .restart, stopReason: .restart, phase: .waiting)
  static let refresh = LifecycleCommand(event: .refresh)
  static let cancel = LifecycleCommand(event: .cancel, stopReason: .cancel, phase: .cancelled)

  /// Whether a run that has ended has completed the command.
  func isDone(by run: Run) -> Bool { phase.map { run.hasBeenStopped(to: $0) } ?? false }

  /// Of a command for many downloads; a run that waits again is left as it is.
  func isDoneAmongMany(by run: Run) -> Bool { run.hasBeenStopped(to: phase ?? .waiting) }
}

// Commands for one download: a run is stopped at once, and the ledger is changed in a turn, while nothing is leased.
extension Engine {
  /// Applies a command to a download, whether or not it runs.
  /// - Returns: Whether the event was legal in the download's phase.
  nonisolated func apply(_ command: LifecycleCommand, to id: DownloadID) async throws -> Bool {
    try await context.mailbox.call(for: [id], stopping: command.stopReason) { stopped in
      { state, _ in state.apply(command, to: id, after: stopped) }
    }
  }
}

extension EngineState {
  /// - Parameter stopped: The run that the call has stopped.
  mutating func apply(_ command: LifecycleCommand, to id: DownloadID, after stopped: Run?) -> NextAction<Bool> {
    if let run = slots.runs[id] {
      if let reason = command.stopReason { stop(run, reason) }
      if command.stopReason != nil || !run.read({ $0.phase.isActive }) {
        // What it is stopped for by a reason leaves nothing to lease, or is done with the end of the run.
        return .wait(for: [run], comesBeforeLeases: command.stopReason == nil) { state, _ in
          guard command.isDone(by: run) else { return state.apply(command, to: id, after: nil) }
          // Its bytes may have to be deleted.
          return .over(true, after: state.errands.ends[id].map { [$0] } ?? [])
        }
      }
    }
    return .job { context, changes in
      _ = try await context.existing(id)
      let result = try await context.transition(.ids([id]), command.event, &changes)
      // An earlier command may have taken its turn after the end of the run.
      let isDone = stopped.map(command.isDone) == true || result.count > 0
      return { state, _ in
        guard command.event == .cancel, state.slots.runs[id] == nil else { return .over(isDone) }
        return .errand(for: [id], isLast: true) { context, _ in
          await context.deletePartials(ofCancelled: result.ids)
          return { _, _ in .over(isDone) }
        }
      }
    }
  }
}

extension EngineContext {
  /// Applies an event to downloads that do not run.
  func transition(
    _ selection: LedgerSelection, _ event: Lifecycle.Event, _ changes: inout Changes
  ) async throws -> LedgerBulkResult {
    let result: LedgerBulkResult
    do {
      let now = time.date
      result = try await change { try await store.transition(selection, event, at: now, number: $0) }
    } catch {
      changes.mustLookAgain = true
      if case .ids(let ids) = selection { changes.ids += ids }
      throw error
    }
    changes.transitions.append(result)
    return result
  }

  /// Deletes the partials of downloads if they are cancelled.
  /// - Parameter end: Called after each.
  func deletePartials(ofCancelled ids: [DownloadID], _ end: (DownloadID) -> Void = { _ in }) async {
    for start in stride(from: 0, to: ids.count, by: Self.page) {
      let page = Array(ids[start..<min(start + Self.page, ids.count)])
      let found = (try? await store.records(of: page)) ?? []
      let cancelled = Dictionary(found.filter { $0.phase == .cancelled }.map { ($0.id, $0) }) { $1 }
      for id in page {
        if let record = cancelled[id] { try? await storage.removePartials(record.partialKeys) }
        end(id)
      }
    }
  }
}

extension DownloadError {
  static func unknownDownload(_ id: DownloadID) -> DownloadError {
    DownloadError(.invalidRequest, "there is no download “\(id)”")
  }
}
