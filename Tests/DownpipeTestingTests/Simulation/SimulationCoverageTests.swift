@_spi(Ledger) @testable import DownpipeCore
@testable import DownpipeTesting
import HangLimit
import Testing

/// What simulations reach: each of the events that can happen, at least once.
@Suite(.endsHangs)
struct SimulationCoverageTests {
  /// The seeds of a round, and the most rounds: what is rare needs many seeds, in most engines fewer.
  private static let (seedsOfARound, rounds) = (UInt64(20), UInt64(12))

  /// The worlds of the tests, and some in which rare events are frequent.
  private static var simulations: [Simulation] {
    let standard = SimulatedWorlds.allCases.map { Simulation($0.world) }
    // Two owners, whose leases end early for each other when the calendar jumps.
    var sharing = SimulatedWorld.hostile
    (sharing.processes, sharing.ledgerFailures, sharing.dateJumps) = (2, 0.1, .seconds(7200))
    var full = SimulatedWorld.faulty
    full.diskSpace = 800_000
    for index in full.servers.indices {
      for fault in [ServerFault.wrongRange, .wrongTotal, .refusedRange, .swappedFile] {
        full.servers[index].faults[fault] = 0.2
      }
    }
    // Servers that often fall silent.
    var silent = SimulatedWorld.calm
    for index in silent.servers.indices { silent.servers[index].faults[.stall] = 0.2 }
    // Steps that often make mistakes.
    var careless = SimulatedWorld.calm
    careless.stepFailures = 0.3
    return standard
      + [Simulation(sharing), Simulation(full), Simulation(silent), Simulation(careless), wholeBytesHandedOver]
  }

  /// A download whose step fails hands all its bytes over, and the server sends the whole file when it is asked for a part.
  private static var wholeBytesHandedOver: Simulation {
    var world = SimulatedWorld.calm
    world.stepFailures = 1
    for index in world.servers.indices { world.servers[index].faults[.ignoredRange] = 1 }
    return Simulation(
      world,
      workload: .scripted([
        [.add(0, file: 0), .wait(milliseconds: 5_000), .pause(0), .handOver(0, to: 1), .wait(milliseconds: 5_000)]
      ]))
  }

  /// Runs the seeds of one round with all simulations.
  private static func report(ofRound round: UInt64) async -> SimulationReport {
    await withTaskGroup(of: SimulationReport.self) { group in
      for simulation in simulations {
        group.addTask {
          var report = SimulationReport()
          var simulation = simulation
          (simulation.shrinkingAttempts, simulation.seedsBetweenRepetitions) = (0, 0)
          for seed in (round * seedsOfARound)..<((round + 1) * seedsOfARound) {
            // A violation is the concern of other tests.
            if let one = try? await simulation.run(seed: seed) { report.add(one) }
          }
          return report
        }
      }
      return await group.reduce(into: SimulationReport()) { $0.add($1) }
    }
  }

  @Test(
    "everything that can happen does happen",
    .enabled(if: LongForm.isSelected, "it needs many seeds: .ci/long properties"))
  func everythingHappens() async throws {
    var missing = Self.expected
    for round in 0..<Self.rounds where !missing.isEmpty {
      let counts = await Self.report(ofRound: round).counts
      missing = missing.filter { counts[$0, default: 0] == 0 }
    }
    #expect(missing.isEmpty, "not reached: \(missing.sorted())")
  }

  private static var expected: Set<String> {
    Set(transitions + stops + faults + commands + plans + failures).subtracting(rare)
  }

  // MARK: What there is

  /// The steps of the lifecycle, as changes of a record in the ledger.
  private static var transitions: [String] {
    let steps = DownloadState.Phase.allCases.flatMap { phase in
      Lifecycle.Event.allCases.compactMap { event in
        Lifecycle.next(phase, event).map { "phase: \(phase.rawValue) → \($0.rawValue)" }
      }
    }
    // Two events in one save: the last byte, and the end of the steps.
    return steps + ["phase: transferring → finished"]
  }

  private static var stops: [String] {
    let reasons: [StopReason] = [
      .gate(id: "", text: ""), .limit(id: "", text: ""), .preempted(by: ""), .pause, .pauseAll, .restart, .cancel,
      .remove, .shutdown, .suspend, .changed, .lostLease,
      .leaseEnds, .tooSlow(DownloadError(.timedOut, "")),
    ]
    return reasons.map { "stop: \($0.name)" }
  }

