/// Until when each host or download has paid for what it has had; without an entry, it owes nothing.
///
/// Entries without a debt are forgotten when there are many. As many again may come before the next look at all of them, so
/// that the cost of one is constant.
struct PaidUntil: Sendable {
  /// The number of entries up to which none is looked for.
  static let fewest = 4_096
  private var instants: [String: Duration] = [:]
  private var mostEntries = Self.fewest

  var count: Int { instants.count }

  subscript(key: String) -> Duration? { instants[key] }

  mutating func set(_ instant: Duration, for key: String, at now: Duration) {
    if instants.count >= mostEntries, instants[key] == nil {
      instants = instants.filter { $0.value > now }
      mostEntries = max(Self.fewest, 2 * instants.count)
    }
    instants[key] = instant
  }
}
