import Downpipe
import Foundation
import Synchronization

/// Writes a line for each download that a worker ends, and counts them.
final class WorkLog: Observer {
  struct Counts: Sendable {
    var tally = Tally(startedAt: Date())
    /// The latest attempt of each running download.
    fileprivate var attempts: [DownloadID: Attempt] = [:]
    var running: Int { attempts.count }
  }

  fileprivate struct Attempt: Sendable {
    var number = 0
    var start: Int64 = 0
    var received: Int64 = 0
  }

  let name = "WorkLog"
  private let isJSON: Bool
  private let isQuiet: Bool
  private let state = Mutex(Counts())

  init(isJSON: Bool, isQuiet: Bool) {
    self.isJSON = isJSON
    self.isQuiet = isQuiet
  }

  var counts: Counts { state.withLock { $0 } }

  func observe(_ events: AsyncStream<DownloadEvent>) async {
    var output: any RunOutput = isJSON ? JSONOutput(isQuiet: isQuiet) : PlainOutput(isQuiet: isQuiet)
    for await event in events {
      let attempt = state.withLock { $0.note(event) }
      guard let attempt, case .state(let entered) = event.kind, var result = result(event, entered) else { continue }
      (result.attempts, result.resumedFrom) = (attempt.number, attempt.start)
      result.bytesFetched = max(0, attempt.received - attempt.start)
      let tally = state.withLock { [result] counts in
        counts.tally.count(result)
        return counts.tally
      }
      // A reader that is gone does not stop the work.
      try? output.show(result)
      try? output.flush(tally, at: event.date)
    }
  }

  private func result(_ event: DownloadEvent, _ state: DownloadState) -> DownloadResult? {
    let url = event.request.shownURL
    switch state {
    case .finished(let artifact):
      return DownloadResult(id: event.id, url: url, path: artifact.place, bytes: artifact.size.bytes ?? 0)
    case .failed(let error): return DownloadResult(id: event.id, url: url, error: error)
    default: return nil
    }
  }
}

extension WorkLog.Counts {
  /// Notes what tells of an attempt of this worker: states are also told of the downloads of others.
  ///
  /// - Returns: The latest attempt of a download that has stopped here.
  fileprivate mutating func note(_ event: DownloadEvent) -> WorkLog.Attempt? {
    var attempt = attempts[event.id] ?? WorkLog.Attempt()
    switch event.kind {
    case .state(let state): return state.phase.isActive ? nil : attempts.removeValue(forKey: event.id)
    case .removed: return attempts.removeValue(forKey: event.id)
    case .started(let number, let start): attempt = WorkLog.Attempt(number: number, start: start, received: start)
    case .attemptFailed(let error) where error.code == .notOwner:
      attempts[event.id] = nil
      return nil
    case .attemptFailed(let error): attempt.number = max(attempt.number, error.attempt ?? 0)
    case .progress(let progress): attempt.received = progress.received
    default: return nil
    }
    attempts[event.id] = attempt
    return nil
  }
}
