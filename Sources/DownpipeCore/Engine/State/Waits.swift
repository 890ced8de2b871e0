internal import Foundation

/// The resources that waiting downloads need and may get before their due times, and the timers.
///
/// The due times themselves are in the ledger. The number of entries in memory is bounded.
struct Waits: Sendable {
  /// A download that waits for a resource.
  struct Missing: Sendable {
    /// The number of bytes that the download still has to write.
    let needed: Int64
    /// The free space at which it tries again: more than there was when there was not enough, or what it needs beside
    /// a reserve.
    let threshold: Int64
    /// When the download is due in any case.
    let until: Date
  }

  private static let mostMissing = 100_000
  /// Downloads by the resource they need; decisions look up one resource at a time.
  private var missing: [Awaited: OrderedTable<DownloadID, Missing>] = [:]
  /// The downloads that need not wait any longer for the resource that they lacked.
  private var due: [DownloadID] = []
  /// Whether the disk is being checked, or a timer is set after which it is.
  var isWatchingForRoom = false
  /// The instants with a timer. Not dates: a clock that is set would make an early timer look late.
  private var armed: Set<Duration> = []
  /// The time up to which the last lease took due downloads, if there was a lease in this round.
  var lastLook: Date?

  /// The instants at which admission policies are to be asked again, each once.
  private var admissions = MinHeap<Duration>()
  private var knownAdmissions: Set<Duration> = []

  // MARK: Admission policies

  /// Records instants at which admission policies are to be asked again.
  mutating func noteAdmissions(_ dues: [Duration]) {
    for due in dues where knownAdmissions.insert(due).inserted { admissions.insert(due) }
  }

  /// The next instant at which admission policies are to be asked; `nil` if there is none.
  var nextAdmission: Duration? { admissions.first }

  /// Removes the instants that have come.
  /// - Returns: Whether there were any.
  mutating func passAdmissions(through now: Duration) -> Bool {
    let passed = admissions.removeAll(through: now)
    for due in passed { knownAdmissions.remove(due) }
    return !passed.isEmpty
  }

  // MARK: Missing resources

  var isAnythingMissing: Bool { missing.values.contains { !$0.isEmpty } }
  var isRoomMissing: Bool { missing[.disk]?.isEmpty == false }

  /// Records the resource that a download waits for after its run, if any.
  ///
  /// - Parameters:
  ///   - available: The free space in bytes; `nil` if the storage cannot tell, and the download waits for its due time.
  ///   - needed: The free space with which the download can start, if that is known.
  mutating func note(_ record: DownloadRecord, available: Int64?, needed: Int64? = nil) {
    for what in missing.keys { missing[what]?[record.id] = nil }
    guard record.phase == .waiting, let until = record.notBefore, let what = record.awaited,
      missing[what].map({ $0.count < Self.mostMissing }) ?? true
    else { return }
    switch what {
    case .network, .descriptors:
      missing[what, default: OrderedTable()][record.id] = Missing(needed: 0, threshold: 0, until: until)
    case .disk:
      guard let available else { return }
      let rest = record.checkpoint.total.bytes.map { $0 - record.checkpoint.ranges.byteCount }
      missing[what, default: OrderedTable()][record.id] = Missing(
        needed: max(rest ?? 0, 1 << 20), threshold: needed ?? available.addingReportingOverflow(1).partialValue,
        until: until)
    case .owner, .link:
      break
    }
  }

  /// Forgets what downloads wait for, because a command has changed or removed them.
  mutating func forget(_ ids: [DownloadID]) {
    guard isAnythingMissing else { return }
    for what in missing.keys { for id in ids { missing[what]?[id] = nil } }
  }

  /// Lets the downloads try again that wait for a resource that is available now, the longest first.
  mutating func end(_ what: Awaited) {
    if let all = missing.removeValue(forKey: what) { due += all.keys }
  }

  /// Removes and returns the downloads that try again.
  mutating func takeDue() -> [DownloadID] {
    defer { due = [] }
    return due
  }

  /// Lets the downloads try again for which there is enough space now.
  ///
  /// Each byte of space is assigned once, to the downloads that have waited longest, so that they do not fill the disk
  /// together. A download does not get less space than there was when it failed.
  mutating func end(withRoom room: Int64?, at now: Date) {
    var ready: [DownloadID] = []
    var room = room
    missing[.disk]?.removeAll { id, need in
      if need.until <= now { return true }
      guard let free = room, free >= need.threshold, free >= need.needed else { return false }
      room = free - need.needed
      ready.append(id)
      return true
    }
    due += ready
  }

  // MARK: Timers

  /// The instant until which to sleep for a due time; `nil` if there is a timer for it or for an earlier time, after
  /// which the ledger is asked for the next one.
  mutating func arm(_ due: Date, at date: Date, now: Duration) -> Duration? {
    // A date is a floating-point number: a rounding error below a microsecond must not make a timer fire late.
    let microseconds = (due.timeIntervalSince(date) * 1e6).rounded()
    let instant = now + .microseconds(Int64(min(max(0, microseconds), 400 * 86_400 * 1e6)))
    if let first = armed.min(), first <= instant { return nil }
    armed.insert(instant)
    return instant
  }

  /// Removes a timer that has fired.
  mutating func disarm(_ instant: Duration) { armed.remove(instant) }
}
