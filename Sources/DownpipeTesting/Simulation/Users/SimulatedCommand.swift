public import DownpipeCore

/// What a simulated user does. Downloads are named by a number; their ids are `d0`, `d1` and so on.
public enum SimulatedCommand: Sendable, Hashable {
  /// Adds a download of a file of the world, or adds it again.
  ///
  /// - Parameters:
  ///   - number: The number of the download.
  ///   - file: The number of the file among all files of the world's servers; larger numbers begin again.
  ///   - priority: Its priority.
  ///   - after: The number of a download that has to finish before.
  ///   - with: What else the request asks for.
  case add(Int, file: Int, priority: Priority = .normal, after: Int? = nil, with: RequestOptions = [])
  /// Pauses a download.
  case pause(Int)
  /// Resumes a download.
  case resume(Int)
  /// Starts a download by hand.
  case start(Int, preempting: Preemption = .none)
  /// Restarts a download.
  case restart(Int)
  /// Asks whether a finished file has changed.
  case refresh(Int)
  /// Cancels a download.
  case cancel(Int)
  /// Deletes a finished file, and keeps its record.
  case discard(Int)
  /// Removes a download.
  case remove(Int, deletingFile: Bool)
  /// Changes the priority of a download.
  case prioritize(Int, Priority)
  /// Changes the URL of a download to that of another file.
  case redirect(Int, file: Int)
  /// Renames a download.
  case rename(Int)
  /// Verifies a finished file.
  case verify(Int)
  /// Pauses all downloads.
  case pauseAll
  /// Resumes all downloads.
  case resumeAll
  /// Restarts all downloads.
  case restartAll
  /// Asks whether any finished file has changed.
  case refreshAll
  /// Cancels all downloads.
  case cancelAll
  /// Removes all downloads.
  case removeAll
  /// Changes the priority of all downloads.
  case prioritizeAll(Priority)
  /// Suspends all downloads of the process, or ends that.
  case suspend(Bool)
  /// Opens or closes the gate of the process.
  case gate(isOpen: Bool)
  /// Replaces the limits of the process.
  case limit(concurrent: Int, perHost: Int, excess: Excess)
  /// Replaces another stage of the process by an equal one.
  case replaceStage(ReplacedStage)
  /// Replaces a file on its server by another version.
  case swapFile(Int)
  /// Reads statuses, counts and totals, and looks for orphans.
  case look
  /// Removes orphaned partials.
  case removeOrphans
  /// Watches the events of a download until they end.
  case watch(Int)
  /// Waits until the downloader is idle, at most for a minute.
  case waitUntilIdle
  /// Sets the machine's calendar, by this many seconds.
  case setDate(by: Int)
  /// Waits for a number of milliseconds.
  case wait(milliseconds: Int)
  /// Shuts the downloader down, and opens another one.
  case reopen

  /// A stage that users replace.
  public enum ReplacedStage: String, Sendable, Hashable, CaseIterable {
    /// The scheduling policy: by arrival.
    case scheduling
    /// The retry policy.
    case retry
    /// The source.
    case source
    /// The gate.
    case gate
  }
}

/// What users do in a simulation: how many there are, and how much they do.
public struct SimulatedWorkload: Sendable, Hashable {
  /// The most downloads.
  public var downloads = 5
  /// The most users of each process, who give commands at the same time.
  public var users = 3
  /// The most commands of each user.
  public var commands = 8
  /// Whether users do more than to add downloads and to wait.
  public var isBusy = true
  /// The commands of each user of the first process; `nil` if the seed chooses them. Other processes have no users then.
  public var scripts: [[SimulatedCommand]]?

  /// Creates a workload with up to 5 downloads and up to 3 users with up to 8 commands each.
  public init() {}

  /// A workload that only adds downloads, in a random order.
  public static func adding(_ count: Int) -> SimulatedWorkload {
    var workload = SimulatedWorkload()
    (workload.downloads, workload.users, workload.commands, workload.isBusy) = (count, 1, count, false)
    return workload
  }

  /// A workload of given commands, the same with each seed. Its users are those of the first process.
  ///
  /// ```swift
  /// let workload = SimulatedWorkload.scripted([[.add(0, file: 0), .wait(milliseconds: 500), .pause(0)], [.look]])
  /// ```
  /// - Parameter scripts: The commands of each user, which users give at the same time.
  public static func scripted(_ scripts: [[SimulatedCommand]]) -> SimulatedWorkload {
    var workload = SimulatedWorkload()
    workload.scripts = scripts
    return workload
  }
}

/// The commands of the users of one process; the first user's first.
typealias UserScripts = [[SimulatedCommand]]

