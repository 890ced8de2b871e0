#if SQLite
  import DownpipeCore
  import DownpipeSQLite
  @_spi(Ledger) import DownpipeTesting
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
        // One file for each world, which outlives the processes.
        OutsideLedger(
          SQLiteLedger(machine.keep("ledger") { "\(folder)/\(DownloadID())/ledger.sqlite" }), machine)
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
        let seeds: UInt64 = LongForm.count(12, long: 200)
        let report = try await simulation(in: folder).run(seeds: 0..<seeds)
        #expect(report.crashes > 0)
        #expect(report.counts["phase: transferring → finished", default: 0] > 0)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(files.count == Int(seeds) + report.repetitions)
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
#endif
