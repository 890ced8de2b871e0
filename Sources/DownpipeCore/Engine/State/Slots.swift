/// The current runs, and which of them have a slot.
///
/// A run has a slot from its lease until its work ends; one that was stopped for a change until its outcome has been saved in the
/// ledger: then it is leased again, before others. It stays here until its outcome has been saved.
struct Slots: Sendable {
  /// All runs by download, in the order of their starts; the later one if a download has two.
  private(set) var runs = OrderedTable<DownloadID, Run>()
  /// The runs with a slot, as admission policies see them.
  private(set) var counts = RunningDownloads()
  private var holders: [ObjectIdentifier: Holder] = [:]
  private var starts = 0
  /// The largest number of running downloads while descriptors are short; `nil` for no limit.
  private(set) var ceiling: Int?

  /// The attributes of a run with a slot.
  private struct Holder: Sendable {
    var candidate: Candidate
    /// The order in which the ledger leases.
    var rank: Rank
    let arrival: Int64
    /// Whether the run was started by hand: such runs are preempted last.
    var isForced: Bool
    /// A number that grows with each run.
    let start: Int
    let startedAt: Duration
    /// Whether its work has ended.
    var isIdle = false
  }

  /// Whether there are runs, also ended ones whose outcomes are not saved.
  var hasRuns: Bool { !runs.isEmpty }

  /// The sizes of the collections, by their names.
  var sizes: [String: Int] {
    [
      "runs": runs.count, "slots": holders.count, "running downloads": counts.total,
    ]
  }

  /// Gives a run a slot.
  /// - Returns: An earlier run of the same download that has not ended.
  mutating func insert(_ run: Run, isForced: Bool = false, at now: Duration = .zero) -> Run? {
    starts += 1
    let holder = run.read { record in
      Holder(
        candidate: record.candidate, rank: record.rank, arrival: record.arrival, isForced: isForced, start: starts,
        startedAt: now)
    }
    holders[ObjectIdentifier(run)] = holder
    counts.insert(holder.candidate)
    // In the place of its start, not in that of the earlier run.
    let earlier = runs.removeValue(forKey: run.id)
    runs[run.id] = run
    return earlier
  }

  /// Updates the candidate and rank of a run whose request has changed.
  mutating func update(_ run: Run) {
    guard var holder = holders[ObjectIdentifier(run)] else { return }
    counts.remove(holder.candidate)
    (holder.candidate, holder.rank) = run.read { ($0.candidate, $0.rank) }
    counts.insert(holder.candidate)
    holders[ObjectIdentifier(run)] = holder
  }

  /// Updates the candidates of runs whose sizes have become known, or were wrong.
  /// - Returns: Whether any has changed.
  mutating func learnSizes() -> Bool {
    var hasChanged = false
    for run in runs.values {
      guard var holder = holders[ObjectIdentifier(run)] else { continue }
      let size = run.read(\.likelySize)
      guard size != holder.candidate.size else { continue }
      hasChanged = true
      counts.remove(holder.candidate)
      holder.candidate.size = size
      counts.insert(holder.candidate)
      holders[ObjectIdentifier(run)] = holder
    }
    return hasChanged
  }

  /// Notes that the work of a run has ended that keeps its slot.
  mutating func keep(_ run: Run) { holders[ObjectIdentifier(run)]?.isIdle = true }

  /// Whether a run has a slot and works.
  func isWorking(_ run: Run) -> Bool { holders[ObjectIdentifier(run)]?.isIdle == false }

  /// Whether a run has a slot that it was given by hand.
  func isForced(_ run: Run) -> Bool { holders[ObjectIdentifier(run)]?.isForced ?? false }

  /// Frees the slot of a run whose work has ended.
  /// - Returns: Whether the run had a slot.
  @discardableResult
  mutating func free(_ run: Run) -> Bool {
    guard let holder = holders.removeValue(forKey: ObjectIdentifier(run)) else { return false }
    counts.remove(holder.candidate)
    return true
  }

  /// Removes a run whose outcome has been saved in the ledger.
  mutating func remove(_ run: Run) {
    free(run)
    if runs[run.id] === run { runs[run.id] = nil }
  }

  /// When a run started; `nil` if the run has no slot.
  func start(of run: Run) -> Duration? { holders[ObjectIdentifier(run)]?.startedAt }

  /// The candidate of a run; `nil` if the run has no slot.
  func candidate(of run: Run) -> Candidate? { holders[ObjectIdentifier(run)]?.candidate }

