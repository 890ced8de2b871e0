import DownpipeCore

/// Token buckets whose rates are shares that a ledger leases, by what the rates are for.
///
/// Bytes are paid for by time, at the speed of the share, and only while it is valid: a process that was stopped, or cut off
/// from the ledger, receives nothing after its share has expired.
struct LeasedBuckets: Sendable {
  fileprivate struct Bucket: Sendable {
    /// The share in bytes per second.
    var share: Int64 = 0
    /// When the share expires.
    var end: Duration = .zero
    /// The bytes that are not paid for; negative for those that may arrive at full speed.
    var debt = 0.0
    /// The instant up to which the time was counted.
    var counted: Duration
    /// The bytes that were paid for since the last want.
    var paid = 0.0
    /// The instant of the last want, or of the first use.
    var asked: Duration
    /// The instant of the next want; `nil` if there was none.
    var nextWant: Duration?
    /// Whether it was used since the last want, and whether a transfer had to pause.
    var (isUsed, isShort) = (false, false)
    var lastUse: Duration
    /// Since when it was used without a share.
    var waitsSince: Duration?

    init(at now: Duration) { (counted, asked, lastUse) = (now, now, now) }

    /// Counts the time that has passed.
    mutating func count(upTo now: Duration) {
      let time = min(now, end) - counted
      counted = max(counted, now)
      guard time > .zero else { return }
      let share = Double(share)
      let rest = max(debt - share * (time / .seconds(1)), -share * LeasedBuckets.burst)
      paid += max(0, debt - rest)
      debt = rest
    }
  }

  /// The rate of all downloaders together.
  private let rate: ByteRate
  private var buckets: [String: Bucket] = [:]
  private var mostBuckets = Self.fewest
  /// What the last wants were for, in their order.
  private var asked: [String] = []

  /// The seconds whose bytes may arrive at full speed after an idle time.
  static let burst = 0.1
  /// The number of buckets up to which none is forgotten.
  static let fewest = 4_096
  /// The largest number of wants at a time.
  static let mostWants = 256
  /// How long a bucket is kept without use.
  private static let memory: Duration = .seconds(60)
  /// The time between two wants for the same rate, unless a share is valid for longer than usual.
  private static let interval: Duration = .seconds(1)

  init(rate: ByteRate) { self.rate = rate }

  /// The number of buckets.
  var count: Int { buckets.count }

  // MARK: Transfers

  /// Counts bytes, and returns how long the transfer must pause.
  mutating func pause(after bytes: Int, for key: String, at now: Duration) -> Duration {
    if buckets.count >= mostBuckets, buckets[key] == nil { forget(at: now) }
    return buckets[key, default: Bucket(at: now)].pause(after: bytes, at: now)
  }

  /// Forgets buckets that have not been used for long.
  private mutating func forget(at now: Duration) {
    buckets = buckets.filter { $0.value.end > now || $0.value.lastUse + Self.memory > now }
    mostBuckets = max(Self.fewest, 2 * buckets.count)
  }

  // MARK: Shares

  /// What is wanted of the ledger now: if anything is, also what would be soon, so that one call does for both.
  ///
  /// What was asked for least recently comes first, so that each gets its turn if there are many.
  mutating func wants(at now: Duration) -> [RateWant] {
    let used = buckets.filter { $0.value.isUsed }
    guard used.contains(where: { $0.value.isDue(at: now) }) else { return [] }
    let due = used.filter { $0.value.isDue(at: now + Self.interval / 2) }
    asked = due.sorted { ($0.value.turn, $0.key) < ($1.value.turn, $1.key) }.prefix(Self.mostWants).map(\.key)
    return asked.map { key in
      let (wanted, held) = buckets[key, default: Bucket(at: now)].want(of: rate, at: now)
      buckets[key]?.nextWant = now + Self.interval
      return RateWant(key: key, rate: rate, wanted: wanted, held: held)
    }
  }

  /// Takes the shares for the last wants.
  mutating func take(_ shares: [RateShare], askedAt asked: Duration, at now: Duration) {
    for (key, share) in zip(self.asked, shares) {
      buckets[key]?.take(share, askedAt: asked, at: now)
      buckets[key]?.nextWant = asked + share.validity / 5
    }
    self.asked = []
  }
}

extension LeasedBuckets.Bucket {
  /// How long a transfer waits at least before it looks for a share again, and at most.
  private static let look: ClosedRange<Duration> = .milliseconds(20) ... .milliseconds(500)

  fileprivate mutating func pause(after bytes: Int, at now: Duration) -> Duration {
    count(upTo: now)
    debt += Double(max(0, bytes))
    (isUsed, lastUse) = (true, now)
    guard now < end, share > 0 else {
      isShort = true
      let since = waitsSince ?? now
      waitsSince = since
      // A new share is noticed soon; in a long outage the transfers of a busy worker need not look often.
      return min(max(now - since, Self.look.lowerBound), Self.look.upperBound)
    }
    waitsSince = nil
    guard debt > 0 else { return .zero }
    isShort = true
    return .seconds(min(debt / Double(share), 1))
  }

  /// Whether the ledger is to be asked at an instant.
  fileprivate func isDue(at now: Duration) -> Bool { nextWant.map { $0 <= now } ?? true }

  /// Sorts by the last want; those without one come first.
  fileprivate var turn: Duration { nextWant ?? .zero }

  /// The bytes per second that are wanted, and those of the share in effect. The next time begins.
  fileprivate mutating func want(of rate: ByteRate, at now: Duration) -> (wanted: Int64, held: Int64) {
    count(upTo: now)
    let time = (now - asked) / .seconds(1)
    let held = now < end ? share : 0
    // One that has used its share up would use more, and how much is not known. Pauses alone do not say that: they also
    // smooth what arrives in bursts.
    let isUsedUp = isShort && paid >= 0.8 * Double(held) * time
    var wanted = rate.bytesPerSecond
    if !isUsedUp, time > 0 {
      // Half as much again, to grow before the next want.
      let speed = max(1.5 * paid / time, Double(rate.bytesPerSecond) / 64)
      if speed < Double(rate.bytesPerSecond) { wanted = max(1, Int64(speed)) }
    }
    (paid, asked, isUsed, isShort) = (0, now, false, false)
    return (wanted, held)
  }

  fileprivate mutating func take(_ new: RateShare, askedAt asked: Duration, at now: Duration) {
    // At the former share.
    count(upTo: now)
    (share, end) = (max(0, new.bytesPerSecond), asked + new.validity)
  }
}
