/// The published reasons of waiting downloads.
///
/// A due download waits for its turn, a limit or a gate. These reasons change without a change of the download.
struct WaitingReasons: Sendable {
  /// The last published reason of a download.
  struct Told: Sendable {
    let candidate: Candidate
    var reason: WaitingReason
    /// The downloads that it waits for.
    var waitsFor: Set<DownloadID> = []
  }

  /// The largest number of downloads to follow, as in a batch of changes; with more, batches are marked incomplete.
  static let most = 10_000
  /// The largest number of dependencies to follow.
  private static let mostDependencies = 100_000

  private(set) var told = OrderedTable<DownloadID, Told>()
  /// The followed downloads that wait for a download, by its id.
  private var dependents: [DownloadID: Set<DownloadID>] = [:]
  private var dependencyCount = 0
  /// The followed downloads of which a dependency has changed.
  private var stale: Set<DownloadID> = []
  /// Individually watched downloads that do not wait.
  private var notWaiting: Set<DownloadID> = []
  /// Whether more downloads wait than are followed.
  private(set) var isIncomplete = false
  /// The number of watchers for which older waiting downloads have been read from the ledger.
  var filledFor = 0
  /// How often they could not be read since they last were.
  var failuresToRead = 0
  /// The downloads that have changed since the ledger is being read; `nil` while it is not.
  private var changedMeanwhile: Set<DownloadID>?
  /// Whether slots, limits or gates have changed since the reasons were computed.
  var mayHaveChanged = false
  /// Whether a timer is set, after which the reasons are compared with the published ones.
  var isLooking = false
  /// How often that timer has fired since something has changed.
  var looks = 0
  /// Whether the next turn compares the reasons with the published ones.
  var mustLook = false

  /// Records a published state of a download, and follows its reason if it waits and is due.
  ///
  /// - Parameter waitsFor: The downloads that have to finish first.
  mutating func note(
    _ id: DownloadID, _ candidate: @autoclosure () -> Candidate, _ state: DownloadState,
    waitsFor: Set<DownloadID> = []
  ) {
    notWaiting.remove(id)
    forget(id)
    switch state {
    case .waiting(let reason) where reason.dependsOnOthers:
      if told.count >= Self.most || dependencyCount + waitsFor.count > Self.mostDependencies {
        isIncomplete = true
      } else {
        told[id] = Told(candidate: candidate(), reason: reason, waitsFor: waitsFor)
        for other in waitsFor { dependents[other, default: []].insert(id) }
        dependencyCount += waitsFor.count
      }
    case .waiting:
      break
    default:
      // The events of an ended download have ended.
      if !state.phase.isFinal { notWaiting.insert(id) }
    }
  }

  /// The watched downloads that may wait, but whose reason is not known.
  mutating func unknown(of watched: [DownloadID]) -> [DownloadID] {
    notWaiting.formIntersection(watched)
    return watched.filter { told[$0] == nil && !notWaiting.contains($0) }
  }

  mutating func forget(_ id: DownloadID) {
    noteMeanwhile(id)
    guard let old = told.removeValue(forKey: id) else { return }
    dependencyCount -= old.waitsFor.count
    for other in old.waitsFor {
      dependents[other]?.remove(id)
      if dependents[other]?.isEmpty == true { dependents[other] = nil }
    }
  }

  // The ledger is read while downloads change: what it has told of these may be over.

  /// Begins to note which downloads change.
  mutating func beginReading() { changedMeanwhile = [] }

  private mutating func noteMeanwhile(_ id: DownloadID) {
    changedMeanwhile?.insert(id)
    guard let changed = changedMeanwhile, changed.count > Self.most else { return }
    changedMeanwhile = nil
    // What is read cannot be told from what is over: those that waited before are not followed.
    isIncomplete = true
  }

  /// - Returns: The downloads that have changed since ``beginReading()``; `nil` if they are too many, or there were no
  ///   watchers in between.
  mutating func endReading() -> Set<DownloadID>? { changedMeanwhile.take() }

  /// Forgets all downloads, because there are no watchers.
  mutating func forgetAll() { self = WaitingReasons() }

  /// Notes that downloads have changed: the reasons of those that wait for them may have changed, too.
  mutating func noteChange(of ids: some Sequence<DownloadID>) {
    guard !dependents.isEmpty else { return }
    for id in ids { dependents[id].map { stale.formUnion($0) } }
    if !stale.isEmpty { mayHaveChanged = true }
  }

  /// Notes that the reason of a download has to be compared with the published one.
  mutating func setStale(_ id: DownloadID) {
    stale.insert(id)
    mayHaveChanged = true
  }

  /// Notes that any number of downloads have changed.
  mutating func noteChangeOfAll() { noteChange(of: dependents.keys) }

  /// Removes and returns the downloads whose dependencies have changed, in order of their ids.
  mutating func takeStale() -> [DownloadID] {
    defer { stale = [] }
    return stale.sorted()
  }

  /// The downloads whose reason has changed, except those that wait for another download. The closure is called once for each distinct candidate.
  ///
  /// - Parameter followingQueue: Whether it matters which limit a download waits for.
  mutating func takeChanged(
    followingQueue: Bool = true, _ reason: (Candidate) -> WaitingReason
  ) -> [DownloadID] {
    mayHaveChanged = false
    var reasons: [Candidate: WaitingReason] = [:]
    var changed: [DownloadID] = []
    var new: [(id: DownloadID, reason: WaitingReason)] = []
    for (id, old) in told where old.waitsFor.isEmpty {
      let now = reasons[old.candidate] ?? reason(old.candidate)
      reasons[old.candidate] = now
      guard now != old.reason else { continue }
      new.append((id, now))
      if !followingQueue, now.isFreeSlot, old.reason.isFreeSlot { continue }
      changed.append(id)
    }
    for (id, reason) in new { told[id]?.reason = reason }
    return changed
  }
}

extension WaitingReason {
  /// Whether the download waits for a free slot only.
  var isFreeSlot: Bool {
    switch self {
    case .turn, .limit, .preempted: true
    default: false
    }
  }

  /// Whether the reason depends on other downloads, limits or gates, and is therefore not in the record.
  var dependsOnOthers: Bool {
    switch self {
    case .turn, .limit, .preempted, .gate, .machine, .suspended, .dependency: true
    case .retry, .missing, .elsewhere: false
    }
  }
}