  /// The runs with a slot: first those started by hand, then the others in order of rank and arrival.
  var ranked: [Run] {
    sorted { left, right in
      guard left.isForced == right.isForced else { return left.isForced }
      return (left.rank, left.arrival, left.start) < (right.rank, right.arrival, right.start)
    }
  }

  /// The runs with a slot, in the order of their starts.
  var byStart: [Run] { sorted { $0.start < $1.start } }

  private func sorted(by isBefore: (Holder, Holder) -> Bool) -> [Run] {
    runs.values.compactMap { run in holders[ObjectIdentifier(run)].map { (run, $0) } }
      .sorted { isBefore($0.1, $1.1) }.map(\.0)
  }

  /// The runs whose records match a filter.
  func runs(matching filter: DownloadFilter) -> [Run] { runs.values.filter { $0.read(filter.matches) } }

  /// The requests of all runs.
  var requests: OrderedTable<DownloadID, DownloadRequest> { runs.mapValues { $0.read { $0.request } } }

  func runs(in selection: LedgerSelection) -> [Run] {
    switch selection {
    case .matching(let filter): runs(matching: filter)
    case .ids(let ids): ids.compactMap { runs[$0] }
    }
  }

  /// The selection without the downloads that it names and that have a run: the ledger may not know of it.
  func idle(in selection: LedgerSelection) -> LedgerSelection {
    guard case .ids(let ids) = selection else { return selection }
    return .ids(ids.filter { runs[$0] == nil })
  }

  // MARK: Preemption

  /// The runs to preempt so that `candidate` may run: as few as possible, taken from the front of `victims`.
  func victims(
    _ limits: AdmissionLimits, for candidate: Candidate, among victims: [Run], at now: Duration
  ) -> [Run] {
    func admits(without gone: [Run]) -> Bool {
      var rest = counts
      for run in gone { if let candidate = self.candidate(of: run) { rest.remove(candidate) } }
      return limits.stops(candidate, beside: rest, at: now) == nil
    }
    if admits(without: []) { return [] }
    if let one = victims.first(where: { admits(without: [$0]) }) { return [one] }
    // Several limits are reached, each by different runs.
    guard let count = (1...max(1, victims.count)).first(where: { admits(without: Array(victims.prefix($0))) })
    else { return [] }
    var chosen = Array(victims.prefix(count))
    for run in chosen {
      let fewer = chosen.filter { $0 !== run }
      if admits(without: fewer) { chosen = fewer }
    }
    return chosen
  }

  // MARK: Descriptors

  /// Halves the number of running downloads, because there were not enough descriptors.
  mutating func ranOutOfDescriptors() { ceiling = max(1, min(ceiling ?? .max, counts.total / 2)) }

  /// Permits one more running download after a success.
  mutating func succeeded() {
    guard let old = ceiling else { return }
    ceiling = old < 1 << 16 ? old + 1 : nil
  }

  /// Whether there are enough descriptors for one more download beside `running`.
  func hasDescriptors(beside running: RunningDownloads) -> Bool { running.hasDescriptors(upTo: ceiling) }
}

extension RunningDownloads {
  /// Whether there are enough descriptors for one more download; see ``Slots/ceiling``.
  func hasDescriptors(upTo ceiling: Int?) -> Bool { ceiling.map { total < $0 } ?? true }
}

/// Downloads that return to their slots.
struct Returning: Sendable {
  private var ids: Set<DownloadID> = []
  /// Those that were started by hand: limits do not hold them up. Whether they also exceed those of connections.
  private var forced: [DownloadID: Bool] = [:]

  var count: Int { ids.count + forced.count }
  /// Whether the next ones were started by hand: they are leased by themselves.
  var areForced: Bool { !forced.isEmpty }
  /// Those that are leased next.
  var next: Set<DownloadID> { forced.isEmpty ? ids : Set(forced.keys) }

  /// - Parameter isForced: Whether the run was started by hand.
  mutating func insert(_ run: Run, isForced: Bool) {
    if isForced { forced[run.id] = run.exceedsLimits } else { ids.insert(run.id) }
  }

  /// Removes downloads that were leased, or cannot be.
  /// - Returns: Those that were started by hand, and whether they exceed the limits of connections.
  @discardableResult
  mutating func remove(_ gone: some Sequence<DownloadID>) -> [DownloadID: Bool] {
    var known: [DownloadID: Bool] = [:]
    for id in gone {
      ids.remove(id)
      if let exceeds = forced.removeValue(forKey: id) { known[id] = exceeds }
    }
    return known
  }
}
