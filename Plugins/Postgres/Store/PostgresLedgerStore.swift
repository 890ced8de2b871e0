#if Postgres
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import DownpipePOSIX
  import Foundation
  import Synchronization

  /// The store of a ``PostgresLedger``: one opening of the ledger, with an owner of its own.
  final class PostgresLedgerStore: LedgerStore {
    let owner: String
    let leasesExpire = true
    let countsForAll = true
    let leasesRates = true
    let changesByOthers: AsyncStream<Void>?
    private let identity: ProcessOwner
    private let pool: PostgresPool
    private let memory: StoreMemory
    /// The stores of the same ledger in this process.
    private let watchers: LedgerWatchers
    /// The stores of the same ledger in other processes.
    private let announcements: Announcements
    private let hasRanked = Atomic(false)
    /// The number of the last exchange that was tried.
    private let lastExchange = Atomic<Int64>(0)
    /// The number of the last other change that was tried.
    private let lastChange = Atomic<Int64>(0)
    private let isClosed = Atomic(false)

    /// - Parameters:
    ///   - wakes: Whether notifications appear in ``changesByOthers``.
    ///   - clock: The clock of this machine.
    /// - Throws: ``PostgresFault``, and `DownloadError` if a newer program has made the tables.
    static func open(
      _ settings: PostgresConnection.Settings, schema: String, connections: Int, wakes: Bool = true,
      clock: @escaping @Sendable () -> Date = { Date() }
    ) async throws -> PostgresLedgerStore {
      let pool = try PostgresPool(settings, connections: connections)
      let identity = ProcessOwner.new()
      do {
        let clock = ServerClock(machine: clock)
        let (number, ledger) = try await pool.withConnection { connection in
          try Schema.prepare(schema, connection)
          let asked = ContinuousClock.now
          let rows = try connection.run(
            """
            INSERT INTO opening (owner) VALUES ($1)
            RETURNING number, (SELECT value FROM setting WHERE name = 'ledger'), \(ServerClock.column)
            """, [.text(identity.text)])
          clock.note(rows.real(0, 2), askedAt: asked)
          return (rows.integer(0, 0) ?? 0, rows.text(0, 1) ?? "")
        }
        let memory = StoreMemory(owner: (identity.text, number), schema: schema, clock: clock)
        let watchers = OpenLedgers.watchers(of: ledger)
        let announcements = try Announcements(settings, ledger: ledger, memory) {
          if wakes { watchers.tell(identity.text) }
        }
        return PostgresLedgerStore(identity, pool, memory, watchers, announcements)
      } catch {
        pool.close()
        identity.end()
        throw error
      }
    }

    private init(
      _ identity: ProcessOwner, _ pool: PostgresPool, _ memory: StoreMemory, _ watchers: LedgerWatchers,
      _ announcements: Announcements
    ) {
      (self.identity, self.pool, self.memory, self.watchers) = (identity, pool, memory, watchers)
      self.announcements = announcements
      owner = identity.text
      changesByOthers = watchers.stream(for: owner)
    }

    /// A deallocated store saves nothing more, so its owner ends.
    deinit {
      identity.end()
      watchers.end(owner)
      announcements.stop()
      pool.close()
    }

    // MARK: Calls

    /// - Parameter endsWithTask: Whether it may take long, and ends when the task is cancelled.
    private func read<Value: Sendable>(
      endsWithTask: Bool = false, _ body: @escaping @Sendable (LedgerTables) throws -> Value
    ) async throws -> Value {
      try await call(endsWithTask: endsWithTask) { connection, memory in try body(LedgerTables(connection, memory)) }
    }

    /// How often a change is tried that other transactions were in the way of.
    private static let mostAttempts = 10

    /// Makes a change in a transaction, and informs the other stores if it is relevant to them.
    ///
    /// - Parameter isRepeatable: Whether `body` may be called again after another transaction was in the way.
    private func change<Value: Sendable>(
      isRepeatable: Bool = true, within limit: Duration? = nil,
      _ body: @escaping @Sendable (LedgerTables) throws -> Value,
      concernsOthers: @escaping @Sendable (Value) -> Bool = { _ in false }
    ) async throws -> Value {
      let announcements = announcements
      let value = try await call { connection, memory in
        connection.shortLimit = limit
        defer { connection.shortLimit = nil }
        var attempts = 1
        while true {
          do {
            let value = try LedgerTables.change(connection, memory, body)
            if concernsOthers(value) { announcements.announce(over: connection) }
            return value
          } catch let fault as PostgresFault where fault.kind == .conflict && isRepeatable {
            attempts += 1
            guard attempts <= Self.mostAttempts else { throw fault }
            // At random, so that the same transactions do not meet again.
            connection.pause(for: .milliseconds(10 << min(attempts, 5)) * Double.random(in: 0...1))
          }
        }
      }
      if concernsOthers(value) { watchers.tell(changedBy: owner) }
      return value
    }

    /// Makes a change with a number, or gives its answer again.
    private func change<Value: Sendable>(
      _ number: Int64?, _ answer: LedgerAnswer<Value>, isRepeatable: Bool = true,
      _ body: @escaping @Sendable (LedgerTables) throws -> Value
    ) async throws -> Value {
      let isRepeated = number.map { lastChange.exchange($0, ordering: .relaxed) == $0 } ?? false
      return try await change(
        isRepeatable: isRepeatable,
        { tables in
          if isRepeated, let number, let kept = try tables.kept(number, in: .change) {
            return try answer.again(kept, tables.records(of:))
          }
          let value = try body(tables)
          // Also if nothing has changed: an earlier attempt must not take effect any more.
          if let number, isRepeated || answer.hasChanged(value) {
            try tables.keep(try answer.kept(value), number, in: .change)
          }
          return value
        }, concernsOthers: answer.hasChanged)
    }

    /// How often a lease looks again for downloads that others had locked.
    private static let mostLooks = 20

    /// Makes a change in a transaction that leases, and leases what other leases had locked in that moment, but not taken.
    /// - Parameter note: Notes in a later look's transaction what all of these have leased.
    /// - Returns: The result, and what was leased by the later looks.
    private func change<Value: Sendable>(
      leasing request: LeaseRequest, _ body: @escaping @Sendable (LedgerTables) throws -> Value,
      noting note: @escaping @Sendable (LedgerTables, Value, [DownloadRecord]) throws -> Void = { _, _, _ in },
      concernsOthers: @escaping @Sendable (Value) -> Bool = { _ in false }
    ) async throws -> (Value, more: [DownloadRecord]) {
      let announcements = announcements
      let (value, more) = try await call { connection, memory in
        // Once: what a lease has asked and been told counts once.
        var (value, next) = try LedgerTables.change(connection, memory) { (try body($0), $0.passedOver) }
        var more: [DownloadRecord] = []
        for _ in 0..<Self.mostLooks {
          guard let passedOver = next else { break }
          do {
            try LedgerTables.change(connection, memory) { try $0.wait(for: passedOver) }
            let leased: [DownloadRecord]
            (leased, next) = try LedgerTables.change(connection, memory) { tables in
              let leased = try tables.lease(request)
              if !leased.isEmpty { try note(tables, value, more + leased) }
              return (leased, tables.passedOver)
            }
            more += leased
          } catch let fault as PostgresFault where fault.kind != .commitUnknown {
            // The first transaction holds.
            announcements.oweWake()
            next = nil
          }
        }
        if next != nil { announcements.oweWake() }
        if concernsOthers(value) { announcements.announce(over: connection) }
        return (value, more)
      }
      if concernsOthers(value) { watchers.tell(changedBy: owner) }
      return (value, more)
    }

    private func call<Value: Sendable>(
      endsWithTask: Bool = false, _ body: @escaping @Sendable (PostgresConnection, StoreMemory) throws -> Value
    ) async throws -> Value {
      guard !isClosed.load(ordering: .acquiring) else { throw PostgresFault.closed.downloadError }
      let memory = memory
      do {
        if endsWithTask { return try await pool.withCancellableConnection { try body($0, memory) } }
        return try await pool.withConnection { try body($0, memory) }
      } catch {
        throw PostgresFault.translate(error)
      }
    }

    // MARK: Changes

    func add(_ additions: [LedgerAddition], at now: Date, number: Int64?) async throws -> [LedgerAddOutcome] {
      let now = now.asStored
      return try await change(number, .additions(additions, at: now)) { try $0.add(additions, at: now) }
    }

    func restore(_ records: [DownloadRecord], at now: Date) async throws -> [Bool] {
      let now = now.asStored
      return try await change({ try $0.restore(records, at: now) }) { $0.contains(true) }
    }

    func update(
      _ id: DownloadID, at now: Date, number: Int64?,
      _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
    ) async throws -> DownloadRecord? {
      let now = now.asStored
      return try await self.change(number, .update(id, at: now)) { try $0.update(id, at: now, change) }
    }

    func update(
      _ selection: LedgerSelection, at now: Date, number: Int64?,
      _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
    ) async throws -> LedgerBulkResult {
      let now = now.asStored
      return try await self.change(number, .bulk) { try $0.update(selection, at: now, change) }
    }

    func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
      let request = request.asStored
      let (leased, more) = try await change(leasing: request) { try $0.lease(request) }
      return leased + more
    }

    func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
      let (now, save) = (now.asStored, LedgerSave(record, fields))
      let isSaved = try await change({ try $0.save(save, at: now).isSaved }) { $0 && save.endsRun }
      memory.condition.withLock { $0.note([save], [isSaved]) }
      return isSaved
    }

    func exchange(
      _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
    ) async throws -> LedgerExchange {
      let (request, now) = (request?.asStored, now.asStored)
      let isRepeated = number.map { lastExchange.exchange($0, ordering: .relaxed) == $0 } ?? false
      let perform = { @Sendable (tables: LedgerTables) in
        if isRepeated, let number, let answer = try tables.answer(number, saves) { return answer }
        let exchange = try tables.exchange(saves, request, at: now)
        // Also if nothing has changed: an earlier attempt must not take effect any more.
        if let number, isRepeated || exchange.hasChanges {
          try tables.keep(exchange.kept(for: saves), number, in: .exchange)
        }
        return exchange
      }
      let concernsOthers = { @Sendable (exchange: LedgerExchange) in
        zip(saves, exchange.saved).contains { $0.endsRun && $1 }
      }
      var exchange: LedgerExchange
      if let request {
        let more: [DownloadRecord]
        (exchange, more) = try await change(
          leasing: request, perform,
          noting: { tables, exchange, more in
            var all = exchange
            all.leased += more
            if let number { try tables.keep(all.kept(for: saves), number, in: .exchange, isMore: true) }
          }, concernsOthers: concernsOthers)
        exchange.leased += more
      } else {
        exchange = try await change(perform, concernsOthers: concernsOthers)
      }
      memory.condition.withLock { [exchange] in
        $0.note(saves, zip(saves, exchange.saved).map { $1 && !exchange.reopened.contains($0.record.id) })
      }
      return exchange
    }

    func transition(
      _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date, number: Int64?
    ) async throws -> LedgerBulkResult {
      guard event != .leased else {
        throw DownloadError(
          .ledger, "only a lease makes a download active: call lease(_:) instead", stage: PostgresFault.stage)
      }
      let now = now.asStored
      return try await change(number, .bulk) { try $0.transition(selection, event, at: now) }
    }

    func remove(
      _ selection: LedgerSelection, number: Int64?,
      leaving choose: @escaping @Sendable (DownloadRecord) -> LedgerDeletion?
    ) async throws -> LedgerRemoval {
      // What the choice has noted counts once.
      try await change(number, .removal, isRepeatable: false) { try $0.remove(selection, leaving: choose) }
    }

    func deletions(
      at location: String?, in numbers: ClosedRange<Int64>, limit: Int
    ) async throws -> [LedgerDeletion] {
      try await read { try $0.deletions(at: location, in: numbers, limit: limit) }
    }

    func forget(deletions numbers: [Int64]) async throws {
      try await change { try $0.forget(deletions: numbers) }
    }

    func note(machineFault fault: DownloadError?) { memory.condition.withLock { $0.note(fault) } }

    func renewLeases(until lease: Date) async throws {
      try await change { try $0.renewLeases(until: lease) }
    }

    /// By the server's clock. Not tried again when others are in the way for long: the caller asks again anyway.
    func leaseRates(_ wants: [RateWant], for duration: Duration, at now: Date) async throws -> [RateShare] {
      try await change(isRepeatable: false, within: LedgerTables.patience) { try $0.leaseRates(wants, for: duration) }
    }

    func reclaim(at now: Date) async throws -> Int {
      let now = now.asStored
      return try await change { tables in
        var (gone, alive): ([Int64], [Int64]) = ([], [])
        for (number, owner) in try tables.openings() {
          switch ProcessOwner.standing(of: owner) {
          case .alive: alive.append(number)
          case .gone: gone.append(number)
          case .unknown: break
          }
        }
        return try tables.reclaim(gone: gone, alive: alive, at: now)
      } concernsOthers: {
        $0 > 0
      }
    }

    // MARK: Queries

    func record(_ id: DownloadID) async throws -> DownloadRecord? { try await read { try $0.record(id) } }

    func records(of ids: [DownloadID]) async throws -> [DownloadRecord] { try await read { try $0.records(of: ids) } }

    func records(_ query: DownloadQuery) async throws -> [DownloadRecord] {
      try await read(endsWithTask: true) { try $0.records(query) }
    }

    func records(after generation: Int64, limit: Int) async throws -> [DownloadRecord] {
      try await read { try $0.records(after: generation, limit: limit) }
    }

    func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int] {
      try await read { try $0.counts(filter) }
    }

    func totals(_ filter: DownloadFilter) async throws -> DownloadTotals { try await read { try $0.totals(filter) } }

    func unsettledMoves() async throws -> [DownloadRecord] { try await read { try $0.unsettledMoves() } }

    func damaged() async throws -> [DamagedRecord] { try await read { try $0.damaged() } }

    func nextDue(after now: Date) async throws -> Date? { try await read { try $0.nextDue(after: now) } }

    func isBusy() async throws -> Bool { try await read { try $0.isBusy() } }

    func hasChangesByOtherProcesses() async throws -> Bool? { announcements.takeNews() }

    // MARK: Ranking and settings

    func rank(by ranking: Ranking) async throws {
      let isLater = hasRanked.exchange(true, ordering: .relaxed)
      let number = memory.set(ranking)
      guard try await change({ try $0.beginRanking(by: ranking, always: isLater) }) else { return }
      var last: Int64? = .min
      while let from = last {
        last = try await change { try $0.rank(after: from, as: number) }
        // What is left is done by the next ranking.
        try Task.checkCancellation()
      }
      try await change { try $0.endRanking(as: number) }
    }

    func settings() async throws -> Data? {
      try await read { try $0.setting(Self.settingsName) }.map { Data($0.utf8) }
    }

    func keep(settings: Data) async throws {
      let text = String(decoding: settings, as: UTF8.self)
      try await change { try $0.set(Self.settingsName, to: text) }
    }

    /// The row with the settings of the app. The other rows are the ledger's own.
    private static let settingsName = "settings of the app"

    // MARK: Closing

    func close() async throws {
      let result: Result<Void, any Error>
      // Its thread writes the row of the opening, and may have begun to announce a change.
      await announcements.end()
      do {
        _ = try await change({ try $0.leave() }) { $0 > 0 }
        let announcements = announcements
        try await call { connection, _ in announcements.announceRest(over: connection) }
        result = .success(())
      } catch { result = .failure(error) }
      guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
      // The connections are closed even after a failure: what was not given back is freed by the end of the owner and
      // of the leases.
      pool.close()
      identity.end()
      watchers.end(owner)
      try result.get()
    }
  }

  extension LeaseRequest {
    fileprivate var asStored: LeaseRequest {
      var copy = self
      copy.now = now.asStored
      return copy
    }
  }

  extension Date {
    /// The date as it is read back: seconds since 1970 are less precise than seconds since 2001.
    fileprivate var asStored: Date { Date(timeIntervalSince1970: timeIntervalSince1970) }
  }
#endif
