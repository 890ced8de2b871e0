#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import GRDB

  extension LedgerConnection {
    /// Leases the downloads that a request selects.
    ///
    /// The lanes are merged in order of precedence and rank. Downloads that are taken are read and written; of a lane
    /// that is skipped only the first download is read, and a lane that is held is not visited again.
    func lease(_ request: LeaseRequest) throws -> [DownloadRecord] {
      try promote(at: request.now)
      let list = try lanes(for: request)
      try list.begin(request) { try kind($0.kind)?.candidate }
      var taken: [DownloadRecord] = []
      var places: [(generation: Int64, lane: Lane)] = []
      var skipped: Set<Candidate> = []
      var held: [Candidate: Duration?] = [:]
      var left: [LaneList.Head] = []
      var cursors: [Lane: Cursor] = [:]
      search: while let head = list.pop() {
        guard var candidate = try kind(head.lane.kind)?.candidate else { continue }
        if skipped.contains(candidate) {
          left.append(head)
          continue
        }
        if let due = held[candidate] {
          list.hold(head.lane, until: due)
          continue
        }
        // A damaged record is skipped without calling `select`.
        var record: DownloadRecord?
        if list.sizeOfReadHead(head.lane) == nil {
          record = try readable(head.key.generation)
          if let record { list.setRead(head.lane, size: record.likelySize) }
        }
        if let size = list.sizeOfReadHead(head.lane) {
          let line = candidate
          candidate.size = size
          switch request.select(candidate) {
          case .take:
            guard let record = try record ?? readable(head.key.generation) else { break }
            taken.append(record)
            places.append((record.generation, head.lane))
          case .skip:
            skipped.insert(line)
            left.append(head)
            continue search
          case .hold(let due):
            held[line] = .some(due)
            list.hold(head.lane, until: due)
            continue search
          case .stop:
            left.append(head)
            break search
          }
        }
        list.setHead(try next(after: head, in: list, &cursors), of: head.lane)
      }
      for head in left { list.putBack(head) }
      // Other lists may have a leased download as a head; this list is up to date.
      if laneLists.count > 1 {
        for place in places { noteChange(of: place.generation, in: place.lane, but: list) }
      }
      list.forget(taken)
      // The records are changed in place: a copy costs dozens of reference counts.
      var areLeased = true
      for index in taken.indices where try !take(&taken[index], request) { areLeased = false }
      return areLeased ? taken : taken.filter { $0.phase.isActive }
    }

    /// - Returns: Whether the record could be leased.
    private func take(_ record: inout DownloadRecord, _ request: LeaseRequest) throws -> Bool {
      let statement = try prepared(.lease)
      let opening = try opening()
      statement.bind(opening)
      statement.bind(request.until)
      statement.bind(request.now)
      statement.bind(record.generation)
      guard try statement.run() == 1 else { return false }
      moved(from: .waiting, to: .transferring)
      record.apply(.leased)
      record.owner = try owner(opening)
      record.updatedAt = request.now
      return true
    }

    /// Makes downloads ready that are due, or whose due time is so far ahead that the clock must have been wrong.
    private func promote(at now: Date) throws {
      let isAnyDue = try prepared(.isAnyDue)
      isAnyDue.bind(now)
      isAnyDue.bind(now.furthestDue)
      guard try isAnyDue.first({ $0.int64() != 0 }) == true else { return }
      for (text, time) in [(StatementText.promoteDue, now), (.promoteJumped, now.furthestDue)] {
        let promote = try prepared(text)
        promote.bind(time)
        defer { promote.reset() }
        while try promote.step() { noteWaiting(promote) }
      }
    }

    // MARK: Lanes

    /// The list of the lanes for a request.
    private func lanes(for request: LeaseRequest) throws -> LaneList {
      let scope = LaneList.Scope(
        request.scope, opening: request.scope == .own ? try opening() : nil, location: request.location)
      if let known = laneLists.first(where: { $0.scope == scope }) {
        for lane in known.stale { known.setHead(try keys(of: lane, after: .first, limit: 1).first, of: lane) }
        return known
      }
      let list = LaneList(scope)
      if scope.ids == nil { try fill(list) } else { try look(up: list) }
      if laneLists.count > 3 { laneLists.removeAll() }
      laneLists.append(list)
      return list
    }

    /// Reads the downloads that the scope of a list names.
    private func look(up list: LaneList) throws {
      let row = try prepared(.placeOfID)
      for id in list.scope.ids ?? [] {
        row.bind(RecordColumns.key(id.rawValue))
        defer { row.reset() }
        guard try row.step() else { continue }
        let lane = Lane(opening: row.int64(), kind: row.int64())
        guard let rank = row.key() else { continue }
        let key = WaitingKey(rank: rank, arrival: row.int64(), generation: row.int64())
        list.name(key.generation)
        if row.int64() != 0, let kind = try kind(lane.kind), list.covers(lane, kind) {
          list.insert(key, in: lane, id: id)
        }
      }
    }

    /// Reads all lanes, with one index look-up for each.
    private func fill(_ list: LaneList) throws {
      let row = try prepared(list.scope.opening == nil ? .nextLane : .nextOwnLane)
      var start: Lane? = Lane(opening: list.scope.opening ?? .min, kind: .min)
      while let from = start {
        row.bind(from.opening)
        row.bind(from.kind)
        guard let found = try row.first({ ($0.value(), $0.value()) }), case .integer(let opening)? = found.0 else {
          return
        }
        guard case .integer(let number)? = found.1 else {
          // A damaged kind sorts before or after all numbers.
          if from.opening < opening {
            start = Lane(opening: opening, kind: .min)
          } else {
            start = list.scope.opening == nil && opening < .max ? Lane(opening: opening + 1, kind: .min) : nil
          }
          continue
        }
        let lane = Lane(opening: opening, kind: number)
        start = number < .max ? Lane(opening: opening, kind: number + 1) : nil
        guard let kind = try kind(number), list.covers(lane, kind) else { continue }
        list.setHead(try keys(of: lane, after: .first, limit: 1).first, of: lane)
      }
    }

    private func keys(of lane: Lane, after key: WaitingKey, limit: Int) throws -> [WaitingKey] {
      let row = try prepared(.waitingKeys)
      row.bind(lane.opening)
      row.bind(lane.kind)
      row.bind(blob: key.rank)
      row.bind(key.arrival)
      row.bind(key.generation)
      row.bind(Int64(limit))
      var count = 0
      var keys: [WaitingKey] = []
      do {
        defer { row.reset() }
        while try row.step() {
          count += 1
          guard let rank = row.key() else { continue }
          let found = WaitingKey(rank: rank, arrival: row.int64(), generation: row.int64())
          // A damaged key must not cause an endless loop.
          if found > keys.last ?? key { keys.append(found) }
        }
      }
      if keys.isEmpty, count == limit { return try self.keys(of: lane, after: key, limit: limit * 8) }
      return keys
    }

    /// The next keys of a lane, read ahead.
    private struct Cursor {
      var keys: ArraySlice<WaitingKey> = []
      var limit = 4
    }

    private func next(
      after head: LaneList.Head, in list: LaneList, _ cursors: inout [Lane: Cursor]
    ) throws -> WaitingKey? {
      if list.scope.ids != nil { return list.named(after: head.key, in: head.lane) }
      var cursor = cursors.removeValue(forKey: head.lane) ?? Cursor()
      if cursor.keys.isEmpty {
        cursor.keys = try keys(of: head.lane, after: head.key, limit: cursor.limit)[...]
        cursor.limit = min(cursor.limit * 2, 1024)
      }
      let next = cursor.keys.popFirst()
      cursors[head.lane] = cursor
      return next
    }

    // MARK: Updating the lanes

    /// Adds the waiting download in a row with the columns opening, kind, rank, arrival and generation.
    func noteWaiting(_ row: PreparedStatement) {
      let lane = Lane(opening: row.int64(), kind: row.int64())
      guard let rank = row.key() else { return }
      noteWaiting(WaitingKey(rank: rank, arrival: row.int64(), generation: row.int64()), in: lane, id: nil)
    }

    /// Adds a waiting download to the lists of lanes.
    ///
    /// - Parameter id: The id of the download; only needed for a new download.
    func noteWaiting(_ key: WaitingKey, in lane: Lane, id: DownloadID?) {
      guard !laneLists.isEmpty, let kind = try? kind(lane.kind) else { return }
      for list in laneLists where list.covers(lane, kind) { list.insert(key, in: lane, id: id) }
    }

    /// Removes a download that may have left a lane from the lists of lanes.
    /// - Parameter known: A list that needs no change.
    func noteChange(of generation: Int64, in lane: Lane, but known: LaneList? = nil) {
      guard !laneLists.isEmpty, let kind = try? kind(lane.kind) else { return }
      for list in laneLists where list !== known && list.covers(lane, kind) { list.remove(generation, from: lane) }
    }

    /// Discards the lists of lanes, after a change to many downloads.
    func forgetLanes() { laneLists.removeAll() }
  }
#endif
