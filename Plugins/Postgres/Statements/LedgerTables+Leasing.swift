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
      let now = text.bind(.real(search.request.now.timeIntervalSince1970))
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

    // MARK: Limits of all workers

    /// Asks about a locked download, unless a limit of all workers is reached.
    private func consider(_ found: FoundRecord, _ search: inout LeaseSearch) throws {
      guard let limits = search.request.sharedLimits, found.damage == nil else { return search.consider(found) }
      let line = found.record.candidate.withoutSize
      guard !search.skipped.contains(line) else { return }
      var keys: [String] = []
      for limit in limits(line) {
        if search.leased[limit.key] == nil { try look(at: limit, &search) }
        switch search.leased[limit.key] {
        case .count(let count)? where count < limit.most: if !keys.contains(limit.key) { keys.append(limit.key) }
        case .count?: return search.skip(line)
        case .busy?:
          // Another worker leases for this limit in this moment.
          search.passedOver = search.passedOver ?? .limit(limit.key)
          return search.skip(line)
        case nil:
          // The server's room for locks is small. Another look goes on.
          search.passedOver = search.passedOver ?? .limit(limit.key)
          search.isOver = true
          return
        }
      }
      search.consider(found, countingFor: keys)
    }

    /// The largest number of limits of all workers that one transaction locks.
    private static let mostLocks = 500

    /// Counts the leased downloads of a limit of all workers. Unless it is full, it stays locked until the end of the
    /// transaction, so that no other one leases for it.
    private func look(at limit: SharedLimit, _ search: inout LeaseSearch) throws {
      // The end of a download is announced: a full limit needs no lock.
      let count = try leased(for: limit)
      if count >= limit.most {
        search.leased[limit.key] = .count(count)
        return
      }
      guard search.locks < Self.mostLocks else { return }
      search.locks += 1
      let locked = try run("SELECT pg_try_advisory_xact_lock(\(Schema.limitHash("$1")))", limitKey(limit.key))
      // A statement of its own, which sees what was committed before the lock was free.
      search.leased[limit.key] = locked.boolean(0, 0) == true ? .count(try leased(for: limit)) : .busy
    }

    private func leased(for limit: SharedLimit) throws -> Int {
      let rows = try run(
        """
        SELECT count(*) FROM counted JOIN download USING (generation)
        WHERE key = \(Schema.limitHash("$1")) AND owner IS NOT NULL
        """, limitKey(limit.key))
      return Int(rows.integer(0, 0) ?? 0)
    }

    /// Locks are those of the database, in which other schemas may have ledgers.
    private func limitKey(_ key: String) -> PostgresValue { .stored(memory.schema + " " + key) }

    /// Notes which limits of all workers the taken downloads count for.
    private func count(_ counted: [(key: String, generation: Int64)], of taken: [DownloadRecord]) throws {
      guard !taken.isEmpty, !counted.isEmpty else { return }
      // Of earlier leases.
      _ = try run("DELETE FROM counted WHERE generation = ANY($1)", .integers(taken.map(\.generation)))
      _ = try run(
        """
        INSERT INTO counted SELECT \(Schema.limitHash("key")), generation
        FROM unnest($1::text[], $2::bigint[]) AS new (key, generation) ON CONFLICT DO NOTHING
        """, .texts(counted.map { StoredText.stored(memory.schema + " " + $0.key) }),
        .integers(counted.map(\.generation)))
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

  /// What a lease has passed over, because another transaction had locked it.
  enum PassedOver: Sendable {
    /// A download, by its generation.
    case download(Int64)
    /// All downloads that count for a limit of all workers, by its key.
    case limit(String)
  }

  /// The search of one lease.
  private struct LeaseSearch {
    let request: LeaseRequest
    /// The candidates that are not asked about any more.
    private(set) var skipped: Set<Candidate>
    private(set) var held: [(candidate: Candidate, due: Duration?)] = []
    private(set) var taken: [DownloadRecord] = []
    /// The generations of the downloads of the queue that were locked and considered.
    var seen: [Int64] = []
    /// What could not be locked, and may still be taken.
    var passedOver: PassedOver?
    var isOver = false
    /// Whether the request takes no more downloads.
    private(set) var isStopped = false
    /// What comes before this key in the queue was considered, but for skipped candidates.
    var last = WaitingKey.first

    init(_ request: LeaseRequest, held: Set<Candidate>) {
      self.request = request
      skipped = held
    }

    /// What is known of a limit of all workers.
    enum Leased {
      /// The number of leased downloads that count for it.
      case count(Int)
      /// Another worker has locked it.
      case busy
    }

    /// The limits of all workers that this search has looked at.
    var leased: [String: Leased] = [:]
    /// How many of them it has tried to lock.
    var locks = 0
    /// The taken downloads that count for limits of all workers.
    private(set) var counted: [(key: String, generation: Int64)] = []

    mutating func skip(_ candidate: Candidate) { skipped.insert(candidate) }

    /// Asks about a locked download. A damaged record is passed over.
    /// - Parameter keys: The limits of all workers that it counts for, which have room.
    mutating func consider(_ found: FoundRecord, countingFor keys: [String] = []) {
      let record = found.record
      guard found.damage == nil else { return }
      let line = record.candidate.withoutSize
      guard !skipped.contains(line) else { return }
      var candidate = line
      candidate.size = record.likelySize
      switch request.select(candidate) {
      case .take:
        taken.append(record)
        for key in keys {
          if case .count(let count) = leased[key] { leased[key] = .count(count + 1) }
          counted.append((key, record.generation))
        }
      case .skip: skipped.insert(line)
      case .hold(let due):
        skipped.insert(line)
        held.append((line, due))
      case .stop: (isOver, isStopped, passedOver) = (true, true, nil)
      }
    }

    /// Notes that some of the downloads that were to be locked could not be.
    mutating func notePassedOver(_ generations: [Int64], _ locked: [FoundRecord]) {
      guard passedOver == nil, locked.count < generations.count else { return }
      let found = Set(locked.map(\.record.generation))
      passedOver = generations.first { !found.contains($0) }.map(PassedOver.download)
    }
  }

  /// A waiting download and its kind.
  private struct Head: Comparable {
    var key: WaitingKey
    var kind: Int64

    static func < (left: Self, right: Self) -> Bool { (left.key, left.kind) < (right.key, right.kind) }

    /// Reads rows of kind, rank, arrival and generation. A damaged one is left out.
    static func read(_ rows: borrowing PostgresRows) -> [Head] {
      var heads: [Head] = []
      for row in 0..<rows.count {
        guard let kind = rows.integer(row, 0), let rank = rows.key(row, 1), let arrival = rows.integer(row, 2),
          let generation = rows.integer(row, 3)
        else { continue }
        heads.append(Head(key: WaitingKey(rank: rank, arrival: arrival, generation: generation), kind: kind))
      }
      return heads
    }
  }

  /// The lanes of a search, merged in the order of their first downloads.
  private struct Lanes {
    private let order: CandidateOrder?
    private var lanes: [Int64: ArraySlice<Head>] = [:]
    private var groups: [Int64: String] = [:]
    private var queue = MinHeap<Head>()
    private var groupedQueue = GroupedQueue<Head>()

    init(_ order: CandidateOrder?) { self.order = order }

    mutating func append(_ head: Head, _ kind: Kind) {
      if let order, groups[head.kind] == nil { groups[head.kind] = order.group(kind.candidate) }
      if lanes[head.kind] == nil { insert(head) }
      lanes[head.kind, default: []].append(head)
    }

    private mutating func insert(_ head: Head) {
      if let group = groups[head.kind] { groupedQueue.insert(head, in: group) } else { queue.insert(head) }
    }

    /// Removes and returns the first head; ``advance(_:)`` follows.
    mutating func pop() -> Head? {
      if let order { groupedQueue.removeFirst(order.precedence) } else { queue.removeFirst() }
    }

    /// Whether the popped head of a lane is the last one that was read.
    func isEmpty(_ kind: Int64) -> Bool { lanes[kind]?.count == 1 }

    /// Puts the next download of a lane in the place of the popped one.
    mutating func advance(_ kind: Int64) {
      _ = lanes[kind]?.popFirst()
      if let next = lanes[kind]?.first { insert(next) } else { lanes[kind] = nil }
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
