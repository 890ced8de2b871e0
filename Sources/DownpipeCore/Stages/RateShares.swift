public import Foundation

/// The shares of one rate: how a ledger divides a rate between its owners.
///
/// A ledger keeps the ``rows``, and changes them in one transaction in which no other one leases the same rate.
///
/// At no instant are the shares that may be in use more than the rate together. The fair share of an owner is max-min
/// fair: what some owners do not want is divided among the others. An owner gets its fair share as far as it is free; the
/// shares of the others become smaller when they ask the next time, and then there is room.
@_spi(Ledger) public struct RateShares: Sendable, Hashable {
  /// The share of one owner.
  public struct Row: Sendable, Hashable {
    /// The owner.
    public var owner: String
    /// The rate that the owner has named, in bytes per second.
    public var rate: Int64
    /// The number of bytes per second that it has wanted.
    public var wanted: Int64
    /// Its share in bytes per second.
    public var share: Int64
    /// When the share expires.
    public var end: Date
    /// An earlier share in bytes per second, which it may use as long as it has not heard of the present one.
    public var held: Int64
    /// When the earlier share has expired for certain.
    public var heldEnd: Date

    /// Creates a row.
    public init(
      owner: String, rate: Int64, wanted: Int64, share: Int64, end: Date, held: Int64 = 0, heldEnd: Date = .distantPast
    ) {
      self.owner = owner
      self.rate = rate
      self.wanted = wanted
      self.share = share
      self.end = end
      self.held = held
      self.heldEnd = heldEnd
    }

    /// The most bytes per second that the owner may use at an instant.
    public func use(at now: Date) -> Int64 {
      max(0, now < end ? share : 0, now < heldEnd ? held : 0)
    }

    /// When the row says nothing any more.
    public var lastEnd: Date { max(end, heldEnd) }
  }

  /// The shares, in no particular order.
  public private(set) var rows: [Row]

  /// Creates shares from the rows of a ledger.
  public init(_ rows: [Row] = []) { self.rows = rows }

  /// The most bytes per second that all owners together may use at an instant.
  public func use(at now: Date) -> Int64 { rows.reduce(0) { $0.addingSaturated($1.use(at: now)) } }

  /// Removes the share of an owner that uses it no more.
  public mutating func remove(_ owner: String) { rows.removeAll { $0.owner == owner } }

  /// Removes expired shares.
  public mutating func removeExpired(at now: Date) { rows.removeAll { $0.lastEnd <= now } }

  /// The number of owners up to which a share is valid for the time that was asked for. With more, it is valid longer, up to
  /// ``longest`` times: a ledger leases one rate only so many times in a second.
  static let fewOwners = 50
  /// How many times longer than it was asked for a share is valid at most.
  static let longest = 12

  /// Leases a share to an owner, and removes expired ones.
  ///
  /// Each owner asks for one share after the other: while a call waits, it makes no other one for the same rate.
  /// - Parameters:
  ///   - want: What the owner wants of the rate.
  ///   - owner: The owner.
  ///   - duration: How long the share is valid among few owners.
  ///   - now: The present time by the clock of the ledger, after all other leases of the rate.
  public mutating func lease(_ want: RateWant, to owner: String, for duration: Duration, at now: Date) -> RateShare {
    // A share that ends later was leased before the clock was set back.
    let latest = now.addingTimeInterval(duration * Self.longest / .seconds(1))
    for index in rows.indices {
      rows[index].end = min(rows[index].end, latest)
      rows[index].heldEnd = min(rows[index].heldEnd, latest)
    }
    removeExpired(at: now)
    let before = rows.first { $0.owner == owner }
    remove(owner)

    let validity = duration * min(max(1, Double(rows.count + 1) / Double(Self.fewOwners)), Double(Self.longest))
    let end = now.addingTimeInterval(validity / .seconds(1))
    let rate = rows.reduce(want.rate.bytesPerSecond) { min($0, max(1, $1.rate)) }
    let fair = fairShare(of: want.wanted, for: owner, of: rate)
    let share = max(0, min(fair, rate - use(at: now)))
    rows.append(
      Row(
        owner: owner, rate: want.rate.bytesPerSecond, wanted: want.wanted, share: share, end: end,
        // It may be of any earlier lease, as later answers may have been lost. One that has expired here has expired there.
        held: max(0, min(want.held, before?.use(at: now) ?? 0)), heldEnd: before?.lastEnd ?? .distantPast))
    return RateShare(bytesPerSecond: share, validity: validity)
  }

  /// The max-min fair share of one more owner: all get what they want up to a level, at which the rate is used up.
  private func fairShare(of wanted: Int64, for owner: String, of rate: Int64) -> Int64 {
    var wants = rows.map { (wanted: max(0, $0.wanted), owner: $0.owner) }
    wants.append((max(0, wanted), owner))
    // By owner, too: the bytes that are left over by the division go to the first ones.
    wants.sort { ($0.wanted, $0.owner) < ($1.wanted, $1.owner) }
    var (left, rest) = (rate, wants[...])
    while let least = rest.first, least.wanted <= left / Int64(rest.count) {
      if least.owner == owner { return least.wanted }
      left -= least.wanted
      rest = rest.dropFirst()
    }
    let (level, remainder) = left.quotientAndRemainder(dividingBy: Int64(rest.count))
    let place = rest.map(\.owner).sorted().firstIndex(of: owner) ?? 0
    return place < remainder ? level + 1 : level
  }
}
