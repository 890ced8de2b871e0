/// The runs under way, and who of them counts among those that run.
///
/// A run has a slot from its lease until its work is over; it stays here until its outcome is in the ledger.
struct Slots: Sendable {
  /// Every run by its download. Of two runs of one download, the later one.
  private(set) var runs: [DownloadID: Run] = [:]
  /// What admission policies see: the runs with a slot.
  private(set) var counts = RunningDownloads()
  private var holders: Set<ObjectIdentifier> = []
  /// How many may run at most while descriptors are short; no limit when `nil`.
  private(set) var ceiling: Int?

  /// Whether nothing is under way.
  var isEmpty: Bool { runs.isEmpty }

  /// Gives a run a slot.
  /// - Returns: an earlier run of the same download, which has not ended yet.
  mutating func insert(_ run: Run) -> Run? {
    holders.insert(ObjectIdentifier(run))
    counts.insert(run.candidate)
    return runs.updateValue(run, forKey: run.id)
  }

  /// The work of a run is over: its slot is free.
  /// - Returns: whether it had one.
  @discardableResult
  mutating func free(_ run: Run) -> Bool {
    guard holders.remove(ObjectIdentifier(run)) != nil else { return false }
    counts.remove(run.candidate)
    return true
  }

  /// A run has ended, and its outcome is in the ledger.
  mutating func remove(_ run: Run) {
    free(run)
    if runs[run.id] === run { runs[run.id] = nil }
  }

  /// The runs that have a slot, the best rank first.
  var ranked: [Run] {
    runs.values.filter { holders.contains(ObjectIdentifier($0)) }.sorted { $0.rank < $1.rank }
  }

  /// The runs that a command for all, or for those with a tag, means.
  func runs(tag: String?) -> [Run] {
    runs.values.filter { run in tag.map(run.candidate.tags.contains) ?? true }
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