extension SimulatedCommand: CustomStringConvertible {
  /// The command as Swift source, without default arguments.
  public var description: String {
    switch self {
    case .add(let number, let file, let priority, let after, let options):
      "add(\(number), file: \(file)" + (priority == .normal ? "" : ", priority: .init(rawValue: \(priority.rawValue))")
        + (after.map { ", after: \($0)" } ?? "") + (options.isEmpty ? "" : ", with: \(options)") + ")"
    case .pause(let number): "pause(\(number))"
    case .resume(let number): "resume(\(number))"
    case .start(let number, let preemption): "start(\(number), preempting: .\(preemption))"
    case .restart(let number): "restart(\(number))"
    case .refresh(let number): "refresh(\(number))"
    case .cancel(let number): "cancel(\(number))"
    case .discard(let number): "discard(\(number))"
    case .remove(let number, let deletingFile): "remove(\(number), deletingFile: \(deletingFile))"
    case .prioritize(let number, let priority): "prioritize(\(number), .init(rawValue: \(priority.rawValue)))"
    case .redirect(let number, let file): "redirect(\(number), file: \(file))"
    case .rename(let number): "rename(\(number))"
    case .verify(let number): "verify(\(number))"
    case .pauseAll: "pauseAll"
    case .resumeAll: "resumeAll"
    case .restartAll: "restartAll"
    case .refreshAll: "refreshAll"
    case .cancelAll: "cancelAll"
    case .removeAll: "removeAll"
    case .prioritizeAll(let priority): "prioritizeAll(.init(rawValue: \(priority.rawValue)))"
    case .suspend(let isSuspended): "suspend(\(isSuspended))"
    case .gate(let isOpen): "gate(isOpen: \(isOpen))"
    case .limit(let concurrent, let perHost, let excess):
      "limit(concurrent: \(concurrent), perHost: \(perHost), excess: .\(excess))"
    case .replaceStage(let stage): "replaceStage(.\(stage.rawValue))"
    case .swapFile(let file): "swapFile(\(file))"
    case .look: "look"
    case .removeOrphans: "removeOrphans"
    case .watch(let number): "watch(\(number))"
    case .waitUntilIdle: "waitUntilIdle"
    case .setDate(let seconds): "setDate(by: \(seconds))"
    case .wait(let milliseconds): "wait(milliseconds: \(milliseconds))"
    case .reopen: "reopen"
    }
  }
}

extension SimulatedWorkload {
  /// The commands of a seed, for each process and each user.
  func scripts(of world: SimulatedWorld, seed: UInt64) -> [UserScripts] {
    if let scripts { return (0..<world.processes).map { $0 == 0 ? scripts : [] } }
    var generator = SeededGenerator(seed: seed ^ 0x5C21_7750_0000_0000)
    return (0..<world.processes).map { process in
      if !isBusy {
        return process > 0 ? [] : [(0..<downloads).map { .add($0, file: $0) }.shuffled(using: &generator)]
      }
      let users = Int.random(in: 1...max(1, users), using: &generator)
      let downloads = Int.random(in: 1...max(1, downloads), using: &generator)
      return (0..<users).map { user in
        let count = Int.random(in: 1...max(1, commands), using: &generator)
        let rest = (0..<count).map { _ in command(world, downloads, &generator) }
        // Otherwise most commands would find nothing.
        return user == 0 && process == 0 ? (0..<downloads).map { add($0, world, &generator) } + rest : rest
      }
    }
  }

  private func add(_ number: Int, _ world: SimulatedWorld, _ generator: inout SeededGenerator) -> SimulatedCommand {
    let files = world.servers.reduce(0) { $0 + $1.files.count }
    return .add(
      number, file: Int.random(in: 0..<max(1, files), using: &generator),
      priority: [.normal, .normal, .high, .low].randomElement(using: &generator) ?? .normal,
      after: number > 0 && Int.random(in: 0..<8, using: &generator) == 0 ? number - 1 : nil,
      with: .random(using: &generator))
  }

  private func command(
    _ world: SimulatedWorld, _ downloads: Int, _ generator: inout SeededGenerator
  ) -> SimulatedCommand {
    let number = Int.random(in: 0..<downloads, using: &generator)
    let isOne = Bool.random(using: &generator)
    let file = Int.random(in: 0..<16, using: &generator)
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<14: return .pause(number)
    case 14..<28: return .resume(number)
    case 28..<32:
      return .start(number, preempting: [.none, .oldest, .lowestPriority].randomElement(using: &generator) ?? .none)
    case 32..<36: return .restart(number)
    case 36..<38: return .refresh(number)
    case 38..<41: return .cancel(number)
    case 41: return .discard(number)
    case 42..<45: return .remove(number, deletingFile: isOne)
    case 45..<50: return add(number, world, &generator)
    case 50..<52: return .prioritize(number, isOne ? .high : .low)
    case 52..<54: return .redirect(number, file: file)
    case 54..<56: return .rename(number)
    case 56: return .verify(number)
    case 57..<61: return .pauseAll
    case 61..<65: return .resumeAll
    case 65: return isOne ? .restartAll : .refreshAll
    case 66: return isOne ? .cancelAll : .removeAll
    case 67: return .prioritizeAll(isOne ? .high : .low)
    case 68..<71: return .suspend(isOne)
    case 71..<76: return .gate(isOpen: isOne)
    case 76..<80:
      return .limit(
        concurrent: Int.random(in: 1...4, using: &generator), perHost: Int.random(in: 1...3, using: &generator),
        excess: isOne ? .stops : .finishes)
    case 80..<82:
      return .replaceStage(SimulatedCommand.ReplacedStage.allCases.randomElement(using: &generator) ?? .retry)
    case 82..<84: return .swapFile(file)
    case 84: return .look
    case 85: return .removeOrphans
    case 86..<89: return .watch(number)
    case 89..<91: return .waitUntilIdle
    case 91 where world.dateJumps > .zero:
      let most = Int(world.dateJumps.components.seconds)
      return .setDate(by: Int.random(in: -most...most, using: &generator))
    case 92: return .reopen
    default: return .wait(milliseconds: isOne ? Int.random(in: 0...200, using: &generator) : 5_000)
    }
  }
}
