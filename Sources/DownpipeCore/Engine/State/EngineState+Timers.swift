internal import Foundation

// Timers: each is set by an action, and comes back as an event when it fires.
extension EngineState {
  /// What a timer is for.
  enum Timer: Sendable {
    /// A download becomes due, or a ledger that has failed is used again.
    case due
    /// Admission policies are asked again.
    case admission
    /// The storage is asked for its free space, while a download waits for it.
    case room
    /// Changes by other processes are looked for, while they could matter.
    case others
    /// Progress is reported, and leases are renewed, while something runs.
    case progress
    /// The downloads of dead owners are reclaimed.
    case lease

    var purpose: SleepPurpose {
      switch self {
      case .due, .admission: .dueTime
      case .room: .room
      case .others: .others
      case .progress: .progress
      case .lease: .lease
      }
    }
  }

  mutating func set(_ timer: Timer, after interval: Duration, at instant: Instant) {
    add(.sleep(until: instant.now + interval, timer))
  }

  /// - Parameter due: The instant for which the timer was set.
  mutating func fire(_ timer: Timer, _ due: Duration, at instant: Instant) {
    switch timer {
    case .due: wake(at: due)
    case .admission: askAdmission(at: due)
    case .room: add(.askRoom)
    case .others: add(.lookForOthers)
    case .progress: tickRuns(at: instant)
    case .lease: add(.maintain)
    }
  }

  // MARK: Due times

  /// Sets a timer for a due time, unless there is one for it or for an earlier time.
  mutating func arm(_ due: Date?, at instant: Instant) {
    guard let due, let end = waits.arm(due, at: instant.date, now: instant.now) else { return }
    add(.sleep(until: end, .due))
  }

  /// Sets a timer after which the ledger is used again, unless there is one.
  mutating func armRest(at instant: Instant) {
    guard mode.ledger != .restsUntilTimer else { return }
    mode.ledger = .restsUntilTimer
    arm(instant.date.addingTimeInterval(1), at: instant)
  }

  private mutating func wake(at end: Duration) {
    waits.disarm(end)
    due.insert([.leases, .timer, .turn])
    mode.ledger = .used
  }

  /// Sets a timer for the first of the instants at which admission policies are to be asked again.
  mutating func armAdmission(_ dues: [Duration], at instant: Instant) {
    waits.noteAdmissions(dues)
    // The instant may have come while the ledger was leasing.
    if waits.passAdmissions(through: instant.now) { mayLeaseMore() }
    guard let next = waits.nextAdmission, mode.admissionDue.map({ next < $0 }) ?? true else { return }
    mode.admissionDue = next
    add(.sleep(until: next, .admission))
  }

  private mutating func askAdmission(at end: Duration) {
    if mode.admissionDue == end { mode.admissionDue = nil }
    _ = waits.passAdmissions(through: end)
    mayLeaseMore()
    due.insert(.turn)
  }

  // MARK: Room

  /// Sets a timer after which the disk is checked, if a download waits for space.
  mutating func watchForRoom(at instant: Instant) {
    waits.isWatchingForRoom = waits.isRoomMissing
    if waits.isRoomMissing { set(.room, after: .seconds(1), at: instant) }
  }

  mutating func take(room bytes: Int64?, at instant: Instant) {
    waits.end(withRoom: bytes, at: instant.date)
    due.insert(.turn)
    watchForRoom(at: instant)
  }

  // MARK: Others

  /// The time between two looks for changes by other processes. Their watchers hear of them within a second.
  private static let lookInterval: Duration = .milliseconds(500)

  /// - Parameter mayMatter: Whether a further change could matter here; `nil` if the ledger cannot tell of changes.
  mutating func endLook(mayMatter: Bool?, at instant: Instant) {
    mode.others = mayMatter.map { $0 ? .lookedFor : .quiet } ?? .unheard
    if mode.others == .lookedFor { set(.others, after: Self.lookInterval, at: instant) }
  }

  // MARK: Progress

  private mutating func tickRuns(at instant: Instant) {
    guard slots.hasRuns, let renewed = mode.renewed else { return mode.renewed = nil }
    add(.tickRuns)
    if let trial = health.trial, slots.runs[trial]?.hasReceived == true { health.receives() }
    learnSizes()
    if reasons.tick(), hub.isAnythingWatched { due.insert(.turn) }
    if due.contains(.gates) { due.insert(.turn) }
    if instant.now - renewed > context.options.lease / 3 {
      mode.renewed = instant.now
      add(.renewLeases)
    }
    set(.progress, after: context.options.progressInterval, at: instant)
  }
}
