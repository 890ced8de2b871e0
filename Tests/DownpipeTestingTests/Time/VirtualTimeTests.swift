import DownpipeTesting
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1)))
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

  @Test func calendarJumpsWakeNobody() async throws {
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

  @Test func wakesWhoIsDueAndNobodyElse() async throws {
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
    // One actor, so that the order of waking is the order of running.
    let tasks = Task { @MainActor in
      var tasks: [Task<Void, any Error>] = []
      for (index, seconds) in [3, 1, 2, 1].enumerated() {
        tasks.append(
          Task { @MainActor in
            try await time.sleep(for: .seconds(seconds))
            woken.update { $0.append(index) }
          })
        await time.sleepers(atLeast: index + 1)
      }
      return tasks
    }
    let sleeping = await tasks.value
    time.advance(by: .seconds(5))
    for task in sleeping { try await task.value }
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

  /// Cancelling at the very moment of waking must neither hang nor resume twice.
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
