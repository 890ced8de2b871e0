#if SQLite
  import DownpipeCore

  /// A waiting download's place: the smallest goes first.
  struct WaitingKey: Comparable, Sendable {
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

    /// Which downloads count.
    struct Scope: Hashable {
      /// The only opening; all when `nil`.
      var opening: Int64?
      /// The only location; all when `nil`.
      var location: String?
      /// The only tag; any when `nil`.
      var tag: String?
      /// The only downloads; all when `nil`.
      var ids: Set<DownloadID>?

      init(_ scope: LeaseScope = .all, opening: Int64? = nil, location: String? = nil) {
        self.opening = opening
        self.location = location
        if case .tag(let tag) = scope { self.tag = tag }
        if case .ids(let ids) = scope { self.ids = ids }
      }
    }

    let scope: Scope
    private var named = NamedDownloads()
    private var heads: [Lane: WaitingKey] = [:]
    /// A heap, the first of all at the top. It holds heads that are none any more, too.
    private var heap: [Head] = []
    /// Lanes whose head was read once, and is not damaged.
    private var readable: Set<Lane> = []
    /// Lanes whose head is to be looked up before the next lease.
    private(set) var stale: Set<Lane> = []

    init(_ scope: Scope) { self.scope = scope }

    /// How many lanes have a download that waits, as far as it is known.
    var count: Int { heads.count }

    func covers(_ lane: Lane, _ kind: Kind) -> Bool {
      (scope.opening == nil || scope.opening == lane.opening) && kind.belongs(to: scope.location)
        && scope.tag.map(kind.candidate.tags.contains) ?? true
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
    func insert(_ key: WaitingKey, in lane: Lane, id: DownloadID?) {
      if let ids = scope.ids {
        if let id, ids.contains(id) { named.generations.insert(key.generation) }
        guard named.insert(key, in: lane) else { return }
      }
      guard !stale.contains(lane) else { return }
      if let head = heads[lane], head <= key { return }
      setHead(key, of: lane)
    }

    /// Notes that a download may have left a lane.
    func remove(_ generation: Int64, from lane: Lane) {
      if scope.ids != nil {
        named.remove(generation)
        return setHead(named.first(in: lane), of: lane)
      }
      heads[lane] = nil
      readable.remove(lane)
      stale.insert(lane)
    }

    // MARK: Named downloads

    /// Notes that a download is one of those that are named.
    func name(_ generation: Int64) { named.generations.insert(generation) }

    /// Forgets what has been leased, where downloads are named.
    func forget(_ leased: [DownloadRecord]) {
      if scope.ids != nil { for record in leased { named.remove(record.generation) } }
    }

    /// The named download that follows in a lane.
    func named(after key: WaitingKey, in lane: Lane) -> WaitingKey? { named.first(after: key, in: lane) }

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
