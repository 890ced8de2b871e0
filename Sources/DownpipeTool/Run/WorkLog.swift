import Downpipe
import Foundation
import Synchronization

/// Writes a line for each download that a worker ends, and counts them.
final class WorkLog: Observer {
  struct Counts: Sendable {
    var tally = Tally(startedAt: Date())
    /// The downloads that have failed here, and have neither finished nor been removed since.
    fileprivate(set) var failed: Set<DownloadID> = []
    /// The latest attempt of each running download.
    fileprivate var attempts: [DownloadID: Attempt] = [:]
    /// Downloads whose lease was lost: what is told of them is another worker's, or the last words of the lost attempt.
    fileprivate var lost: Set<DownloadID> = []
    var running: Int { attempts.count }
  }

  fileprivate struct Attempt: Sendable {
    var number = 0
    var start: Int64 = 0
    var received: Int64 = 0
    var isEndUnconfirmed = false
  }

  let name = "WorkLog"
  private let isJSON: Bool
  private let isQuiet: Bool
  private let urls: URLStyle
  private let state = Mutex(Counts())

  init(isJSON: Bool, isQuiet: Bool, urls: URLStyle = URLStyle()) {
    self.urls = urls
    self.isJSON = isJSON
    self.isQuiet = isQuiet
  }

  var counts: Counts { state.withLock { $0 } }

  func observe(_ events: AsyncStream<DownloadEvent>) async {
    var output: any RunOutput =
      isJSON ? JSONOutput(isQuiet: isQuiet, urls: urls) : PlainOutput(isQuiet: isQuiet, urls: urls)
    var fault: String?
    for await event in events {
      if let words = Self.words(event), words != fault {
        fault = words
        if !isQuiet { OutputFile.warn(words) }
      }
      let attempt = state.withLock { $0.note(event) }
      guard let attempt, case .state(let entered) = event.kind, var result = result(event, entered) else { continue }
      (result.attempts, result.resumedFrom) = (attempt.number, attempt.start)
      result.bytesFetched = max(0, attempt.received - attempt.start)
      result.isEndUnconfirmed = result.isFinished && attempt.isEndUnconfirmed
      let tally = state.withLock { [result] counts in
        counts.tally.count(result)
        if !result.isFinished { counts.failed.insert(result.id) }
        return counts.tally
      }
      // A reader that is gone does not stop the work.
      try? output.show(result)
      try? output.flush(tally, at: event.date)
    }
  }

  /// What the machine lacks by an event of this worker; `nil` for other events.
  private static func words(_ event: DownloadEvent) -> String? {
    if case .attemptFailed(let error) = event.kind, error.scope == .machine { error.reasonOfMachine } else { nil }
  }

  private func result(_ event: DownloadEvent, _ state: DownloadState) -> DownloadResult? {
    let url = event.request.givenURL
    switch state {
    case .finished(let artifact):
      return DownloadResult(id: event.id, url: url, path: artifact.place, bytes: artifact.size.bytes ?? 0)
    case .failed(let error): return DownloadResult(id: event.id, url: url, error: error)
    default: return nil
    }
  }
}

extension WorkLog.Counts {
  /// Notes what tells of an attempt of this worker. States are also told of the downloads of others.
  ///
  /// - Returns: The latest attempt of a download that has stopped here.
  fileprivate mutating func note(_ event: DownloadEvent) -> WorkLog.Attempt? {
    switch event.kind {
    // A run whose bytes are all here already sends no request, so it is known by its state.
    case .state(let state) where state.phase.isActive && event.isOwn: lost.remove(event.id)
    case .state(let state) where [.finished, .failed, .cancelled].contains(state.phase):
      lost.remove(event.id)
      if state.phase == .finished { failed.remove(event.id) }
    case .removed:
      lost.remove(event.id)
      failed.remove(event.id)
    case .attemptFailed(let error) where error.code == .notOwner: lost.insert(event.id)
    default: break
    }
    guard !lost.contains(event.id) else {
      attempts[event.id] = nil
      return nil
    }
    switch event.kind {
    case .state(let state) where state.phase.isActive:
      if attempts[event.id] == nil { attempts[event.id] = WorkLog.Attempt() }
    case .state, .removed: return attempts.removeValue(forKey: event.id)
    case .started(let number, let start):
      attempts[event.id] = WorkLog.Attempt(number: number, start: start, received: start)
    case .attemptFailed(let error):
      let number = max(attempts[event.id]?.number ?? 0, error.attempt ?? 0)
      attempts[event.id]?.number = number
    case .progress(let progress): attempts[event.id]?.received = progress.received
    case .refused(let error) where error.code == .unconfirmedEnd: attempts[event.id]?.isEndUnconfirmed = true
    default: break
    }
    return nil
  }
}
