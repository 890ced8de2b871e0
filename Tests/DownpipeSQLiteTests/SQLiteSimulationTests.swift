#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeSQLite
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  /// Simulates downloaders with a ledger in a real file, in a process that is killed.
  @Suite(.endsHangs)
  struct SQLiteSimulationTests {
    private func simulation(in folder: String) -> Simulation {
      var world = SimulatedWorld.faulty
      (world.crashes, world.jobsBetweenCrashes) = (.kill, 500)
      return Simulation(world) { machine in
        machine.source
        machine.gate
        machine.limits
        machine.segments
        Retry(.exponential(attempts: 6))
        machine.storage
        OutsideLedger(
          // One file for each world, which outlives the processes.
          base: SQLiteLedger(machine.keep("ledger") { "\(folder)/\(DownloadID())/ledger.sqlite" }), machine: machine)
        machine.step
      }
    }

    private func withFolder(_ body: (String) async throws -> Void) async throws {
      let folder = FileManager.default.temporaryDirectory.appending(path: "downpipe-simulation-\(DownloadID())")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      try await body(folder.path)
    }

    @Test("every invariant holds with a ledger in a file, also when the process is killed")
    func invariantsHold() async throws {
      try await withFolder { folder in
        let report = try await simulation(in: folder).run(seeds: 0..<36)
        #expect(report.crashes > 0)
        #expect(report.counts["phase: transferring → finished", default: 0] > 0)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(files.count == 36 + report.repetitions)
      }
    }

    @Test("the same seed has the same history, although the calls of the file are outside of the simulation")
    func isReproducible() async throws {
      try await withFolder { folder in
        let simulation = simulation(in: folder)
        for seed in UInt64(1)..<5 {
          let first = try await simulation.fingerprint(of: seed)
          #expect(try await simulation.fingerprint(of: seed) == first)
        }
      }
    }
  }

  /// A ledger whose calls are one step of the simulation each.
  private struct OutsideLedger: Ledger {
    let base: SQLiteLedger
    let machine: SimulatedMachine

    var summary: String { base.summary }

    func open() async throws -> any LedgerStore {
      let base = base
      return OutsideStore(base: try await machine.outside { try await base.open() }, machine: machine)
    }
  }

  private struct OutsideStore: LedgerStore {
    let base: any LedgerStore
    let machine: SimulatedMachine

    var owner: String { base.owner }

    private func call<Result: Sendable>(
      _ work: @escaping @Sendable (any LedgerStore) async throws -> Result
    ) async throws -> Result {
      let base = base
      return try await machine.outside { try await work(base) }
    }

    func add(_ additions: [LedgerAddition], at now: Date) async throws -> [LedgerAddOutcome] {
      try await call { try await $0.add(additions, at: now) }
    }
    func update(
      _ id: DownloadID, at now: Date, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
    ) async throws -> DownloadRecord? {
      try await call { try await $0.update(id, at: now, change) }
    }
    func update(
      _ selection: LedgerSelection, at now: Date, _ change: @escaping @Sendable (inout DownloadRecord) throws -> Void
    ) async throws -> LedgerBulkResult {
      try await call { try await $0.update(selection, at: now, change) }
    }
    func record(_ id: DownloadID) async throws -> DownloadRecord? { try await call { try await $0.record(id) } }
    func records(of ids: [DownloadID]) async throws -> [DownloadRecord] {
      try await call { try await $0.records(of: ids) }
    }
    func records(_ query: DownloadQuery) async throws -> [DownloadRecord] {
      try await call { try await $0.records(query) }
    }
    func damaged() async throws -> [DamagedRecord] { try await call { try await $0.damaged() } }
    func counts(_ filter: DownloadFilter) async throws -> [DownloadState.Phase: Int] {
      try await call { try await $0.counts(filter) }
    }
    func totals(_ filter: DownloadFilter) async throws -> DownloadTotals {
      try await call { try await $0.totals(filter) }
    }
    func unsettledMoves() async throws -> [DownloadRecord] { try await call { try await $0.unsettledMoves() } }
    func lease(_ request: LeaseRequest) async throws -> [DownloadRecord] {
      try await call { try await $0.lease(request) }
    }
    func save(_ record: DownloadRecord, _ fields: RecordFields, at now: Date) async throws -> Bool {
      try await call { try await $0.save(record, fields, at: now) }
    }
    func exchange(
      _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date
    ) async throws -> LedgerExchange {
      try await call { try await $0.exchange(saves, leasing: request, at: now) }
    }
    func transition(
      _ selection: LedgerSelection, _ event: Lifecycle.Event, at now: Date
    ) async throws -> LedgerBulkResult {
      try await call { try await $0.transition(selection, event, at: now) }
    }
    func remove(
      _ selection: LedgerSelection, _ choose: @escaping @Sendable (DownloadRecord) -> Bool
    ) async throws -> Int {
      try await call { try await $0.remove(selection, choose) }
    }
    func renewLeases(until lease: Date) async throws { try await call { try await $0.renewLeases(until: lease) } }
    func reclaim(at now: Date) async throws -> Int { try await call { try await $0.reclaim(at: now) } }
    func nextDue(after now: Date) async throws -> Date? { try await call { try await $0.nextDue(after: now) } }
    func isBusy() async throws -> Bool { try await call { try await $0.isBusy() } }
    func rank(by ranking: Ranking) async throws { try await call { try await $0.rank(by: ranking) } }
    func settings() async throws -> Data? { try await call { try await $0.settings() } }
    func keep(settings: Data) async throws { try await call { try await $0.keep(settings: settings) } }
    func close() async throws { try await call { try await $0.close() } }
  }
#endif
