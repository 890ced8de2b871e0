package import DownpipeCore

/// The intervals of downloads, derived from their events: waits, attempts, steps and whole downloads.
///
/// It accepts events in any order, with gaps and repetitions. The number of downloads that it follows is bounded: a
/// download that waits is followed only while there is room, a download that runs is always followed.
package struct Timeline: Sendable {
  /// A part of a download. The parts of a download do not overlap.
  package enum Part: Hashable, Sendable {
    /// The download waits, for a kind of reason.
    case waiting(for: WaitingKind)
    /// The download requests and receives bytes.
    case attempt
    /// A step processes the complete bytes.
    case step(String)
  }

  /// A change of one download.
  package struct Change: Sendable {
    package let id: DownloadID
    package let kind: Kind
  }

  /// A kind of change.
  package enum Kind: Hashable, Sendable {
    case began
    case beganPart(Part)
    /// The first reply of an attempt was accepted.
    case replied(after: Duration)
    /// Bytes were received over the network since the previous change of this kind.
    case fetched(Int64)
    /// A part has ended, with the error that ended it.
    case endedPart(Part, after: Duration, DownloadError?)
    /// The download has ended. The time is `nil` if it was not followed from the beginning.
    case ended(Ending, after: Duration?)
  }

  /// How a download left the timeline.
  package enum Ending: Hashable, Sendable {
    case finished, cancelled, paused, removed
    case failed(DownloadError)
    /// The downloader was shut down.
    case shutDown
    /// There was no room for the download.
    case forgotten
  }

  private struct Entry {
    let began: Duration
    /// Whether no earlier part was missed, as far as this process can tell.
    let isWhole: Bool
    var part: Part?
    var partBegan: Duration
    var hasReplied = false
    var fetched: Int64 = 0
  }

  private var entries: [DownloadID: Entry] = [:]
  private let capacity: Int
  private var now = Duration.zero

  /// Creates a timeline that follows waiting downloads while there are fewer than `capacity` entries.
  package init(capacity: Int = 10_000) { self.capacity = max(1, capacity) }

  /// The number of downloads that are followed.
  package var count: Int { entries.count }

  /// Takes the next event, and returns what it changes.
  package mutating func receive(_ event: DownloadEvent) -> [Change] {
    now = event.instant
    var changes: [Change] = []
    switch event.kind {
    case .state(let state):
      enter(state, event.id, &changes)
    case .started:
      reply(event.id, &changes)
    case .progress(let progress):
      fetch(progress.fetched, event.id, &changes)
    case .stepFinished(let name):
      if entries[event.id]?.part == .step(name) { endPart(of: event.id, nil, &changes) }
    case .removed:
      end(event.id, .removed, &changes)
    case .attemptFailed, .restarted, .refused, .redirected, .linkRefreshed, .stepProgress, .verified, .missed:
      break
    }
    return changes
  }

  /// Ends all downloads, at the time of the last event.
  package mutating func end() -> [Change] {
    var changes: [Change] = []
    for id in entries.keys { end(id, .shutDown, &changes) }
    return changes
  }

  // MARK: States

  private mutating func enter(_ state: DownloadState, _ id: DownloadID, _ changes: inout [Change]) {
    switch state {
    case .waiting(let reason):
      enter(.waiting(for: WaitingKind(reason)), id, after: reason.error, isStart: true, &changes)
    case .transferring:
      enter(.attempt, id, after: nil, isStart: true, &changes)
    case .processing(let step):
      enter(.step(step), id, after: nil, &changes)
    case .paused:
      end(id, .paused, &changes)
    case .finished:
      end(id, .finished, &changes)
    case .failed(let error):
      end(id, .failed(error), &changes)
    case .cancelled:
      end(id, .cancelled, &changes)
    }
  }

  /// Begins a part, unless it has begun.
  private mutating func enter(
    _ part: Part, _ id: DownloadID, after error: DownloadError?, isStart: Bool = false, _ changes: inout [Change]
  ) {
    if let entry = entries[id] {
      // The same state may be reported twice.
      guard entry.part != part else { return }
      endPart(of: id, error, &changes)
    } else {
      // Without room, a wait may have been missed.
      let isWhole = entries.count < capacity && isStart
      guard makeRoom(for: part, &changes) else { return }
      entries[id] = Entry(began: now, isWhole: isWhole, partBegan: now)
      changes.append(Change(id: id, kind: .began))
    }
    entries[id]?.part = part
    entries[id]?.partBegan = now
    entries[id]?.hasReplied = false
    entries[id]?.fetched = 0
    changes.append(Change(id: id, kind: .beganPart(part)))
  }

  /// Returns whether a download in the part may be followed. If the entries of running downloads exceed their number by
  /// far, because the events of their ends were dropped, all entries are forgotten.
  private mutating func makeRoom(for part: Part, _ changes: inout [Change]) -> Bool {
    if entries.count < capacity { return true }
    if case .waiting = part { return false }
    if entries.count >= 2 * capacity { for id in entries.keys { end(id, .forgotten, &changes) } }
    return true
  }

  private mutating func endPart(of id: DownloadID, _ error: DownloadError?, _ changes: inout [Change]) {
    guard let entry = entries[id], let part = entry.part else { return }
    entries[id]?.part = nil
    changes.append(Change(id: id, kind: .endedPart(part, after: since(entry.partBegan), error)))
  }

  private mutating func end(_ id: DownloadID, _ ending: Ending, _ changes: inout [Change]) {
    guard let entry = entries[id] else { return }
    var error: DownloadError?
    if case .failed(let failure) = ending { error = failure }
    endPart(of: id, error, &changes)
    entries[id] = nil
    changes.append(Change(id: id, kind: .ended(ending, after: entry.isWhole ? since(entry.began) : nil)))
  }

  // MARK: Transfers

  private mutating func reply(_ id: DownloadID, _ changes: inout [Change]) {
    if let entry = entries[id], entry.part == .attempt {
      guard !entry.hasReplied else { return }
      changes.append(Change(id: id, kind: .replied(after: since(entry.partBegan))))
    } else {
      // The beginning of the attempt was missed, and with it the time until the reply.
      enter(.attempt, id, after: nil, &changes)
    }
    entries[id]?.hasReplied = true
  }

  private mutating func fetch(_ fetched: Int64, _ id: DownloadID, _ changes: inout [Change]) {
    // Progress may be reported once more after the end of an attempt.
    guard let entry = entries[id], entry.part == .attempt, fetched > entry.fetched else { return }
    entries[id]?.fetched = fetched
    changes.append(Change(id: id, kind: .fetched(fetched - entry.fetched)))
  }

  private func since(_ instant: Duration) -> Duration { max(.zero, now - instant) }
}
