#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore

  /// The lanes that leases of one scope read, with the first waiting download of each lane.
  ///
  /// The list is kept between leases: the cost of a lease grows only with the downloads that it takes and the lanes
  /// that it skips.
  final class LaneList {
    /// A lane and the key of its first download.
    struct Head: Comparable {
      var key: WaitingKey
      var lane: Lane

      static func < (left: Self, right: Self) -> Bool { (left.key, left.lane) < (right.key, right.lane) }
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
    // The heads of the lanes that are not held; they may contain outdated heads. Without an order of groups there is one
    // heap: the groups' tables would cost a lease more than the search.
    private var queue = MinHeap<Head>()
    private var groupedQueue = GroupedQueue<Head>()
    /// The order of the groups of candidates; `nil` if there are no groups.
    private var order: CandidateOrder?
    /// The groups of the lanes, if there is an order.
    private var groups: [Lane: String] = [:]
    /// Heads of lanes whose group is not known.
    private var ungrouped: [Head] = []
    /// The lanes that no lease considers for now.
    private var held: Set<Lane> = []
    /// Held lanes, by the instant at which they are considered again.
    private var releases = MinHeap<Release>()
    /// The version of the rules for which the lanes were held; `nil` before the first lease.
    private var rulesVersion: Int?

    private struct Release: Comparable {
      var due: Duration
      var lane: Lane
      static func < (left: Self, right: Self) -> Bool { left.due < right.due }
    }

    /// The sizes of the heads that have been read and are not damaged.
    private var readable: [Lane: ByteCount] = [:]
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
      readable[lane] = nil
      heads[lane] = key
      guard let key, !held.contains(lane) else { return }
      putBack(Head(key: key, lane: lane))
      if queue.count + groupedQueue.count > 2 * heads.count + 64 { rebuild() }
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
      readable[lane] = nil
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

    /// The size of the head of a lane, if it has been read: a head that is skipped repeatedly is read only once.
    func sizeOfReadHead(_ lane: Lane) -> ByteCount? { readable[lane] }

    /// Records that the head of a lane can be read.
    func setRead(_ lane: Lane, size: ByteCount) { readable[lane] = size }

    /// Removes and returns the first head, until it is set again or put back.
    func pop() -> Head? {
      while let first = removeFirst() {
        if heads[first.lane] == first.key, !held.contains(first.lane) { return first }
      }
      return nil
    }

    private func removeFirst() -> Head? {
      if let order { groupedQueue.removeFirst(order.precedence) } else { queue.removeFirst() }
    }

    /// Puts back a head that was not taken.
    func putBack(_ head: Head) {
      if order == nil {
        queue.insert(head)
      } else if let group = groups[head.lane] {
        groupedQueue.insert(head, in: group)
      } else {
        ungrouped.append(head)
      }
    }

    private func rebuild() {
      queue = MinHeap()
      groupedQueue = GroupedQueue()
      ungrouped = []
      groups = groups.filter { heads[$0.key] != nil }
      for (lane, key) in heads where !held.contains(lane) { putBack(Head(key: key, lane: lane)) }
    }

    /// Prepares the list for a lease: considers held lanes again whose instant has come, and all lanes for new rules.
    ///
    /// - Parameter candidate: Returns the candidate of the downloads in a lane.
    func begin(_ request: LeaseRequest, candidate: (Lane) throws -> Candidate?) rethrows {
      if request.rulesVersion != rulesVersion || (request.order == nil) != (order == nil) {
        rulesVersion = request.rulesVersion
        order = request.order
        groups = [:]
        held = []
        releases = MinHeap()
        rebuild()
      }
      while let first = releases.first, first.due <= request.instant {
        _ = releases.removeFirst()
        guard held.remove(first.lane) != nil, let key = heads[first.lane] else { continue }
        putBack(Head(key: key, lane: first.lane))
      }
      guard let order else { return }
      for head in ungrouped {
        guard let candidate = try candidate(head.lane) else { continue }
        let group = groups[head.lane] ?? order.group(candidate)
        groups[head.lane] = group
        groupedQueue.insert(head, in: group)
      }
      ungrouped = []
    }

    // MARK: Held lanes

    /// Considers a lane no more until an instant, or until the rules change.
    func hold(_ lane: Lane, until due: Duration?) {
      held.insert(lane)
      if let due { releases.insert(Release(due: due, lane: lane)) }
    }
  }
#endif
