/// Why the downloads wait that watchers see waiting: a download that is due waits for its turn, for a limit or for a gate,
/// which changes without anything happening to it.
struct WaitingReasons: Sendable {
  /// What was told last of a download.
  struct Told: Sendable {
    let candidate: Candidate
    var reason: WaitingReason
  }

  /// As many are followed as one batch of changes holds; of more, watchers are told that the batch is incomplete.
  static let most = 10_000

  private(set) var told: [DownloadID: Told] = [:]
  /// Downloads that are watched by themselves and do not wait.
  private var settled: Set<DownloadID> = []
  /// Whether more wait than are followed.
  private(set) var isIncomplete = false
  /// For how many watchers the ledger has been asked for those that waited before they came.
  var filledFor = 0
  /// Whether slots, limits or gates have changed since the reasons were looked at.
  var mayHaveChanged = false
  /// Whether a child task is about to look.
  var isLooking = false

  /// A download waits, and is due; or it does not any more.
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
      // What has ended is not watched any more.
      if !state.phase.isFinal { settled.insert(id) }
    }
  }

  /// Those of the watched downloads of which it is not known why they wait, if they do.
  mutating func unknown(of watched: [DownloadID]) -> [DownloadID] {
    settled.formIntersection(watched)
    return watched.filter { told[$0] == nil && !settled.contains($0) }
  }

  mutating func forget(_ id: DownloadID) { told[id] = nil }

  /// Nothing is watched any more.
  mutating func forgetAll() { self = WaitingReasons() }

  /// The downloads that wait for another reason now; each kind of candidate is asked about once.
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
  /// Whether it changes by what others do: the ledger knows nothing of it.
  var dependsOnOthers: Bool {
    switch self {
    case .turn, .limit, .gate, .suspended: true
    case .retry, .missing, .elsewhere: false
    }
  }
}
