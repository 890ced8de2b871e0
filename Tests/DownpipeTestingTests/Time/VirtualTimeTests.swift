import Dispatch
import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct VirtualTimeTests {
  @Test func standsStillUntilItIsMoved() {
    let start = Date(timeIntervalSince1970: 5)
    let time = VirtualTime(date: start)
    #expect(time.now == .zero)
    #expect(time.date == start)
    time.advance(by: .milliseconds(1500))
    #expect(time.now == .milliseconds(1500))
    #expect(time.date == start.addingTimeInterval(1.5))
  }

  @Test func calendarJumpsWakeNoSleepers() async throws {
    let time = VirtualTime(date: Date(timeIntervalSince1970: 100))
    let sleeper = Task { try await time.sleep(for: .seconds(1)) }
    await time.sleepers(atLeast: 1)
    time.jumpDate(by: .seconds(-50))
    #expect(time.date == Date(timeIntervalSince1970: 50))
    #expect(time.now == .zero)
    #expect(time.pendingSleeps == [.seconds(1)])
    time.advance(by: .seconds(1))
    try await sleeper.value
  }

  @Test func wakesOnlySleepersThatAreDue() async throws {
    let time = VirtualTime()
    let early = Task { try await time.sleep(for: .seconds(2)) }
    let late = Task { try await time.sleep(for: .seconds(3)) }
    await time.sleepers(atLeast: 2)
    time.advance(by: .milliseconds(1999))
    #expect(time.pendingSleeps == [.milliseconds(1), .milliseconds(1001)])
    time.advance(by: .milliseconds(1))
    try await early.value
    #expect(time.pendingSleeps == [.seconds(1)])
    time.advance(by: .seconds(10))
    try await late.value
    #expect(time.pendingSleeps.isEmpty)
  }

  @Test func sleepersAreSortedByDueTimeThenByArrival() async throws {
    let time = VirtualTime()
    let woken = Watched<[Int]>([])
    // One queue for all tasks, so that they run in the order of waking. An actor would not do: a woken task passes
    // through the shared threads before it returns to its actor.
    let queue = OneQueue()
    var tasks: [Task<Void, any Error>] = []
    for (index, seconds) in [3, 1, 2, 1].enumerated() {
      tasks.append(
        Task(executorPreference: queue) {
          try await time.sleep(for: .seconds(seconds))
          woken.update { $0.append(index) }
        })
      await time.sleepers(atLeast: index + 1)
    }
    // The last task is registered as a sleeper a moment before it is suspended. Woken in that moment it would run on.
    await queue.drain()
    time.advance(by: .seconds(5))
    for task in tasks { try await task.value }
    #expect(woken.value == [1, 3, 2, 0])
  }

  @Test func noSleepWithoutAnInterval() async throws {
    let time = VirtualTime()
    try await time.sleep(for: .zero)
    try await time.sleep(for: .seconds(-1))
    #expect(time.pendingSleeps.isEmpty)
  }

  @Test func cancellingEndsASleep() async throws {
    let time = VirtualTime()
    let sleeper = Task { try await time.sleep(for: .seconds(1)) }
    await time.sleepers(atLeast: 1)
    sleeper.cancel()
    await #expect(throws: CancellationError.self) { try await sleeper.value }
    #expect(time.pendingSleeps.isEmpty)
  }

  @Test func aCancelledTaskDoesNotSleep() async throws {
    let time = VirtualTime()
    let sleeper = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await time.sleep(for: .seconds(1))
    }
    await #expect(throws: CancellationError.self) { try await sleeper.value }
    #expect(time.pendingSleeps.isEmpty)
  }

  @Test func cancellingEndsAWait() async {
    let time = VirtualTime()
    let waiter = Task { await time.sleepers(atLeast: 1) }
    let mover = Task { await time.advanceToNextSleeper() }
    waiter.cancel()
    mover.cancel()
    await waiter.value
    #expect(await mover.value == .zero)
  }

  @Test func waitsForASleepOfAnInterval() async throws {
    let time = VirtualTime()
    let waiter = Task { await time.sleeper(dueIn: .seconds(7)) }
    let sleepers = [5, 7].map { seconds in Task { try await time.sleep(for: .seconds(seconds)) } }
    await waiter.value
    #expect(time.pendingSleeps.contains(.seconds(7)))
    await time.sleepers(atLeast: 2)
    time.advance(by: .seconds(7))
    for sleeper in sleepers { try await sleeper.value }
  }

  @Test("a task whose instant has passed does not sleep", arguments: [Duration.zero, .seconds(1), .seconds(10)])
  func doesNotSleepPastItsInstant(by late: Duration) async throws {
    let time = VirtualTime()
    let instant = time.now + .seconds(10)
    time.advance(by: .seconds(9.9))
    time.advance(by: .seconds(0.1))
    time.advance(by: late)
    try await time.sleep(until: instant)
    try await time.sleep(until: .zero)
    #expect(time.pendingSleeps.isEmpty)
  }

  @Test func whatIsLeftOfALateSleepIsSlept() async throws {
    let time = VirtualTime()
    let instant = time.now + .seconds(10)
    time.advance(by: .seconds(9.9))
    let sleeper = Task { try await time.sleep(until: instant) }
    await time.sleeper(dueIn: .seconds(0.1))
    time.advance(by: .seconds(0.1))
    try await sleeper.value
  }

  @Test(
    "ten tenths of a second are a second, although a tenth is not a binary fraction", arguments: [0.1, 0.3, 0.7, 1.1])
  func smallStepsAddUp(step: Double) async throws {
    let start = Date(timeIntervalSince1970: 1_000_000_000)
    let time = VirtualTime(date: start)
    let sleeper = Task { try await time.sleep(until: .milliseconds(Int(step * 10_000))) }
    await time.sleepers(atLeast: 1)
    for _ in 0..<10 { time.advance(by: .seconds(step)) }
    try await sleeper.value
    #expect(time.now == .milliseconds(Int(step * 10_000)))
    #expect(time.date == start.addingTimeInterval(step * 10))
  }

  @Test("sleeper(dueIn:) ignores the timers of the downloader itself")
  func housekeepingIsOverlooked() async throws {
    let time = VirtualTime()
    let own: [SleepPurpose] = [.lease, .progress, .checkpoint, .room, .changes]
    let sleepers = own.map { purpose in Task { try await time.sleep(for: .seconds(30), purpose: purpose) } }
    await time.sleepers(atLeast: own.count)
    let found = Watched(0)
    let waiter = Task {
      await time.sleeper(dueIn: .seconds(30))
      found.update { $0 = time.pendingSleeps.count }
    }
    for purpose in own {
      #expect(purpose.isHousekeeping)
      await time.sleeper(dueIn: .seconds(30), purpose: purpose)
    }
    let retry = Task { try await time.sleep(for: .seconds(30), purpose: .dueTime) }
    await waiter.value
    #expect(found.value == own.count + 1)
    #expect(!SleepPurpose.dueTime.isHousekeeping && !SleepPurpose.unnamed.isHousekeeping)
    time.advance(by: .seconds(30))
    for sleeper in sleepers + [retry] { try await sleeper.value }
  }

  @Test func stepsThroughARowOfSleeps() async throws {
    let time = VirtualTime()
    let task = Task {
      var seen: [Duration] = []
      for seconds in [1, 2, 4] {
        try await time.sleep(for: .seconds(seconds))
        seen.append(time.now)
      }
      return seen
    }
    for seconds in [1, 2, 4] { #expect(await time.advanceToNextSleeper() == .seconds(seconds)) }
    #expect(try await task.value == [.seconds(1), .seconds(3), .seconds(7)])
  }

  /// Cancelling at the moment of waking must neither hang nor resume twice.
  @Test func cancellingWhileWakingIsSafe() async {
    let time = VirtualTime()
    for _ in 0..<500 {
      let sleeper = Task { try await time.sleep(for: .seconds(1)) }
      await withTaskGroup(of: Void.self) { group in
        group.addTask { sleeper.cancel() }
        group.addTask { time.advance(by: .seconds(1)) }
      }
      _ = await sleeper.result
    }
    #expect(time.pendingSleeps.isEmpty)
  }
}

/// Runs the jobs of tasks on one queue, in order.
private final class OneQueue: TaskExecutor {
  private let queue = DispatchQueue(label: "VirtualTimeTests")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  /// Returns after all jobs that were queued before have run.
  func drain() async {
    await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
  }
}
