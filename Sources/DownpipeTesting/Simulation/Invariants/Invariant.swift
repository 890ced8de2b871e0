@_spi(Ledger) public import DownpipeCore
public import Foundation

/// What must hold in every simulation, at certain moments; see ``Simulation/invariants``.
///
/// ```swift
/// let fair = Invariant("no download waits for more than an hour", .atRest) { view in
///   view.records.first { $0.phase == .waiting && view.date.timeIntervalSince($0.createdAt) > 3600 }
///     .map { "\($0.id) waits since \($0.createdAt)" }
/// }
/// ```
public struct Invariant: Sendable {
  /// The name of an invariant.
  public struct Name: Sendable, Hashable, CustomStringConvertible {
    /// A sentence that is true as long as the invariant holds.
    public let sentence: String

    init(_ sentence: String) { self.sentence = sentence }

    /// The sentence.
    public var description: String { sentence }
  }

  /// When an invariant is checked.
  public enum Moment: Sendable, Hashable {
    /// After each job.
    case everyStep
    /// When no job can run, before time passes.
    case atRest
    /// When all commands and faults have ended, and nothing is left to do.
    case atEnd
  }

  /// The name.
  public let name: Name
  /// When it is checked.
  public let moment: Moment
  /// Returns what is wrong; `nil` if the invariant holds. Those of the simulation itself have none: they are checked
  /// where the events happen.
  let check: (@Sendable (SimulationView) -> String?)?

  /// Creates an invariant.
  ///
  /// - Parameters:
  ///   - sentence: The name, a sentence that is true as long as the invariant holds.
  ///   - moment: When it is checked.
  ///   - check: Returns what is wrong; `nil` if the invariant holds.
  public init(
    _ sentence: String, _ moment: Moment, _ check: @escaping @Sendable (SimulationView) -> String?
  ) {
    name = Name(sentence)
    self.moment = moment
    self.check = check
  }

  private init(_ name: Name, _ moment: Moment) {
    self.name = name
    self.moment = moment
    check = nil
  }

  /// The invariants that hold for every pipeline of sound stages.
  public static let standard: [Invariant] = [
    Invariant(.wholeVersions, .everyStep), Invariant(.claims, .everyStep), Invariant(.limits, .everyStep),
    Invariant(.gates, .atRest), Invariant(.oneWriter, .everyStep), Invariant(.refetching, .everyStep),
    Invariant(.lifecycle, .everyStep), Invariant(.dueTimes, .everyStep),
    Invariant(.machineFaults, .everyStep),
    Invariant(.lastState, .atEnd), Invariant(.commandOrder, .atEnd), Invariant(.commandResult, .everyStep),
    Invariant(.idle, .everyStep), Invariant(.shutdown, .atRest), Invariant(.liveness, .atEnd),
    Invariant(.stepInputs, .everyStep), Invariant(.bookkeeping, .atEnd), Invariant(.determinism, .everyStep),
    Invariant(.response, .everyStep),
  ]
}

extension Invariant.Name {
  /// A finished file is a whole version of a file of its request, and has the expected digest. Checked when it is
  /// published, and at the end.
  public static let wholeVersions = Self("a finished file is one whole version of the requested file")
  /// Checked with each save of the ledger, and when a process starts.
  public static let claims = Self("the ledger claims no bytes that the disk has not")
  /// Checked with each lease.
  public static let limits = Self("no download starts beyond the limits")
  /// Checked whenever no job can run.
  public static let gates = Self("nothing is transferred while a gate is closed or all downloads are suspended")
  /// Checked when a transfer begins, for other processes; and when a partial is opened, for the same process.
  public static let oneWriter = Self("a download is written by one owner at a time")
  /// Checked with each chunk that a download receives.
  ///
  /// The bytes that a download has received are on disk and in the ledger, so that it receives them a second time only
  /// for a reason:
  /// - Each request may repeat 64 KiB, which are compared with those on disk, and another 64 KiB where it meets the bytes
  ///   of another connection. Each further connection may cost 128 KiB if the transfer stops before they were compared.
  /// - If a server has not sent a range that it was asked for, or another one has answered, its replies may be whole
  ///   files, and all bytes behind a gap may be received again.
  /// - The death of a process may cost the bytes since the last checkpoint: those between two checkpoints, and a chunk for
  ///   each connection. While a disk or a ledger is slow, they may be any number.
  /// - Everything may be received again after a command that starts the download again or asks for another file, when the
  ///   server has another version, when the bytes were proved wrong, and after a failure of the disk or the ledger.
  ///
  /// A download that was stopped in any other way, by a pause, a gate, a failure of the network or a shutdown, goes on
  /// where it was.
  public static let refetching = Self("bytes are received twice only for a reason")
  /// Checked with each change of the ledger, for the phase of each changed record.
  public static let lifecycle = Self("states follow the lifecycle")
  /// Checked with each lease, by the clock of the world, unless the calendar was set.
  public static let dueTimes = Self("no download starts before it is due")
  /// Checked with each change of the ledger: a download that has met a fault of a machine waits as before the attempt.
  public static let machineFaults = Self("a fault of a machine counts no attempt and fails no download")
  /// Checked for each watcher at the end.
  public static let lastState = Self("the last state that a watcher hears of is the state of the download")
  /// Checked when all commands have returned: the last effective command for a download determines its state.
  public static let commandOrder = Self("commands take effect in the order of their calls")
  /// Checked for each command by its result and those of the commands before it.
  public static let commandResult = Self("what a command returns is true")
  /// Checked when `waitUntilIdle` returns, by the records of the ledger.
  public static let idle = Self("waitUntilIdle returns only when nothing runs or waits")
  /// Checked when nothing is left to do after a shutdown.
  public static let shutdown = Self("nothing runs, is open or waits after a shutdown")
  /// Checked when the storage removes what a step has worked on.
  public static let stepInputs = Self("no input of a step is removed before its output was seen")
  /// Checked at the end.
  public static let liveness = Self("everything finishes when the faults have ended")
  /// Checked at the end, for each downloader.
  public static let bookkeeping = Self("no bookkeeping is left of finished work")
  /// Checked when a job arrives, and by simulations that run twice.
  public static let determinism = Self("the same seed has the same history")
  /// Checked for each command. Expected are refusals, and failures of ledger and disk in worlds that have them.
  public static let response = Self("no call throws an unexpected error")
}

/// What an ``Invariant`` sees of a simulated world.
public struct SimulationView: Sendable {
  /// The virtual time.
  public let time: Duration
  /// The date of the machine.
  public let date: Date
  /// The records as the ledger has them, in the order in which the downloads were added first.
  @_spi(Ledger) public let records: [DownloadRecord]
  /// The downloads whose bodies are being received, with one entry for each connection.
  public let transfers: [DownloadID]
}
