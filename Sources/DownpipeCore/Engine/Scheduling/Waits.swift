internal import Foundation

/// What waiting downloads wait for, as far as that can come early, and the times at which the loop has to look. The due
/// times themselves are in the ledger; of the rest no more is kept than fits in memory.
struct Waits: Sendable {
  /// A download that waits for something which may come before its time is over.
  struct Missing: Sendable {
    /// The bytes it would still write.
    let needed: Int64
    /// The bytes that could be written when it found out that there were too few.
    let available: Int64
    /// When it is tried in any case.
    let until: Date
  }

  private static let mostMissing = 100_000
  /// By what they wait for: the loop asks for one kind at each turn.
  private var missing: [Awaited: [DownloadID: Missing]] = [:]
  /// Whether a child task looks at the disk.
  var isWatchingForRoom = false
  /// The due times for which a timer is set.
  private var armed: Set<Date> = []
  /// Whether the ledger may hold a due time that no timer is set for.
  var mayHaveDelayed = true
  /// When the ledger was last asked for what is due, if that was in this round.
  var lastLook: Date?

  // MARK: What is missing

  var isAnythingMissing: Bool { missing.values.contains { !$0.isEmpty } }
  var isRoomMissing: Bool { missing[.disk]?.isEmpty == false }

  /// Remembers, or forgets, what a download that has ended its run is short of.
  ///
  /// - Parameter available: the bytes that may be written; a storage that cannot tell is tried in its time.
  mutating func note(_ record: DownloadRecord, available: Int64?) {
    for what in missing.keys { missing[what]?[record.id] = nil }
    guard record.phase == .waiting, let until = record.notBefore, let what = record.awaited,
      missing[what, default: [:]].count < Self.mostMissing
    else { return }
    switch what {
    case .network, .descriptors:
      missing[what, default: [:]][record.id] = Missing(needed: 0, available: 0, until: until)
    case .disk:
      guard let available else { return }
      let rest = record.checkpoint.total.bytes.map { $0 - record.checkpoint.ranges.byteCount }
      missing[what, default: [:]][record.id] = Missing(
        needed: max(rest ?? 0, 1 << 20), available: available, until: until)
    case .owner, .link:
      break
    }
  }

  /// Takes out those that wait for something which is there now.
  mutating func take(_ what: Awaited) -> [DownloadID] {
    missing.removeValue(forKey: what).map { Array($0.keys) } ?? []
  }

  /// Takes out those for which there is room now. Room is given away once, so that those who wait do not fill it up
  /// together. Less than there was when a download failed cannot be enough for it.
  mutating func take(withRoom room: Int64?, at now: Date) -> [DownloadID] {
    var waiting = missing[.disk, default: [:]].filter { $0.value.until > now }
    var ready: [DownloadID] = []
    if var room {
      for (id, need) in waiting where room > need.available && room >= need.needed {
        room -= need.needed
        ready.append(id)
      }
    }
    for id in ready { waiting[id] = nil }
    missing[.disk] = waiting
    return ready
  }

  // MARK: Timers

  /// The instant to sleep to for a due time; `nil` when a timer is set for it already, or for an earlier one: when that
  /// has run out the ledger is asked for the next.
  mutating func arm(_ due: Date, at date: Date, now: Duration) -> Duration? {
    if let first = armed.min(), first <= due { return nil }
    armed.insert(due)
    // A date is a floating-point number: what is lost below a microsecond must not make a timer late.
    let microseconds = (due.timeIntervalSince(date) * 1e6).rounded()
    return now + .microseconds(Int64(min(max(0, microseconds), 400 * 86_400 * 1e6)))
  }

  /// A timer has run out, or was cancelled.
  mutating func disarm(_ due: Date) { armed.remove(due) }
}
