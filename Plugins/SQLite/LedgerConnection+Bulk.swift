#if SQLite
  import DownpipeCore
  import Foundation
  import GRDB

  extension LedgerConnection {
    // MARK: Selections

    /// Which rows of `download` are meant, with its texts bound by ``bind(_:to:)`` from `?1` on.
    private enum Filter {
      case all
      case tag(String)
      case id(String)

      var sql: String {
        switch self {
        case .all: "TRUE"
        case .tag: "generation IN (SELECT generation FROM tag WHERE tag = ?1)"
        case .id: "id = ?1"
        }
      }

      /// Whether the phase is `phase`. The plus keeps SQLite, which does not know how many there are of anything,
      /// from walking through a whole phase for the few records of a tag.
      func isIn(_ phase: DownloadState.Phase) -> String {
        if case .tag = self { return "+phase = '\(phase.rawValue)'" }
        return "phase = '\(phase.rawValue)'"
      }

      func bind(to statement: PreparedStatement) {
        switch self {
        case .all: break
        case .tag(let text), .id(let text): statement.bind(RecordColumns.key(text), 1)
        }
      }
    }

    private func filters(_ selection: LedgerSelection) -> [Filter] {
      switch selection {
      case .all: [.all]
      case .tag(let tag): [.tag(tag)]
      case .ids(let ids): ids.map { .id($0.rawValue) }
      }
    }

    // MARK: Moving

    func transition(
      _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
    ) throws -> LedgerTransitionResult {
      var result = LedgerTransitionResult(ids: [], count: 0)
      let sources = Lifecycle.phases(accepting: event).filter { !$0.isActive }
        // What waits first: what comes to it later must not be counted again.
        .sorted { $0 == .waiting && $1 != .waiting }
      for filter in filters(selection) {
        try appendIDs(filter, sources, to: &result.ids)
        for source in sources {
          guard let phase = Lifecycle.next(source, event) else { continue }
          let count = try move(filter, from: source, to: phase, at: now)
          moved(count, from: source, to: phase)
          result.count += count
        }
      }
      return result
    }

    /// The ids that are going to be moved, in the order of arrival, until there are 10,000.
    private func appendIDs(
      _ filter: Filter, _ phases: [DownloadState.Phase], to ids: inout [DownloadID]
    ) throws {
      let room = 10_000 - ids.count
      guard room > 0, !phases.isEmpty else { return }
      let parts = phases.map { phase in
        """
        SELECT id, arrival, generation FROM download
        WHERE \(filter.isIn(phase)) AND owner IS NULL AND \(filter.sql)
        """
      }
      let statement = try prepared(
        parts.joined(separator: " UNION ALL ") + " ORDER BY arrival, generation LIMIT \(room)")
      filter.bind(to: statement)
      defer { statement.reset() }
      while try statement.step() { ids.append(DownloadID(statement.text(0))) }
    }

    private func move(
      _ filter: Filter, from source: DownloadState.Phase, to phase: DownloadState.Phase, at now: Date
    ) throws -> Int {
      var changes = "phase = '\(phase.rawValue)', not_before = NULL, updated_at = ?2"
      if phase == .waiting {
        changes += ", error = NULL, consecutive_failures = 0, repeated_failures = NULL"
        if source == .cancelled { changes += ", " + RecordColumns.clearedProgress }
      }
      let statement = try prepared(
        """
        UPDATE download SET \(changes)
        WHERE \(filter.isIn(source)) AND owner IS NULL AND \(filter.sql)
        """)
      filter.bind(to: statement)
      statement.bind(now, 2)
      return try statement.run()
    }

    // MARK: Forgetting

    func remove(_ selection: LedgerSelection, limit: Int, owner: String) throws -> [DownloadRecord] {
      var records: [DownloadRecord] = []
      for filter in filters(selection) {
        let room = limit - records.count
        guard room > 0 else { break }
        let found = try removable(filter, limit: room, owner: owner)
        for record in found { try delete(record) }
        records += found
      }
      return records
    }

    private func removable(_ filter: Filter, limit: Int, owner: String) throws -> [DownloadRecord] {
      // A phase at a time, so that the index gives the order; a tag's or an id's records are few.
      func isOurs(_ phase: DownloadState.Phase) -> String {
        guard phase.isActive else { return "owner IS NULL" }
        if case .all = filter { return "owner = ?2" }
        return "+owner = ?2"
      }
      let parts = DownloadState.Phase.allCases.map { phase in
        """
        SELECT generation, arrival FROM download
        WHERE \(filter.isIn(phase)) AND \(isOurs(phase)) AND \(filter.sql)
        """
      }
      let keys = parts.joined(separator: " UNION ALL ") + " ORDER BY arrival, generation LIMIT ?3"
      let statement = try prepared(
        """
        SELECT \(RecordColumns.list) FROM download
        WHERE generation IN (SELECT generation FROM (\(keys))) ORDER BY arrival, generation
        """)
      filter.bind(to: statement)
      statement.bind(owner, 2)
      statement.bind(Int64(limit), 3)
      defer { statement.reset() }
      var records: [DownloadRecord] = []
      while try statement.step() { records.append(try RecordColumns.record(statement)) }
      return records
    }

    private func delete(_ record: DownloadRecord) throws {
      for tag in record.request.tags {
        let statement = try prepared(.deleteTag)
        statement.bind(tag, 1)
        statement.bind(record.generation, 2)
        try statement.run()
      }
      let statement = try prepared(.delete)
      statement.bind(record.generation, 1)
      if try statement.run() == 1 { moved(from: record.phase, to: nil) }
    }

    // MARK: Leases

    func renewLeases(of owner: String, until lease: Date) throws {
      let statement = try prepared(.renew)
      statement.bind(owner, 1)
      statement.bind(lease, 2)
      try statement.run()
    }

    /// Makes the records wait again whose owner and lease `isLost` names.
    func giveBack(at now: Date?, where isLost: (_ owner: String, _ lease: Date?) -> Bool) throws -> Int {
      var lost: [(generation: Int64, phase: String)] = []
      let active = try prepared(.active)
      do {
        defer { active.reset() }
        while try active.step() {
          guard isLost(active.text(2), active.optionalDate(3)) else { continue }
          lost.append((active.int64(0), active.text(1)))
        }
      }
      let statement = try prepared(.giveBack)
      for (generation, phase) in lost {
        statement.bind(generation, 1)
        statement.bind(now, 2)
        try statement.run()
        moved(from: DownloadState.Phase(rawValue: phase), to: .waiting)
      }
      return lost.count
    }

    // MARK: Ranking

    /// Computes ranks anew, a page at a time: the memory it takes does not grow with the queue.
    func rerank(_ rank: (RankingContext) -> Rank) throws {
      let page = try prepared(.rankPage)
      let update = try prepared(.rerank)
      var last = (arrival: Int64.min, generation: Int64.min)
      while true {
        var changes: [(generation: Int64, rank: Rank)] = []
        var count = 0
        page.bind(last.arrival, 1)
        page.bind(last.generation, 2)
        do {
          defer { page.reset() }
          while try page.step() {
            count += 1
            last = (page.int64(1), page.int64(0))
            let new = rank(
              RankingContext(
                id: DownloadID(page.text(3)), priority: Priority(Int16(clamping: page.int64(4))),
                intent: RecordColumns.intent(page, 5), arrival: last.arrival, createdAt: page.date(6),
                expectedSize: page.optionalInt64(7)))
            if new.value != page.uint128(2) { changes.append((last.generation, new)) }
          }
        }
        for change in changes {
          update.bind(change.generation, 1)
          update.bind(blob: change.rank.value, 2)
          try update.run()
        }
        if count < 1000 { return }
      }
    }
  }
#endif
