#if SQLite
  import DownpipeCore

  /// The place of a waiting download in the queue: the smallest key is leased first.
  struct WaitingKey: Comparable, Sendable {
    var rank: UInt128
    var arrival: Int64
    var generation: Int64

    /// A key before every other key.
    static let first = WaitingKey(rank: 0, arrival: .min, generation: 0)

    static func < (left: Self, right: Self) -> Bool {
      (left.rank, left.arrival, left.generation) < (right.rank, right.arrival, right.generation)
    }
  }

  /// The lanes that leases of one scope read, with the first waiting download of each lane.
  ///
  /// The list is kept between leases: the cost of a lease grows only with the downloads that it takes and the lanes
  /// that it skips.
  final class LaneList {
    /// A lane and the key of its first download.
    struct Head {
      var key: WaitingKey
      var lane: Lane
    }

    /// The downloads that a lease considers.
    struct Scope: Hashable {
      /// The opening of the downloads; any if `nil`.
      var opening: Int64?
      /// The location of the downloads; any if `nil`.
      var location: String?
      /// A tag of the downloads; any if `nil`.
      var tag: String?
      /// The ids of the downloads; any if `nil`.
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
    /// A heap with the smallest key at the top. It may contain outdated heads.
    private var heap: [Head] = []
    /// Lanes whose head has been read and is not damaged.
    private var readable: Set<Lane> = []
    /// Lanes whose head must be read from the index before the next lease.
    private(set) var stale: Set<Lane> = []

    init(_ scope: Scope) { self.scope = scope }

    /// The number of lanes with a known waiting download.
    var count: Int { heads.count }

    func covers(_ lane: Lane, _ kind: Kind) -> Bool {
      (scope.opening == nil || scope.opening == lane.opening) && kind.belongs(to: scope.location)
        && scope.tag.map(kind.candidate.tags.contains) ?? true
    }

    /// Sets the first key of a lane; `nil` if no download waits in it.
    func setHead(_ key: WaitingKey?, of lane: Lane) {
      stale.remove(lane)
      guard heads[lane] != key else { return }
      readable.remove(lane)
      heads[lane] = key
      guard let key else { return }
      push(Head(key: key, lane: lane))
      if heap.count > 2 * heads.count + 64 { rebuild() }
    }

    /// Adds a download that waits in a lane.
    func insert(_ key: WaitingKey, in lane: Lane, id: DownloadID?) {
      if let ids = scope.ids {
        if let id, ids.contains(id) { named.generations.insert(key.generation) }
        guard named.insert(key, in: lane) else { return }
      }
      guard !stale.contains(lane) else { return }
      if let head = heads[lane], head <= key { return }
      setHead(key, of: lane)
    }

    /// Removes a download that may have left a lane.
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

    /// Records that a named download exists.
    func name(_ generation: Int64) { named.generations.insert(generation) }

    /// Removes leased downloads, if the scope names downloads.
    func forget(_ leased: [DownloadRecord]) {
      if scope.ids != nil { for record in leased { named.remove(record.generation) } }
    }

    /// The next named download in a lane.
    func named(after key: WaitingKey, in lane: Lane) -> WaitingKey? { named.first(after: key, in: lane) }

    /// Whether the head of a lane has been read: a head that is skipped repeatedly is read only once.
    func isReadable(_ lane: Lane) -> Bool { readable.contains(lane) }

    /// Records that the head of a lane can be read.
    func setReadable(_ lane: Lane) { readable.insert(lane) }

    /// Removes and returns the smallest head, until it is set again or put back.
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

    /// Puts back heads that were not taken.
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
