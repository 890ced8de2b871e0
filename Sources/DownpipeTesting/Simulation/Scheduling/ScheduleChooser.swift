/// How a simulation chooses the next of several jobs that could run.
public enum SchedulingStrategy: Sendable, Hashable, CustomStringConvertible {
  /// The job that has been ready for the longest time, as in a queue.
  case inOrder
  /// Each ready job with the same probability.
  case randomWalk
  /// PCT (Burckhardt and others, "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010):
  /// each task has a random priority, the first of them runs, and at some random steps the running task falls behind
  /// all others.
  ///
  /// A defect that needs `changes + 1` ordered events is found with a probability of at least 1/(n·kᶜʰᵃⁿᵍᵉˢ) for n tasks
  /// and k steps.
  case priorities(changes: Int)

  /// The name of the strategy.
  public var description: String {
    switch self {
    case .inOrder: "in order"
    case .randomWalk: "random walk"
    case .priorities(let changes): "PCT with \(changes) changes"
    }
  }
}

/// Chooses the next job by a strategy, or repeats recorded choices.
struct ScheduleChooser: Sendable {
  /// The most steps among which PCT spreads its changes of priority.
  private static let expectedSteps = 3_000

  private let strategy: SchedulingStrategy
  private var generator: SeededGenerator
  private var replayed: ArraySlice<UInt16>?
  /// The priority of each task, by its number; the largest runs first.
  private var priorities: [UInt64: UInt64] = [:]
  /// The steps at which PCT lowers the priority of the running task, in descending order.
  private var changes: [Int] = []
  private var lowest: UInt64
  private var step = 0
  /// The index that was chosen at each step, among the ready jobs in the order in which they became ready.
  private(set) var choices: [UInt16] = []

  init(_ strategy: SchedulingStrategy, seed: UInt64) {
    self.strategy = strategy
    generator = SeededGenerator(seed: seed)
    lowest = 0
    if case .priorities(let count) = strategy {
      changes = (0..<count).map { _ in Int.random(in: 1...Self.expectedSteps, using: &generator) }.sorted(by: >)
      lowest = UInt64(count)
    }
  }

  /// Repeats choices; after them the jobs run in order.
  init(replaying choices: [UInt16]) {
    self.init(.inOrder, seed: 0)
    replayed = choices[...]
  }

  /// Whether the tasks of the jobs have to be known.
  var needsTasks: Bool { if case .priorities = strategy { replayed == nil } else { false } }

  /// Chooses one of `count` ready jobs.
  ///
  /// - Parameter task: The number of the task of a ready job.
  mutating func choose(among count: Int, task: (Int) -> UInt64) -> Int {
    step += 1
    let index = index(among: count, task: task)
    choices.append(UInt16(clamping: index))
    return index
  }

  private mutating func index(among count: Int, task: (Int) -> UInt64) -> Int {
    if replayed != nil { return Int(replayed?.popFirst() ?? 0) % count }
    switch strategy {
    case .inOrder: return 0
    case .randomWalk: return count == 1 ? 0 : Int.random(in: 0..<count, using: &generator)
    case .priorities:
      var first = 0
      var highest: UInt64?
      for index in 0..<count {
        let priority = priority(of: task(index))
        if highest.map({ priority > $0 }) ?? true { (first, highest) = (index, priority) }
      }
      if let next = changes.last, step >= next {
        changes.removeLast()
        lowest -= 1
        priorities[task(first)] = lowest
      }
      return first
    }
  }

  private mutating func priority(of task: UInt64) -> UInt64 {
    if let known = priorities[task] { return known }
    // Above the priorities to which tasks fall.
    let priority = UInt64.random(in: 1_000...UInt64.max, using: &generator)
    priorities[task] = priority
    return priority
  }
}
