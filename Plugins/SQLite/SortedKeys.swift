#if SQLite
  /// A sorted set of keys in chunks: an index in memory with cheap insertion and removal at any position.
  ///
  /// A plain sorted array moves half of its keys for each insertion, and a heap cannot be read in order without
  /// emptying it. Chunks of at most ``chunkLimit`` keys take O(√n) moves and can be read in order.
  struct SortedKeys<Key: Comparable & Sendable>: Sendable {
    /// The sorted chunks, none of them empty. The keys in each chunk are sorted.
    private var chunks: [[Key]] = []
    /// The number of keys.
    private(set) var count = 0

    /// Creates an empty set.
    init() {}

    private static var chunkLimit: Int { 512 }

    /// The smallest key; `nil` when the set is empty.
    var first: Key? { chunks.first?.first }

    /// Inserts a key, unless the set contains it.
    mutating func insert(_ key: Key) {
      guard !chunks.isEmpty else {
        chunks.append([key])
        count = 1
        return
      }
      let chunk = min(chunkIndex(for: key), chunks.count - 1)
      let position = Self.position(of: key, in: chunks[chunk])
      if position < chunks[chunk].count, chunks[chunk][position] == key { return }
      chunks[chunk].insert(key, at: position)
      count += 1
      guard chunks[chunk].count > Self.chunkLimit else { return }
      // Ascending keys fill their chunks; other keys split theirs in the middle.
      let isLast = chunk == chunks.count - 1 && position == chunks[chunk].count - 1
      let cut = isLast ? chunks[chunk].count - 1 : chunks[chunk].count / 2
      let upper = Array(chunks[chunk][cut...])
      chunks[chunk].removeSubrange(cut...)
      chunks.insert(upper, at: chunk + 1)
    }

    /// Removes a key, if the set contains it.
    mutating func remove(_ key: Key) {
      let chunk = chunkIndex(for: key)
      guard chunk < chunks.count else { return }
      let position = Self.position(of: key, in: chunks[chunk])
      guard position < chunks[chunk].count, chunks[chunk][position] == key else { return }
      chunks[chunk].remove(at: position)
      count -= 1
      if chunks[chunk].isEmpty { chunks.remove(at: chunk) }
    }

    /// Calls `body` with the keys in order, beginning with `start`, until it returns `false`.
    func forEach(from start: Key? = nil, _ body: (Key) -> Bool) {
      var chunk = start.map(chunkIndex(for:)) ?? 0
      guard chunk < chunks.count else { return }
      var position = start.map { Self.position(of: $0, in: chunks[chunk]) } ?? 0
      while chunk < chunks.count {
        while position < chunks[chunk].count {
          if !body(chunks[chunk][position]) { return }
          position += 1
        }
        chunk += 1
        position = 0
      }
    }

    /// Returns the first chunk whose last key is not smaller than `key`.
    private func chunkIndex(for key: Key) -> Int {
      var low = 0
      var high = chunks.count
      while low < high {
        let middle = (low + high) / 2
        if let last = chunks[middle].last, last < key { low = middle + 1 } else { high = middle }
      }
      return low
    }

    /// Returns the position of the first key that is not smaller than `key`.
    private static func position(of key: Key, in keys: [Key]) -> Int {
      var low = 0
      var high = keys.count
      while low < high {
        let middle = (low + high) / 2
        if keys[middle] < key { low = middle + 1 } else { high = middle }
      }
      return low
    }
  }
#endif
