import HangLimit
import Synchronization
import Testing

@testable import DownpipeCore

/// A value under a lock, and tasks that wait for it.
@Suite(.endsHangs)
struct MonitorTests {
  /// A monitor that several tasks share, and the order in which they went on.
  private final class Shared: Sendable {
    let monitor = Monitor(0)
    let order = Mutex<[Int]>([])

    func note(_ number: Int) { order.withLock { $0.append(number) } }

    /// Returns when a number of tasks wait.
    func waiting(_ count: Int) async {
      while monitor.waiting != count { await Task.yield() }
    }

    /// Starts a task that waits for the value to reach a bound, and returns when it waits.
    func waiter(
      _ number: Int, atLeast bound: Int, on executor: SerialJobs? = nil
    ) async -> Task<Void, any Error> {
      let count = monitor.waiting
      let task = Task(executorPreference: executor) { [self] in
        try await monitor.wait { $0 >= bound }
        note(number)
      }
      await waiting(count + 1)
      return task
    }
  }

  private let shared = Shared()

  @Test func aConditionThatHoldsDoesNotWait() async throws {
    try await shared.monitor.wait { $0 == 0 }
    await shared.monitor.waitThroughCancellation { $0 == 0 }
    #expect(shared.monitor.waiting == 0)
  }

  @Test func changesReturnTheirResultsAndThrowTheirErrors() {
    #expect(
      shared.monitor.update {
        $0 += 2; return $0 * 10
      } == 20)
    #expect(shared.monitor.value == 2 && shared.monitor.read { $0 + 1 } == 3)
    #expect(throws: DownloadError.self) {
      try shared.monitor.update { _ in throw DownloadError(.network, "lost") }
    }
    #expect(shared.monitor.value == 2)
  }

  @Test("only the tasks whose condition holds go on")
  func conditions() async throws {
    let first = await shared.waiter(1, atLeast: 2)
    let second = await shared.waiter(2, atLeast: 1)
    shared.monitor.update { $0 = 1 }
    try await second.value
    #expect(shared.monitor.waiting == 1)
    shared.monitor.update { $0 = 2 }
    try await first.value
    #expect(shared.order.withLock { $0 } == [2, 1])
  }

  @Test("tasks go on in the order of their arrival, whichever change resumes them")
  func order() async throws {
    let executor = SerialJobs()
    var tasks: [Task<Void, any Error>] = []
    for number in 0..<20 { tasks.append(await shared.waiter(number, atLeast: number % 2 + 1, on: executor)) }
    shared.monitor.update { $0 = 1 }
    await executor.runReadyJobs()
    shared.monitor.update { $0 = 2 }
    for task in tasks { try await task.value }
    let expected = (0..<20).filter { $0.isMultiple(of: 2) } + (0..<20).filter { !$0.isMultiple(of: 2) }
    #expect(shared.order.withLock { $0 } == expected)
  }

  @Test("a cancelled task gives up its place, and the others keep theirs")
  func cancellation() async throws {
    var tasks: [Task<Void, any Error>] = []
    for number in 1...3 { tasks.append(await shared.waiter(number, atLeast: 1)) }
    tasks[1].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[1].value }
    #expect(shared.monitor.waiting == 2)
    shared.monitor.update { $0 = 1 }
    try await tasks[0].value
    try await tasks[2].value
    #expect(shared.monitor.waiting == 0)
  }

  @Test("a task that was cancelled before does not wait")
  func earlyCancellation() async {
    for bound in [0, 1] {
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        try await shared.monitor.wait { $0 >= bound }
      }
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    #expect(shared.monitor.waiting == 0)
  }

  @Test("a wait through cancellation ends with its condition")
  func waitThroughCancellation() async {
    let task = Task {
      await shared.monitor.waitThroughCancellation { $0 == 1 }
      shared.note(1)
    }
    await shared.waiting(1)
    task.cancel()
    #expect(shared.monitor.waiting == 1)
    shared.monitor.update { $0 = 1 }
    await task.value
    #expect(shared.order.withLock { $0 } == [1] && shared.monitor.waiting == 0)
  }

  @Test("no wake-up is lost when changes, waits and cancellations meet")
  func races() async throws {
    for round in 1...300 {
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for _ in 0..<4 {
          group.addTask {
            do { try await shared.monitor.wait { $0 >= round } } catch { return false }
            return true
          }
        }
        group.addTask {
          shared.monitor.update { $0 += 1 }
          return true
        }
        if round % 3 == 0 { group.cancelAll() }
        for try await hasHeld in group where round % 3 != 0 { #expect(hasHeld) }
      }
      #expect(shared.monitor.waiting == 0)
    }
    #expect(shared.monitor.value == 300)
  }

  @Test("conditions are released with their waits")
  func leaks() async throws {
    final class Token: Sendable {}
    weak var weakToken: Token?
    do {
      let token = Token()
      weakToken = token
      let kept = Task { [shared] in try await shared.monitor.wait { value in withExtendedLifetime(token) { value > 0 } }
      }
      await shared.waiting(1)
      kept.cancel()
      _ = await kept.result
    }
    while weakToken != nil { await Task.yield() }
    #expect(shared.monitor.waiting == 0)
  }
}
