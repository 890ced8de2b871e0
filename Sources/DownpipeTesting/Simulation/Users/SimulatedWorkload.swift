import DownpipeCore

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
        let rest = (0..<count).flatMap { _ in scene(world, downloads, &generator) }
        // Otherwise most commands would find nothing.
        return user == 0 && process == 0 ? additions(downloads, world, &generator) + rest : rest
      }
    }
  }

  /// Adds each download once; some of them have the file of the one before.
  private func additions(
    _ downloads: Int, _ world: SimulatedWorld, _ generator: inout SeededGenerator
  ) -> [SimulatedCommand] {
    var last: Int?
    return (0..<downloads).map { number in
      let isDuplicate = Int.random(in: 0..<4, using: &generator) == 0
      let command = add(number, file: isDuplicate ? last : nil, world, &generator)
      if case .add(_, let file, _, _, _) = command { last = file }
      return command
    }
  }

  /// - Parameter file: The number of the file; any file by default.
  private func add(
    _ number: Int, file: Int? = nil, _ world: SimulatedWorld, _ generator: inout SeededGenerator
  ) -> SimulatedCommand {
    let files = world.servers.reduce(0) { $0 + $1.files.count }
    return .add(
      number, file: file ?? Int.random(in: 0..<max(1, files), using: &generator),
      priority: [.normal, .normal, .high, .low].randomElement(using: &generator) ?? .normal,
      after: number > 0 && Int.random(in: 0..<8, using: &generator) == 0 ? number - 1 : nil,
      with: .random(using: &generator))
  }

  /// A command, or some that belong together.
  private func scene(
    _ world: SimulatedWorld, _ downloads: Int, _ generator: inout SeededGenerator
  ) -> [SimulatedCommand] {
    let number = Int.random(in: 0..<downloads, using: &generator)
    let isOne = Bool.random(using: &generator)
    let file = Int.random(in: 0..<16, using: &generator)
    if Int.random(in: 0..<6, using: &generator) == 0 {
      return rare(world, number, (0..<downloads).filter { _ in Bool.random(using: &generator) }, &generator)
    }
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<12: return [.pause(number)]
    case 12..<24: return [.resume(number)]
    case 24..<28:
      return [.start(number, preempting: [.none, .oldest, .lowestPriority].randomElement(using: &generator) ?? .none)]
    case 28..<32: return [.restart(number)]
    case 32..<34: return [.refresh(number)]
    case 34..<37: return [.cancel(number)]
    case 37: return [.discard(number)]
    case 38..<41: return [.remove(number, deletingFile: isOne)]
    case 41..<46: return [add(number, world, &generator)]
    case 46..<48: return [.prioritize(number, isOne ? .high : .low)]
    case 48..<50: return [.redirect(number, file: file)]
    case 50..<52: return [.rename(number)]
    case 52: return [.verify(number)]
    case 53..<57: return [.pauseAll]
    case 57..<61: return [.resumeAll]
    case 61: return [isOne ? .restartAll : .refreshAll]
    case 62: return [isOne ? .cancelAll : .removeAll]
    case 63: return [.prioritizeAll(isOne ? .high : .low)]
    case 64..<67: return closed(isOne, .suspend(true), .suspend(false), &generator)
    case 67..<73: return closed(isOne, .gate(isOpen: false), .gate(isOpen: true), &generator)
    case 73..<77:
      return [
        .limit(
          concurrent: Int.random(in: 1...4, using: &generator), perHost: Int.random(in: 1...3, using: &generator),
          excess: isOne ? .stops : .finishes)
      ]
    case 77..<79:
      return [.replaceStage(SimulatedCommand.ReplacedStage.allCases.randomElement(using: &generator) ?? .retry)]
    case 79..<81: return [.swapFile(file)]
    case 81: return [.look]
    case 82: return [.removeOrphans]
    case 83..<86: return [.watch(number)]
    case 86..<88: return [.waitUntilIdle]
    case 88 where world.dateJumps > .zero:
      let most = Int(world.dateJumps.components.seconds)
      return [.setDate(by: Int.random(in: -most...most, using: &generator))]
    case 89: return [.reopen]
    case 90..<98: return [wait(&generator)]
    default: return [.wait(milliseconds: 5_000)]
    }
  }

  /// A command that users give less often.
  ///
  /// - Parameters:
  ///   - number: One download.
  ///   - numbers: Some downloads.
  private func rare(
    _ world: SimulatedWorld, _ number: Int, _ numbers: [Int], _ generator: inout SeededGenerator
  ) -> [SimulatedCommand] {
    let time = Int.random(in: 0...600, using: &generator)
    let isOne = Bool.random(using: &generator)
    func random<Value: CaseIterable>(_ type: Value.Type) -> Value? { type.allCases.randomElement(using: &generator) }
    switch Int.random(in: 0..<21, using: &generator) {
    case 0..<2: return [.addTogether(numbers.isEmpty ? [number] : numbers, file: time % 16)]
    case 2..<9:
      let selections: [SimulatedCommand.BulkSelection] = [
        .numbers(numbers), .numbers(numbers), .tag(isOdd: isOne), .tag(isOdd: isOne), .host(time),
        .phase(random(DownloadState.Phase.self) ?? .waiting),
      ]
      guard let operation = random(SimulatedCommand.BulkOperation.self),
        let selection = selections.randomElement(using: &generator)
      else { return [] }
      return operation == .resumeTogether
        ? [.pauseAll, .bulk(operation, of: selection)] : [.bulk(operation, of: selection)]
    case 9: return [.repair(number)]
    case 10..<12:
      return [.wait(milliseconds: time), .pause(number), .handOver(number, to: isOne ? number + 1 : number + 8)]
    case 12..<15: return [.change(number, random(SimulatedCommand.RequestChange.self) ?? .destination)]
    case 15: return [.awaitFile(number)]
    case 16: return [.removeStage(random(SimulatedCommand.RemovedStage.self) ?? .rate, milliseconds: time)]
    case 17..<19:
      return [
        .set(
          bytesPerSecond: isOne ? 100_000 + time * 1_000 : nil, connections: Int.random(in: 1...4, using: &generator))
      ]
    case 19: return [.watchAll]
    // The same file under another id.
    default:
      return [add(number, file: time % 16, world, &generator), add(number + 8, file: time % 16, world, &generator)]
    }
  }

  /// Closes something while downloads run, and sometimes opens it again: what runs must stop at once.
  private func closed(
    _ opens: Bool, _ close: SimulatedCommand, _ open: SimulatedCommand, _ generator: inout SeededGenerator
  ) -> [SimulatedCommand] {
    [wait(&generator), close] + (opens ? [wait(&generator), open] : [])
  }

  /// A wait of about the time of a transfer.
  private func wait(_ generator: inout SeededGenerator) -> SimulatedCommand {
    .wait(milliseconds: Int.random(in: 0...600, using: &generator))
  }
}
