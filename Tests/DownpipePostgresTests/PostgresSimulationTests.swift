#if Postgres
  @_spi(Ledger) import DownpipeCore
  import DownpipeScheduling
  @_spi(Ledger) import DownpipeTesting
  import Foundation
  import HangLimit
  import PostgresCluster
  import Testing

  @testable import DownpipePostgres

  /// Simulates downloaders that share a ledger at a real server.
  @Suite(.endsHangs)
  struct PostgresSimulationTests {
    /// - Parameter clockError: How far the clock of the machine is ahead.
    private func ledger(_ address: String, _ schema: String, _ clockError: Duration) -> PostgresLedger {
      var ledger = PostgresLedger(address, schema: schema, connections: 1)
      ledger.wakes = false
      let seconds: Double = clockError / .seconds(1)
      ledger.clock = { Date() + seconds }
      return ledger
    }

    private func simulation(processes: Int, clockDifference: Duration = .zero) throws -> Simulation {
      let address = try PostgresCluster.shared.get().address
      var world = SimulatedWorld.faulty
      (world.crashes, world.jobsBetweenCrashes, world.processes) = (.kill, 500, processes)
      world.clockDifference = clockDifference
      return Simulation(world) { machine in
        machine.source
        machine.gate
        machine.limits
        machine.segments
        Retry(.exponential(attempts: 6))
        machine.storage
        // One schema for each world, which outlives the processes.
        OutsideLedger(ledger(address, machine.keep("ledger") { "\(DownloadID())" }, machine.clockError), machine)
        machine.step
      }
    }

    /// A ledger whose leases do not expire: the clock of the properties is faster than any server.
    private struct LastingLedger: Ledger {
      private struct Store: LedgerStoreWrapper {
        let base: any LedgerStore
        var leasesExpire: Bool { false }
      }

      let base: any Ledger

      func open() async throws -> any LedgerStore { Store(base: try await base.open()) }
    }

    @Test("The queue has its properties under random operations")
    func properties() async throws {
      let address = try PostgresCluster.shared.get().address
      try await QueueProperties(ledger: { LastingLedger(base: PostgresLedger(address, schema: "\(DownloadID())")) }) {
        PriorityQueue(ageing: .seconds(1))
      }.run(seeds: 0..<LongForm.count(4, long: 20))
    }

    private static let seeds: Range<UInt64> = {
      let count = ProcessInfo.processInfo.environment["DOWNPIPE_POSTGRES_SEEDS"].flatMap { UInt64($0) }
      return 0..<(count ?? LongForm.count(6, long: 50))
    }()

    @Test("every invariant holds with a ledger at a server, also when processes are killed", arguments: [1, 2, 3])
    func invariantsHold(processes: Int) async throws {
      let report = try await simulation(processes: processes).run(seeds: Self.seeds)
      #expect(report.crashes > 0)
      #expect(report.counts["phase: transferring → finished", default: 0] > 0)
    }

    @Test("every invariant holds when the clocks of three machines are a day apart")
    func clocksDiffer() async throws {
      var simulation = try self.simulation(processes: 3, clockDifference: .seconds(86_400))
      // The difference that a store finds follows from the time that the server needs for an answer, and from no seed.
      simulation.seedsBetweenRepetitions = 0
      let report = try await simulation.run(seeds: Self.seeds)
      #expect(report.counts["phase: transferring → finished", default: 0] > 0)
    }
  }
#endif
