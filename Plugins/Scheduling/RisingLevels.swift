/// The levels of hosts, downloads or groups above one that they have in common, and that only rises: what each has used of
/// its share. Without an entry, it has used none.
///
/// Entries that are level with the others are forgotten when there are many. As many again may come before the next look at
/// all of them, so that the cost of one is constant.
struct RisingLevels<Level: Comparable & Sendable>: Sendable {
  /// The number of entries up to which none is looked for.
  static var fewest: Int { 4_096 }
  private var levels: [String: Level] = [:]
  private var mostEntries = Self.fewest

  var count: Int { levels.count }

  subscript(key: String) -> Level? { levels[key] }

  /// - Parameter common: The level below which entries say nothing.
  mutating func set(_ level: Level, for key: String, above common: Level) {
    if levels.count >= mostEntries, levels[key] == nil {
      levels = levels.filter { $0.value > common }
      mostEntries = max(Self.fewest, 2 * levels.count)
    }
    levels[key] = level
  }
}
