#if SQLite
  import DownpipeCore

  /// A waiting download's place: the smallest goes first.
  struct WaitingKey: Comparable {
    var rank: UInt128
    var arrival: Int64
    var generation: Int64

    /// Before every other one.
    static let first = WaitingKey(rank: 0, arrival: .min, generation: 0)

    static func < (left: Self, right: Self) -> Bool {
      (left.rank, left.arrival, left.generation) < (right.rank, right.arrival, right.generation)
    }
  }

  /// The lanes with waiting downloads that leases of one kind look at, with the first download of each.
  ///
  /// It is kept between leases, so that one costs a little for each download that it takes and each lane that it
  /// skips, and nothing for any other.
  final class LaneList {
    /// A lane and its first download.
    struct Head {
      var key: WaitingKey
      var lane: Lane
    }

    /// The only opening whose lanes count; all when `nil`.
    let opening: Int64?
    /// The only location whose lanes count; all when `nil`.
    let location: String?
    private var heads: [Lane: WaitingKey] = [:]
    /// A heap, the first of all at the top. It holds heads that are none any more, too.
    private var heap: [Head] = []
    /// Lanes whose head was read once, and is not damaged.
    private var readable: Set<Lane> = []
    /// Lanes whose head is to be looked up before the next lease.
    private(set) var stale: Set<Lane> = []

    init(opening: Int64?, location: String?) {
      self.opening = opening
      self.location = location
    }

    /// How many lanes have a download that waits, as far as it is known.
    var count: Int { heads.count }

    func covers(_ lane: Lane, _ kind: Kind) -> Bool {
      (opening == nil || opening == lane.opening) && kind.belongs(to: location)
    }

    /// Sets what goes first in a lane; nothing waits there when `nil`.
    func setHead(_ key: WaitingKey?, of lane: Lane) {
      stale.remove(lane)
      guard heads[lane] != key else { return }
      readable.remove(lane)
      heads[lane] = key
      guard let key else { return }
      push(Head(key: key, lane: lane))
      if heap.count > 2 * heads.count + 64 { rebuild() }
    }

    /// Notes that a download waits in a lane now.
    func insert(_ key: WaitingKey, in lane: Lane) {
      guard !stale.contains(lane) else { return }
      if let head = heads[lane], head <= key { return }
      setHead(key, of: lane)
    }

    /// Notes that downloads have left a lane.
    func invalidate(_ lane: Lane) {
      heads[lane] = nil
      readable.remove(lane)
      stale.insert(lane)
    }

    /// Whether the head of a lane was read before: what is skipped again and again is read once.
    func isReadable(_ lane: Lane) -> Bool { readable.contains(lane) }

    /// Notes that the head of a lane can be read.
    func setReadable(_ lane: Lane) { readable.insert(lane) }

    /// Takes the first head of all out of the order, until it is set again or put back.
    func pop() -> Head? {
      while let first = heap.first {
        let last = heap.removeLast()
        if !heap.isEmpty {
          heap[0] = last
          sink(0)
        }
        if heads[first.lane] == first.key { return first }
      }
      return nil
    }

    /// Puts heads back that were left.
    func putBack(_ left: [Head]) { for head in left { push(head) } }

    // MARK: The heap

    private func push(_ head: Head) {
      heap.append(head)
      var index = heap.count - 1
      while index > 0 {
        let parent = (index - 1) / 2
        guard heap[index].key < heap[parent].key else { return }
        heap.swapAt(index, parent)
        index = parent
      }
    }

    private func sink(_ start: Int) {
      var index = start
      while true {
        var least = index
        let child = 2 * index + 1
        if child < heap.count, heap[child].key < heap[least].key { least = child }
        if child + 1 < heap.count, heap[child + 1].key < heap[least].key { least = child + 1 }
        guard least != index else { return }
        heap.swapAt(index, least)
        index = least
      }
    }

    private func rebuild() {
      heap = heads.map { Head(key: $1, lane: $0) }
      for index in stride(from: heap.count / 2, through: 0, by: -1) { sink(index) }
    }
  }
#endif
