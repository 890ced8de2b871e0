#if SQLite
  import DownpipeColumns
  import DownpipeCore

  /// The downloads of a lease that names them: which of them exist, and which of them wait in each lane.
  struct NamedDownloads {
    /// The generations of the named downloads that the ledger has.
    var generations: Set<Int64> = []
    private var lanes: [Lane: SortedKeys<WaitingKey>] = [:]
    private var places: [Int64: (lane: Lane, key: WaitingKey)] = [:]

    /// - Returns: Whether the download is a named one.
    mutating func insert(_ key: WaitingKey, in lane: Lane) -> Bool {
      guard generations.contains(key.generation) else { return false }
      remove(key.generation)
      lanes[lane, default: SortedKeys()].insert(key)
      places[key.generation] = (lane, key)
      return true
    }

    mutating func remove(_ generation: Int64) {
      guard let place = places.removeValue(forKey: generation) else { return }
      lanes[place.lane]?.remove(place.key)
    }

    func first(in lane: Lane) -> WaitingKey? { lanes[lane]?.first }

    func first(after key: WaitingKey, in lane: Lane) -> WaitingKey? {
      var found: WaitingKey?
      lanes[lane]?.forEach(from: key) { next in
        found = next > key ? next : nil
        return found == nil
      }
      return found
    }
  }
#endif
