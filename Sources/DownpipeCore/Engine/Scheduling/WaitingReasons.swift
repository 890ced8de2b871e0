/// The published reasons of waiting downloads.
///
/// A due download waits for its turn, a limit or a gate. These reasons change without a change of the download.
struct WaitingReasons: Sendable {
  /// The last published reason of a download.
  struct Told: Sendable {
    let candidate: Candidate
    var reason: WaitingReason
  }

  /// The largest number of downloads to follow, as in a batch of changes; with more, batches are marked incomplete.
  static let most = 10_000

  private(set) var told: [DownloadID: Told] = [:]
  /// Individually watched downloads that do not wait.
  private var settled: Set<DownloadID> = []
  /// Whether more downloads wait than are followed.
  private(set) var isIncomplete = false
  /// The number of watchers for which older waiting downloads have been read from the ledger.
  var filledFor = 0
  /// Whether slots, limits or gates have changed since the reasons were computed.
  var mayHaveChanged = false
  /// Whether a child task is about to compute the reasons.
  var isLooking = false

  /// Records a published state of a download, and follows its reason if it waits and is due.
  mutating func note(_ id: DownloadID, _ candidate: @autoclosure () -> Candidate, _ state: DownloadState) {
    settled.remove(id)
    switch state {
    case .waiting(let reason) where reason.dependsOnOthers:
      if told.count >= Self.most, told[id] == nil {
        isIncomplete = true
      } else {
        told[id] = Told(candidate: candidate(), reason: reason)
      }
    case .waiting:
      told[id] = nil
    default:
      told[id] = nil
      // An ended download has no watchers.
      if !state.phase.isFinal { settled.insert(id) }
    }
  }

  /// The watched downloads that may wait, but whose reason is not known.
  mutating func unknown(of watched: [DownloadID]) -> [DownloadID] {
    settled.formIntersection(watched)
    return watched.filter { told[$0] == nil && !settled.contains($0) }
  }

  mutating func forget(_ id: DownloadID) { told[id] = nil }

  /// Forgets all downloads, because there are no watchers.
  mutating func forgetAll() { self = WaitingReasons() }

  /// The downloads whose reason has changed. The closure is called once for each distinct candidate.
  mutating func takeChanged(_ reason: (Candidate) -> WaitingReason) -> [DownloadID] {
    mayHaveChanged = false
    var reasons: [Candidate: WaitingReason] = [:]
    var changed: [DownloadID] = []
    for (id, old) in told {
      let now = reasons[old.candidate] ?? reason(old.candidate)
      reasons[old.candidate] = now
      guard now != old.reason else { continue }
      told[id]?.reason = now
      changed.append(id)
    }
    return changed
  }
}

extension WaitingReason {
  /// Whether the reason depends on other downloads, limits or gates, and is therefore not in the ledger.
  var dependsOnOthers: Bool {
    switch self {
    case .turn, .limit, .gate, .suspended: true
    case .retry, .missing, .elsewhere: false
    }
  }
}
