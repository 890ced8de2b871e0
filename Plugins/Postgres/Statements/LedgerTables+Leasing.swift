#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation

  // Leasing downloads.
  //
  // The queue is read in its order, and rows that other transactions have locked are passed over. As soon as a candidate is
  // skipped, its downloads could be a million at the head of the queue: a few windows of the index are read then, and
  // after them the lanes, which are the queues of the kinds, each with one look-up for its first download.
  //
  // A lease locks a few more downloads than it takes. In a short queue another lease may find nothing but these, so it
  // looks once more when their locks have gone.
  extension LedgerTables {
    /// Leases the downloads that a request selects.
    func lease(_ request: LeaseRequest) throws -> [DownloadRecord] {
      try promote(at: request.now)
      // A program that only adds. The search would read the whole queue to find nothing.
      if case .ids(let ids) = request.scope, ids.isEmpty { return [] }
      var search = LeaseSearch(request, held: memory.held(for: request))
      if request.order != nil {
        try searchLanes(&search)
      } else {
        if search.skipped.isEmpty { try searchQueue(&search) }
        if !search.isOver { try searchWindows(&search) }
        if !search.isOver { try searchLanes(&search) }
      }
      if search.passedOver == nil, !search.isStopped { search.passedOver = try firstDue(in: search) }
      passedOver = search.passedOver
      memory.tookOnce(search.taken.count)
      for (candidate, due) in search.held { memory.hold(candidate, until: due, for: request) }
      try count(search.counted, of: search.taken)
      return try take(search.taken, request)
    }

    private func take(_ taken: [DownloadRecord], _ request: LeaseRequest) throws -> [DownloadRecord] {
      guard !taken.isEmpty else { return [] }
      _ = try run(
        """
        UPDATE download SET \(EventEffect.lease?.assignments ?? ""), owner = $1,
          lease = \(Self.serverTime(of: "$2", clock: "$5")), updated_at = $3
        WHERE generation = ANY($4)
        """, .integer(memory.owner.number), .real(request.until.timeIntervalSince1970),
        .real(request.now.timeIntervalSince1970), .integers(taken.map(\.generation)), memory.clockNow)
      moved(taken.count, from: .waiting, to: .transferring)
      return taken.map { record in
        var record = record
        record.apply(.leased)
        record.owner = memory.owner.text
        record.updatedAt = request.now
        return record
      }
    }

    /// The largest number of downloads that one lease makes due; the next one goes on.
    private static let mostPromoted: Int64 = 10_000

    /// Makes downloads ready that are due, or whose due time is so far ahead that the clock must have been wrong.
    private func promote(at now: Date) throws {
      let now = byServer(now)
      _ = try run(
        """
        UPDATE download SET not_before = NULL WHERE generation IN (
          SELECT generation FROM download WHERE \(Schema.isDelayed) AND (not_before <= $1 OR not_before > $2)
          LIMIT $3 FOR UPDATE SKIP LOCKED)
        """, .real(now.timeIntervalSince1970), .real(now.furthestDue.timeIntervalSince1970),
        .integer(Self.mostPromoted))
    }

    // MARK: The queue

    /// Reads the queue from its head, and locks what it reads.
    private func searchQueue(_ search: inout LeaseSearch) throws {
      var last = WaitingKey.first
      var limit = min(max(2, memory.lastTaken + 1), 64)
      while !search.isOver, search.skipped.isEmpty {
        var text = Condition()
        let scope = scope(search.request, &text)
        let after = text.after(last)
        let rows = try run(
          """
          SELECT \(RecordColumns.list) FROM download WHERE \(Schema.isReady)\(scope) AND \(after)
          ORDER BY \(Schema.order) LIMIT \(limit) FOR UPDATE SKIP LOCKED
          """, all: text.values)
        for found in try found(rows) {
          let record = found.record
          last = WaitingKey(rank: record.rank.value, arrival: record.arrival, generation: record.generation)
          search.seen.append(record.generation)
          try consider(found, &search)
          // What follows has been locked, but not asked about.
          if search.isOver || !search.skipped.isEmpty { break }
        }
        search.last = last
        if rows.count < limit, search.skipped.isEmpty, !search.isOver {
          search.isOver = true
          search.passedOver = try firstWaiting(in: search)
        }
        limit = min(2 * limit, 256)
      }
      // What follows goes on behind this key.
      if !search.isOver, search.passedOver == nil { search.passedOver = try firstWaiting(in: search, upTo: last) }
    }

    /// The first waiting download that the search of the queue has not locked, because others have; `nil` if there is
    /// none.
    ///
    /// - Parameter key: The end of the search; `nil` after a search of the whole queue.
    private func firstWaiting(in search: LeaseSearch, upTo key: WaitingKey? = nil) throws -> PassedOver? {
      var text = Condition()
      let scope = scope(search.request, &text)
      let known = text.bind(.integers(search.seen))
      let limit = key.map { " AND NOT " + text.after($0) } ?? ""
      return try run(
        """
        SELECT generation FROM download WHERE \(Schema.isReady)\(scope) AND generation <> ALL(\(known))\(limit)
        ORDER BY \(Schema.order) LIMIT 1
        """, all: text.values
      ).integer(0, 0).map(PassedOver.download)
    }

    /// A download that is due and could not be made ready, because others have locked it; `nil` if there is none.
    private func firstDue(in search: LeaseSearch) throws -> PassedOver? {
      var text = Condition()
      let scope = scope(search.request, &text)
      let now = text.bind(.real(byServer(search.request.now).timeIntervalSince1970))
      return try run(
        "SELECT generation FROM download WHERE \(Schema.isDelayed)\(scope) AND not_before <= \(now) LIMIT 1",
        all: text.values
      ).integer(0, 0).map(PassedOver.download)
    }

    /// Waits until no other transaction has locked what a lease has passed over.
    /// - Throws: ``PostgresFault`` with `.conflict` if that takes long.
    func wait(for passedOver: PassedOver) throws {
      _ = try run("SET LOCAL lock_timeout = 200")
      switch passedOver {
      case .download(let generation):
        _ = try run("SELECT 1 FROM download WHERE generation = $1 FOR UPDATE", .integer(generation))
      case .limit(let key):
        _ = try run("SELECT pg_advisory_xact_lock(\(Schema.limitHash("$1")))", limitKey(key))
      }
    }

    /// The number of entries of the index that are read at a time, and how often.
    private static let window = (size: 500, count: 4)

    /// Reads keys behind those that were considered, and locks only downloads that may be taken.
    private func searchWindows(_ search: inout LeaseSearch) throws {
      for _ in 0..<Self.window.count where !search.isOver {
        var text = Condition()
        let scope = scope(search.request, &text)
        let after = text.after(search.last)
        let rows = try run(
          """
          SELECT kind, \(Schema.order) FROM download WHERE \(Schema.isReady)\(scope) AND \(after)
          ORDER BY \(Schema.order) LIMIT \(Self.window.size)
          """, all: text.values)
        let heads = Head.read(rows)
        try consider(heads, &search)
        if let last = heads.last { search.last = last.key }
        if rows.count < Self.window.size { search.isOver = true }
      }
    }

    /// Locks downloads, as far as others have not locked them and they still wait, and considers them in order.
    private func consider(_ heads: [Head], _ search: inout LeaseSearch) throws {
      let kinds = try kinds(Set(heads.map(\.kind)))
      var next = 0
      while next < heads.count, !search.isOver {
        var some: [Int64] = []
        while next < heads.count, some.count < 8 {
          let head = heads[next]
          next += 1
          if let kind = kinds[head.kind], !search.skipped.contains(kind.candidate) { some.append(head.key.generation) }
        }
        let locked = try lock(some)
        search.notePassedOver(some, locked)
        for found in locked where !search.isOver { try consider(found, &search) }
      }
    }

    /// Locks those of some waiting downloads that can be locked, and returns them in the order of the queue.
    private func lock(_ generations: [Int64]) throws -> [FoundRecord] {
      guard !generations.isEmpty else { return [] }
      return try found(
        try run(
          """
          SELECT \(RecordColumns.list) FROM download WHERE generation = ANY($1) AND \(Schema.isReady)
          ORDER BY \(Schema.order) FOR UPDATE SKIP LOCKED
          """, .integers(generations)))
    }

    // MARK: Lanes

    /// The number of downloads of each lane that are read at a time.
    private static let depth = 4

    /// Merges the lanes in the order of the request, and then of rank.
    private func searchLanes(_ search: inout LeaseSearch) throws {
      var lanes = Lanes(search.request.order)
      let heads = try self.heads(search)
      let kinds = try kinds(Set(heads.map(\.kind)))
      for head in heads {
        // Those up to this key were considered.
        guard let kind = kinds[head.kind], !search.skipped.contains(kind.candidate), head.key > search.last else {
          continue
        }
        lanes.append(head, kind)
      }
      while !search.isOver, let head = lanes.pop() {
        guard let kind = kinds[head.kind], !search.skipped.contains(kind.candidate) else { continue }
        let locked = try lock([head.key.generation])
        search.notePassedOver([head.key.generation], locked)
        if let found = locked.first { try consider(found, &search) }
        if !search.isOver, !search.skipped.contains(kind.candidate), lanes.isEmpty(head.kind) {
          for next in try self.heads(of: head.kind, after: head.key, search) { lanes.append(next, kind) }
        }
        lanes.advance(head.kind)
      }
    }

    /// The first downloads of each lane. The numbers of the kinds are found by skipping from one to the next in the index.
    private func heads(_ search: LeaseSearch) throws -> [Head] {
      var text = Condition()
      let scope = scope(search.request, &text)
      if case .ids = search.request.scope {
        return Head.read(
          try run(
            """
            SELECT kind, \(Schema.order) FROM download WHERE \(Schema.isReady)\(scope) ORDER BY \(Schema.order)
            """, all: text.values))
      }
      let after = text.after(search.last)
      let rows = try run(
        """
        WITH RECURSIVE lane (number) AS (
          (SELECT min(kind) FROM download WHERE \(Schema.isReady))
          UNION ALL
          SELECT (SELECT min(kind) FROM download WHERE \(Schema.isReady) AND kind > lane.number)
          FROM lane WHERE number IS NOT NULL)
        SELECT head.* FROM lane CROSS JOIN LATERAL (
          SELECT kind, \(Schema.order) FROM download WHERE \(Schema.isReady) AND kind = lane.number\(scope) AND \(after)
          ORDER BY \(Schema.order) LIMIT \(Self.depth)) AS head
        """, all: text.values)
      return Head.read(rows)
    }

    private func heads(of kind: Int64, after key: WaitingKey, _ search: LeaseSearch) throws -> [Head] {
      if case .ids = search.request.scope { return [] }
      var text = Condition()
      let scope = scope(search.request, &text)
      let after = text.after(key)
      let number = text.bind(.integer(kind))
      return Head.read(
        try run(
          """
          SELECT kind, \(Schema.order) FROM download WHERE \(Schema.isReady) AND kind = \(number)\(scope) AND \(after)
          ORDER BY \(Schema.order) LIMIT 64
          """, all: text.values))
    }

    /// The condition for the scope and the location of a request, which begins with `AND` unless it is empty.
    private func scope(_ request: LeaseRequest, _ text: inout Condition) -> String {
      var parts: [String] = []
      switch request.scope {
      case .all: break
      case .own: parts.append("opening = \(text.bind(.integer(memory.owner.number)))")
      case .tag(let tag):
        parts.append("(SELECT \(text.bind(.key(tag))) = ANY(tags) FROM kind WHERE number = download.kind)")
      case .ids(let ids): parts.append("id = ANY(\(text.bind(.keys(ids.sorted()))))")
      }
      if let location = request.location {
        let here = text.bind(.stored(location))
        parts.append("(SELECT location IS NULL OR location = \(here) FROM kind WHERE number = download.kind)")
      }
      return parts.map { " AND " + $0 }.joined()
    }
  }

  /// The parameters of a condition.
  struct Condition {
    private(set) var values: [PostgresValue] = []

    /// Adds a value, and returns the text for it.
    mutating func bind(_ value: PostgresValue) -> String {
      values.append(value)
      return "$\(values.count)"
    }

    /// The condition for what comes after a key in the order of the queue.
    mutating func after(_ key: WaitingKey) -> String {
      let rank = bind(PostgresValue(.key(key.rank)))
      return "(\(Schema.order)) > (\(rank), \(bind(.integer(key.arrival))), \(bind(.integer(key.generation))))"
    }
  }
#endif