  private static var faults: [String] {
    ServerFault.allCases.map { "fault: \($0.rawValue)" }
      + [
        "fault: disk", "fault: full disk", "fault: ledger", "network: away", "crash: kill", "crash: powerLoss",
        "fault: step, early", "fault: step, late", "fault: step, no output", "fault: step, wrong kind",
        "fault: step, no output, outside of the workspace", "fault: blocking stage",
      ]
  }

  /// Each case once. `caseIsListed` does not compile when there is another one.
  private static var commands: [String] {
    let all: [SimulatedCommand] = [
      .add(0, file: 0), .pause(0), .resume(0), .start(0), .restart(0), .refresh(0), .cancel(0), .discard(0),
      .remove(0, deletingFile: true), .prioritize(0, .high), .redirect(0, file: 0), .rename(0), .verify(0),
      .addTogether([0], file: 0), .bulk(.pause, of: .host(0)), .repair(0), .handOver(0, to: 1), .change(0, .size),
      .awaitFile(0), .pauseAll, .resumeAll, .restartAll, .refreshAll, .cancelAll, .removeAll, .prioritizeAll(.high),
      .suspend(true), .gate(isOpen: true), .limit(concurrent: 1, perHost: 1, excess: .stops), .replaceStage(.gate),
      .removeStage(.gate, milliseconds: 0), .set(bytesPerSecond: nil, connections: 1), .swapFile(0), .look,
      .removeOrphans, .watch(0), .watchAll, .waitUntilIdle, .setDate(by: 0), .wait(milliseconds: 0), .reopen,
    ]
    return all.filter(caseIsListed).map { "command: \($0.name)" }
      + SimulatedCommand.BulkOperation.allCases.map { "bulk: \($0.rawValue)" }
  }

  private static func caseIsListed(_ command: SimulatedCommand) -> Bool {
    switch command {
    case .add, .pause, .resume, .start, .restart, .refresh, .cancel, .discard, .remove, .prioritize, .redirect, .rename,
      .verify, .addTogether, .bulk, .repair, .handOver, .change, .awaitFile, .pauseAll, .resumeAll, .restartAll,
      .refreshAll, .cancelAll, .removeAll, .prioritizeAll, .suspend, .gate, .limit, .replaceStage, .removeStage, .set,
      .swapFile, .look, .removeOrphans, .watch, .watchAll, .waitUntilIdle, .setDate, .wait, .reopen:
      true
    }
  }

  /// The decisions about replies, with the reasons that the servers' faults cause.
  private static let plans = [
    "plan: first bytes", "plan: append", "plan: append after comparing",
    "plan: replace, contentChanged", "plan: reject, httpStatus", "plan: reject, contentChanged",
    "plan: reject, lengthMismatch", "plan: reject, rangeNotSatisfiable", "plan: reject, rangeRefused",
    "plan: reject, unproven", "plan: reject, wrongRange", "partial: exported", "partial: imported",
    "transfer: one URL twice", "transfer: several connections", "transfer: several servers",
  ]

  /// The codes of failures that the worlds cause. Others need what they do not have: TLS and host names, content codings,
  /// redirects without end, expiring links, pieces, other programs that change files, requests or pipelines that are wrong.
  private static let failures = [
    DownloadError.Code.network, .offline, .timedOut, .httpStatus, .contentChanged, .sizeChanged, .lengthMismatch,
    .digestMismatch, .noSpace, .storage, .processing, .ledger,
  ].map { "failure: \($0.rawValue)" }

  // MARK: What is not expected

  /// What happens in too few seeds to expect it in these, about one of some thousands.
  private static let rare: Set<String> = [
    // The whole file has to come for a range, and all its bytes have to be on disk, with nothing that proves them.
    "plan: reject, unproven",
    // The results of steps are saved without the phase, so that the ledger hardly ever learns of `processing`.
    "phase: processing → paused", "phase: processing → cancelled", "phase: processing → waiting",
    "phase: processing → failed", "phase: processing → finished", "phase: processing → transferring",
    "phase: transferring → processing",
    // A lease in memory ends with its owner only: it is lost if a removal or another start takes effect although it fails.
    "stop: lostLease", "stop: leaseEnds",
    // A file of another size is fetched from the start at once. Only a second change in the same attempt is a failure.
    "failure: sizeChanged",
  ]
}
