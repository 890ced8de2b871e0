/// The runs under way, and who of them counts among those that run.
///
/// A run has a slot from its lease until its work is over; it stays here until its outcome is in the ledger.
struct Slots: Sendable {
  /// Every run by its download. Of two runs of one download, the later one.
  private(set) var runs: [DownloadID: Run] = [:]
  /// What admission policies see: the runs with a slot.
  private(set) var counts = RunningDownloads()
  private var holders: [ObjectIdentifier: Holder] = [:]
  private var starts = 0
  /// How many runs have ended.
  private(set) var endings = 0
  /// How many may run at most while descriptors are short; no limit when `nil`.
  private(set) var ceiling: Int?

  /// What a run that has a slot counts as.
  private struct Holder: Sendable {
    var candidate: Candidate
    var rank: Rank
    /// Whether it was started by hand: limits send it back last.
    var isForced: Bool
    /// Grows with each run.
    let start: Int
  }

  /// Whether nothing is under way.
  var isEmpty: Bool { runs.isEmpty }

  /// Gives a run a slot.
  /// - Returns: an earlier run of the same download, which has not ended yet.
  mutating func insert(_ run: Run, isForced: Bool = false) -> Run? {
    starts += 1
    let (candidate, rank) = run.read { ($0.candidate, $0.rank) }
    let holder = Holder(candidate: candidate, rank: rank, isForced: isForced, start: starts)
    holders[ObjectIdentifier(run)] = holder
    counts.insert(holder.candidate)
    return runs.updateValue(run, forKey: run.id)
  }

  /// The request of a run has changed: it counts as another candidate from now on.
  mutating func update(_ run: Run) {
    guard var holder = holders[ObjectIdentifier(run)] else { return }
    counts.remove(holder.candidate)
    (holder.candidate, holder.rank) = run.read { ($0.candidate, $0.rank) }
    counts.insert(holder.candidate)
    holders[ObjectIdentifier(run)] = holder
  }

  /// The work of a run is over: its slot is free.
  /// - Returns: whether it had one.
  @discardableResult
  mutating func free(_ run: Run) -> Bool {
    guard let holder = holders.removeValue(forKey: ObjectIdentifier(run)) else { return false }
    counts.remove(holder.candidate)
    return true
  }

  /// A run has ended, and its outcome is in the ledger.
  mutating func remove(_ run: Run) {
    endings += 1
    free(run)
    if runs[run.id] === run { runs[run.id] = nil }
  }

  /// What a run that has a slot counts as.
  func candidate(of run: Run) -> Candidate? { holders[ObjectIdentifier(run)]?.candidate }

  /// The runs that have a slot: those that were started by hand first, then the best rank.
  var ranked: [Run] {
    sorted { left, right in left.isForced == right.isForced ? left.rank < right.rank : left.isForced }
  }

  /// The runs that have a slot, the earliest started first.
  var byStart: [Run] { sorted { $0.start < $1.start } }

  private func sorted(by isBefore: (Holder, Holder) -> Bool) -> [Run] {
    runs.values.compactMap { run in holders[ObjectIdentifier(run)].map { (run, $0) } }
      .sorted { isBefore($0.1, $1.1) }.map(\.0)
  }

  /// The runs that a command for all, or for those with a tag, means.
  func runs(tag: String?) -> [Run] {
    runs.values.filter { run in tag.map { tag in run.read { $0.request.tags.contains(tag) } } ?? true }
  }

  // MARK: Preemption

  /// Whom to send back so that `candidate` may run: as few as possible, the first ones of `victims` before others.
  func victims(
    _ policies: [any AdmissionPolicy], for candidate: Candidate, among victims: [Run]
  ) -> [Run] {
    func admits(without gone: [Run]) -> Bool {
      var rest = counts
      for run in gone { if let candidate = self.candidate(of: run) { rest.remove(candidate) } }
      return policies.refusal(candidate, beside: rest) == nil
    }
    if admits(without: []) { return [] }
    if let one = victims.first(where: { admits(without: [$0]) }) { return [one] }
    // Several limits are reached at once, each by other runs.
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

  /// There were not enough descriptors for what ran: half as many may run.
  mutating func ranOutOfDescriptors() { ceiling = max(1, min(ceiling ?? .max, counts.total / 2)) }

  /// A download has succeeded: one more may be tried.
  mutating func succeeded() {
    guard let old = ceiling else { return }
    ceiling = old < 1 << 16 ? old + 1 : nil
  }

  /// Whether one more may run beside `running`, as far as descriptors are concerned.
  func hasDescriptors(beside running: RunningDownloads) -> Bool { ceiling.map { running.total < $0 } ?? true }
}
