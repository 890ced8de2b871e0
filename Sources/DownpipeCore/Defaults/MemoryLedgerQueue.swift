/// The queue of waiting downloads in a ``MemoryLedger``. It is sorted when it is read, not when it changes.
struct MemoryLedgerQueue: Sendable {
  /// The sort key of a download: its rank, then its arrival.
  struct Key: Comparable, Sendable {
    let rank: Rank
    let arrival: Int64
    let generation: Int64
    let id: DownloadID

    init(_ record: DownloadRecord) {
      (rank, arrival, generation, id) = (record.rank, record.arrival, record.generation, record.id)
    }

    static func < (left: Self, right: Self) -> Bool {
      (left.rank, left.arrival, left.generation) < (right.rank, right.arrival, right.generation)
    }
  }

  /// What happens to a visited key.
  enum Visit: Sendable {
    case keep
    case drop
    /// Keeps this key and all keys after it, and ends the scan.
    case stop
  }

  /// The keys, including obsolete ones, which the reader drops.
  private var keys: ArraySlice<Key> = []
  private var isSorted = true

  var count: Int { keys.count }

  mutating func append(_ key: Key) {
    isSorted = isSorted && (keys.last.map { $0 < key } ?? true)
    keys.append(key)
  }

  /// Visits the keys in order, and equal keys once.
  mutating func scan(_ visit: (Key) -> Visit) {
    sort()
    var end = keys.startIndex
    var kept: [Key] = []
    var last: Key?
    visits: while end < keys.endIndex {
      let key = keys[end]
      if key != last {
        switch visit(key) {
        case .keep: kept.append(key)
        case .drop: break
        case .stop: break visits
        }
      }
      last = key
      end += 1
    }
    if kept.isEmpty {
      // A slice drops its first elements without moving the others.
      keys.removeFirst(end - keys.startIndex)
    } else if kept.count < end - keys.startIndex {
      keys.replaceSubrange(keys.startIndex..<end, with: kept)
    }
  }

  /// Removes obsolete keys, and all but one of equal keys.
  mutating func tidy(_ isObsolete: (Key) -> Bool) {
    keys.removeAll(where: isObsolete)
    sort()
    var last: Key?
    keys.removeAll { key in
      defer { last = key }
      return key == last
    }
  }

  private mutating func sort() {
    if !isSorted { keys.sort() }
    isSorted = true
  }
}
