// Leasing downloads in order of rank, or of precedence.
extension MemoryLedgerState {
  mutating func lease(_ request: LeaseRequest, owner: String) -> [DownloadRecord] {
    if let order = request.order { return lease(request, order, owner: owner) }
    var taken: [DownloadID] = []
    var skipped: Set<Candidate> = []
    func visit(_ key: MemoryLedgerQueue.Key) -> MemoryLedgerQueue.Visit {
      guard let entry = entries[key.id], entry.isWaiting(as: key) else { return .drop }
      guard entry.record.isDue(at: request.now), request.scope.contains(entry, for: owner),
        entry.record.belongs(to: request.location), !skipped.contains(entry.candidate)
      else { return .keep }
      switch request.select(entry.sizedCandidate) {
      case .take:
        taken.append(key.id)
        return .drop
      // The queue is read from its beginning with each lease anyway.
      case .skip, .hold:
        skipped.insert(entry.candidate)
        return .keep
      case .stop: return .stop
      }
    }
    if case .ids(let ids) = request.scope {
      // The keys of taken downloads stay in the queue, where they no longer apply.
      for key in ids.compactMap({ entries[$0]?.record }).map(MemoryLedgerQueue.Key.init).sorted() {
        if visit(key) == .stop { break }
      }
    } else {
      queue.scan(visit)
    }
    return lease(taken, request, owner: owner)
  }

  private mutating func lease(_ ids: [DownloadID], _ request: LeaseRequest, owner: String) -> [DownloadRecord] {
    update(ids, at: request.now) { entry in
      entry.record.owner = owner
      return entry.record.apply(.leased)
    }
  }

  /// Leases in an order of groups: the downloads are sorted into a queue for each candidate.
  private mutating func lease(_ request: LeaseRequest, _ order: CandidateOrder, owner: String) -> [DownloadRecord] {
    struct Head: Comparable {
      let key: MemoryLedgerQueue.Key
      let candidate: Candidate
      static func < (left: Self, right: Self) -> Bool { left.key < right.key }
    }
    // In the order of their first downloads, so that the order's functions are always called in the same order.
    var queues = OrderedTable<Candidate, ArraySlice<MemoryLedgerQueue.Key>>()
    for key in waitingKeys(request.scope) {
      guard let entry = entries[key.id], entry.record.isDue(at: request.now),
        request.scope.contains(entry, for: owner), entry.record.belongs(to: request.location)
      else { continue }
      queues[entry.candidate, default: []].append(key)
    }
    var heads = GroupedQueue<Head>()
    for (candidate, keys) in queues {
      if let key = keys.first { heads.insert(Head(key: key, candidate: candidate), in: order.group(candidate)) }
    }
    var taken: [DownloadID] = []
    search: while let head = heads.removeFirst(order.precedence) {
      switch request.select(entries[head.key.id]?.sizedCandidate ?? head.candidate) {
      case .take:
        taken.append(head.key.id)
        queues[head.candidate]?.removeFirst()
        if let next = queues[head.candidate]?.first {
          heads.insert(Head(key: next, candidate: head.candidate), in: order.group(head.candidate))
        }
      case .skip, .hold: break
      case .stop: break search
      }
    }
    return lease(taken, request, owner: owner)
  }

  /// The keys of waiting downloads that a scope may contain, in order of rank.
  private mutating func waitingKeys(_ scope: LeaseScope) -> [MemoryLedgerQueue.Key] {
    if case .ids(let ids) = scope {
      return ids.compactMap { entries[$0]?.record }.filter(\.isQueued).map(MemoryLedgerQueue.Key.init).sorted()
    }
    var keys: [MemoryLedgerQueue.Key] = []
    queue.scan { key in
      guard entries[key.id]?.isWaiting(as: key) == true else { return .drop }
      keys.append(key)
      return .keep
    }
    return keys
  }
}
