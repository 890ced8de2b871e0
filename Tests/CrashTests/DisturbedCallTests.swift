#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipePOSIX
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Synchronization
  import Testing

  @testable import DownpipeFiles

  /// The disk fails, or the process ends, at each call of the storage and the ledger. In no case a wrong file is
  /// published, and the next run completes the download.
  ///
  /// The end of a process is simulated: all calls fail from one number on. A downloader with a working disk then finds
  /// the folder as a process leaves it that was killed.
  @Suite(.endsHangs)
  struct DisturbedCallTests {
    typealias Setup = CrashBench.Setup

    static let setups = [Durability.process, .power].flatMap { durability in
      [true, false].map { Setup(durability: durability, isMoved: $0) }
    }

    static let allSetups =
      setups + [Durability.process, .power].map { Setup(durability: $0, isMoved: false, isPlain: true) }
      + [Durability.process, .power].map { Setup(durability: $0, isMoved: true, steps: .small) }
      + [Setup(durability: .process, isMoved: true, steps: .all)] + unpackings
      + [Setup.Server.coding, .changing].map { Setup(durability: .power, isMoved: false, server: $0) }

    #if Archive
      private static let unpackings = [Setup(durability: .process, isMoved: true, steps: .unpacking)]
    #else
      private static let unpackings: [Setup] = []
    #endif

    // MARK: One call fails

    @Test(arguments: allSetups, [FaultyDisk.Fault.broken, .full])
    func oneCallFails(_ setup: Setup, _ fault: FaultyDisk.Fault) async throws {
      let templates = try TemporaryFolder()
      let template = try await CrashBench.emptyLedger(in: templates)
      let calls = try await Self.callsOfUndisturbedRun(setup, template, .fail(.max, fault))
      await Sweep("\(fault), \(setup)", calls: calls, usually: 4).run { number, story in
        let bench = try CrashBench(setup, ledger: template)
        let pace = Pace()
        let disk = FaultyDisk(.fail(number, fault), pace: pace)
        defer { story.append(disk.hit.map { "\($0)" } ?? "nothing failed") }
        let watched = try WatchedFolder(bench.ledgerFolder, on: disk)
        try await withDeadline(CrashBench.limit) { try await Self.insist(bench, disk, pace) }
        watched.end()
        try await Self.checkFinished(bench)
      }
    }

    /// Completes the download, as a user does who restarts it after a failure.
    private static func insist(_ bench: CrashBench, _ disk: FaultyDisk, _ pace: Pace) async throws {
      let downloader = try await again { try await bench.start(disk, pace: pace, cut: 100_000) }
      let download = try await again { try await downloader.add(try bench.request()) }
      var isFinished = false
      while !isFinished {
        do {
          _ = try await download.value
          isFinished = true
        } catch {
          try Task.checkCancellation()
          try bench.check(isFinished: false)
          // The ledger may fail here, too. Then the failure is reported again.
          _ = try? await download.resume()
        }
      }
      try bench.check(isFinished: true)
      await downloader.shutdown(waitingAtMost: nil)
    }

    private static func again<Value>(_ body: () async throws -> Value) async throws -> Value {
      do { return try await body() } catch { return try await body() }
    }

    // MARK: The process dies

    @Test(arguments: allSetups)
    func theProcessEnds(_ setup: Setup) async throws {
      let templates = try TemporaryFolder()
      let template = try await CrashBench.emptyLedger(in: templates)
      let calls = try await Self.callsOfUndisturbedRun(setup, template, .nothing)
      var resumed = 0
      await Sweep("dead, \(setup)", calls: calls, usually: 10).run { number, story in
        let bench = try CrashBench(setup, ledger: template)
        let wasAdded = try await Self.die(bench, at: number, &story)
        if try await Self.recover(bench, wasAdded: wasAdded) > 0 { resumed += 1 }
      }
      #expect(resumed > 0 || setup.isPlain || setup.server == .changing, "every recovery began at zero")
    }

    /// Bytes and names that were not flushed are lost in any combination.
    @Test(arguments: allSetups.filter { $0.durability == .power }, Medium.Loss.allCases)
    func thePowerIsLost(_ setup: Setup, _ loss: Medium.Loss) async throws {
      let templates = try TemporaryFolder()
      let template = try await CrashBench.emptyLedger(in: templates)
      let calls = try await Self.callsOfUndisturbedRun(setup, template, .nothing)
      await Sweep("no power, \(loss), \(setup)", calls: calls, usually: 6).run { number, story in
        let bench = try CrashBench(setup, ledger: template)
        let medium = bench.medium()
        let wasAdded = try await Self.die(bench, at: number, medium: medium, &story)
        var generator = SeededGenerator(seed: Sweep.seed &+ UInt64(number))
        story += try medium.lose(loss, by: &generator)
        try await Self.recover(bench, wasAdded: wasAdded)
      }
    }

    /// The result of a step is found only if the name of its folder is on the medium.
    @Test func theNameOfTheWorkspaceIsFlushed() async throws {
      let folder = try TemporaryFolder()
      let calls = Watched<[String]>([])
      let system = FileSystem { call, path in
        calls.update { $0.append("\(call) \(path)") }
        return .proceed
      }
      let store = FileStore(folder.path, durability: .power, system: system)
      let workspace = try #require(try await store.workspace(PartialKey(id: "film", generation: 1)))
      let made = try #require(calls.value.lastIndex(of: "makeFolder \(workspace)"))
      #expect(calls.value[made...].contains { $0.hasPrefix("flushFolder") })
    }

    /// A loss of power with `Durability.process`: the partial loses its end, and the ledger does not know it. This must
    /// be detected as long as the file is incomplete.
    @Test(arguments: setups.filter { $0.durability == .process }, [true, false])
    func thePowerIsLostWithoutFlushes(_ setup: Setup, leavingZeros: Bool) async throws {
      let templates = try TemporaryFolder()
      let template = try await CrashBench.emptyLedger(in: templates)
      let calls = try await Self.callsOfUndisturbedRun(setup, template, .nothing)
      var losses = 0
      await Sweep("no power, \(leavingZeros ? "zeros" : "cut"), \(setup)", calls: calls, usually: 8)
        .run { number, story in
          let bench = try CrashBench(setup, ledger: template)
          let wasAdded = try await Self.die(bench, at: number, &story)
          let record = try await bench.record()
          if let record, record.phase != .finished, record.steps.artifact == nil {
            var generator = SeededGenerator(seed: Sweep.seed &+ UInt64(number))
            if let lost = try bench.losePartial(leavingZeros: leavingZeros, by: &generator) {
              story.append(lost)
              losses += record.checkpoint.ranges.isEmpty ? 0 : 1
            }
          }
          try await Self.recover(bench, wasAdded: wasAdded)
        }
      #expect(losses > 0, "no case was one")
    }

    /// A ledger whose creation was interrupted can be created again.
    @Test(arguments: setups.filter(\.isMoved), [true, false])
    func creatingTheLedgerIsInterrupted(_ setup: Setup, losesPower: Bool) async throws {
      let first = try CrashBench(setup, ledger: nil)
      let pace = Pace()
      let disk = FaultyDisk(pace: pace)
      let watched = try WatchedFolder(first.ledgerFolder, on: disk)
      await (try await first.start(disk, pace: pace)).shutdown(waitingAtMost: nil)
      watched.end()
      await Sweep("new ledger, \(losesPower ? "no power" : "dead"), \(setup)", calls: disk.count, usually: 4)
        .run { number, story in
          let bench = try CrashBench(setup, ledger: nil)
          let medium = losesPower ? bench.medium() : nil
          let wasAdded = try await Self.die(bench, at: number, medium: medium, &story)
          var generator = SeededGenerator(seed: Sweep.seed &+ UInt64(number))
          if let medium { story += try medium.lose(.some, by: &generator) }
          // After a loss of power, only a ledger with `.power` must have the record.
          try await Self.recover(bench, wasAdded: wasAdded && (!losesPower || setup.durability == .power))
        }
    }

    /// Runs until a call that is the last one.
    ///
    /// - Returns: whether the download was added.
    private static func die(
      _ bench: CrashBench, at number: Int, medium: Medium? = nil, _ story: inout [String]
    ) async throws -> Bool {
      let pace = Pace()
      let disk = FaultyDisk(.stop(number), pace: pace, medium: medium)
      defer { story.append(disk.hit.map { "dead at \($0)" } ?? "not dead") }
      let watched = try WatchedFolder(bench.ledgerFolder, on: disk)
      defer { watched.end() }
      return try await withDeadline(CrashBench.limit) {
        guard let downloader = try? await bench.start(disk, pace: pace, cut: 100_000) else { return false }
        let download = try? await downloader.add(try bench.request())
        if let download, !disk.isDead {
          await withTaskGroup { group in
            group.addTask { _ = try? await download.value }
            group.addTask { await disk.death() }
            await group.next()
            group.cancelAll()
          }
        }
        await downloader.shutdown(waitingAtMost: nil)
        return download != nil
      }
    }

    /// Completes the download after the end of a process.
    ///
    /// - Returns: the byte at which it resumed.
    @discardableResult
    private static func recover(_ bench: CrashBench, wasAdded: Bool) async throws -> Int64 {
      try bench.check(isFinished: false)
      let pace = Pace(start: Date(timeIntervalSince1970: 1_000_001_000))
      let disk = FaultyDisk(pace: pace)
      pace.hurry()
      let resumedFrom = try await withDeadline(CrashBench.limit) {
        let downloader = try await bench.start(disk, pace: pace)
        let known = try await downloader.download(CrashBench.id)
        if wasAdded, known == nil { throw Wrong("the record is lost") }
        if let known, case .finished = try await known.status.state { try bench.check(isFinished: true) }
        let download = if let known { known } else { try await downloader.add(try bench.request()) }
        do {
          _ = try await download.value
        } catch {
          throw Wrong("recovery ends with: \(error)")
        }
        let resumedFrom = try await download.status.resumedFrom
        await downloader.shutdown(waitingAtMost: nil)
        return resumedFrom
      }
      try await checkFinished(bench)
      let runs = bench.runs.load(ordering: .relaxed)
      // Once more than without a kill.
      if runs > 2 { throw Wrong("the code of the user was run \(runs) times") }
      return resumedFrom
    }

    // MARK: -

    private static func checkFinished(_ bench: CrashBench) async throws {
      try bench.check(isFinished: true)
      let record = try await bench.record()
      guard record?.phase == .finished else { throw Wrong("the record says \(String(describing: record?.phase))") }
    }

    /// The number of calls to disturb.
    private static func callsOfUndisturbedRun(
      _ setup: Setup, _ template: String?, _ plan: FaultyDisk.Plan
    ) async throws -> Int {
      let bench = try CrashBench(setup, ledger: template)
      let pace = Pace()
      let disk = FaultyDisk(plan, pace: pace)
      let watched = try WatchedFolder(bench.ledgerFolder, on: disk)
      try await withDeadline(CrashBench.limit) { try await insist(bench, disk, pace) }
      watched.end()
      try await checkFinished(bench)
      #expect(try bench.removals() == [])
      return disk.count
    }
  }
#endif
