import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Calls in every order with jobs and ends of runs, without a task: what they lead to follows from the order of the calls.
@Suite(.endsHangs)
struct CallOrderTests {
  @Test("Commands take effect in the order of their calls, and every caller is answered once", arguments: 0..<8)
  func order(seed: UInt64) async throws {
    for number in 0..<LongForm.count(60, long: 500) {
      var random = SeededGenerator(seed: seed &* 1_000 &+ UInt64(number))
      let world = try await CallWorld(isAwaited: number % 2 > 0)
      // Half of the worlds begin with running downloads.
      if number % 4 > 1 { await world.goOn() }
      var steps: [CallWorld.Step] = []
      for _ in 0..<40 {
        guard let step = world.possible.randomElement(using: &random) else { break }
        steps.append(step)
        await world.take(step)
      }
      if let flaw = try await world.end() { Issue.record("seed \(seed), order \(number): \(flaw); \(steps)") }
    }
  }

  #if SABOTAGE
    @Test("A command that does not wait for earlier ones is found")
    func lateCommands() async throws {
      var isFound = false
      for number in 0..<300 where !isFound {
        var random = SeededGenerator(seed: UInt64(number))
        let world = try await CallWorld { $0.sabotage = .lateCommands }
        await world.goOn()
        for _ in 0..<40 {
          guard let step = world.possible.randomElement(using: &random) else { break }
          await world.take(step)
        }
        isFound = try await world.end() != nil
      }
      #expect(isFound)
    }
  #endif

  @Test("A step's call that concerns no download waits for no command: its own download may be waited for")
  func callsOfSteps() async throws {
    let world = try await CallWorld()
    await world.goOn()
    try world.process("a")
    world.move("a")
    for step in [CallWorld.Step.call(.pauseAll, "a"), .call(.resumeAll, "a"), .call(.look, "a")] {
      await world.take(step)
      await world.goOn()
    }
    #expect(world.answered == ["look a"])
    world.finish("a")
    await world.goOn()
    #expect(world.answered == ["look a", "move a", "pauseAll a", "resumeAll a"])
  }

  @Test("A caller that is cancelled while it waits for a run is answered, and the run is stopped all the same")
  func cancelled() async throws {
    let world = try await CallWorld()
    await world.goOn()
    for step in [CallWorld.Step.call(.pause, "a"), .cancel(0)] { await world.take(step) }
    while world.possible.contains(.job) || world.possible.contains(.conclude) {
      await world.take(world.possible.contains(.conclude) ? .conclude : .job)
    }
    #expect(world.answers == [["cancelled"]])
    // What is called now comes after the end of the run that was stopped.
    await world.take(.call(.resume, "a"))
    #expect(try await world.end() == nil)
    #expect(world.answers == [["cancelled"], ["true"]])
  }
  @Test("What is called after an addition of several downloads comes after it, although only one of them has to wait")
  func additionOfSeveral() async throws {
    let world = try await CallWorld()
    await world.goOn()
    for step in [CallWorld.Step.call(.pause, "a"), .call(.addBoth, "a"), .call(.add, "b")] { await world.take(step) }
    #expect(try await world.end() == nil)
  }
  @Test("A removal whose caller gives up at any time after the run has ended is completed before a later addition")
  func cancelledAfterTheEnd() async throws {
    for steps in 0..<20 {
      let world = try await CallWorld(isAwaited: true)
      await world.goOn()
      // Both wait for the run.
      for step in [CallWorld.Step.call(.pause, "b"), .call(.remove, "a"), .call(.add, "a")] { await world.take(step) }
      await world.goOn(butNotEnds: true)
      for id in CallHistory.ids { await world.take(.end(id)) }
      await world.goOn(butNotEnds: true, atMost: steps)
      await world.take(.cancel(1))
      #expect(try await world.end() == nil, "\(steps) steps after the end")
    }
  }
}
