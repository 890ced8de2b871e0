import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// What the engine's timers lead to, without a clock: each fires when the test says so.
@Suite(.endsHangs)
struct EngineTimerTests {
  /// An engine's state, and the actions that it has asked for.
  private struct World {
    var state: EngineState
    let setup: StateModel.Setup
    var now = Duration.zero
    var actions: [EngineState.Action] = []

    init() async throws {
      setup = try await StateModel.Setup(limit: 1)
      let session = try await setup.source.start(in: setup.pipeline.sourceContext)
      state = EngineState(setup.pipeline, sessions: [session], setup.context)
    }

    private var instant: EngineState.Instant { .init(now: now, date: setup.records[0].createdAt + now / .seconds(1)) }

    /// Delivers an event, and returns what has to be done: timers as their kind and the time until they fire.
    mutating func receive(_ event: EngineState.Event) -> [String] {
      state.receive(event, at: instant)
      return state.takeActions().map { action in
        if case .sleep(let due, let timer) = action { "\(timer) in \(due - now)" } else { "\(action)" }
      }
    }

    /// Lets a timer fire after an interval.
    mutating func fire(_ timer: EngineState.Timer, after interval: Duration) -> [String] {
      now += interval
      return receive(.fired(timer, now))
    }

    mutating func look(isWatched: Bool = false) -> [String] {
      receive(.news(.init(isAnythingWatched: isWatched, isAnythingAwaited: isWatched), needsTurn: false))
    }

    /// Lets one download run.
    mutating func startOne() -> Run {
      let run = Run(setup.records[0], leasedAt: now, state.stages.current, setup.context)
      _ = state.slots.insert(run, isForced: false, at: now)
      return run
    }
  }

  private static let interval = DownloaderOptions().progressInterval
  private static let lease = DownloaderOptions().lease

  @Test("Progress is reported and leases are renewed while something runs, and no longer")
  func progress() async throws {
    var world = try await World()
    #expect(!world.look().contains("progress in \(Self.interval)"))
    let run = world.startOne()
    #expect(world.look().contains("progress in \(Self.interval)"))
    #expect(!world.look().contains("progress in \(Self.interval)"), "a second timer")
    let report = ["tickRuns", "progress in \(Self.interval)"]
    #expect(world.fire(.progress, after: Self.interval) == report)
    #expect(
      world.fire(.progress, after: Self.lease / 3) == ["tickRuns", "renewLeases", "progress in \(Self.interval)"])
    #expect(world.fire(.progress, after: Self.interval) == report, "leases are not renewed again at once")
    world.state.slots.free(run)
    world.state.slots.remove(run)
    #expect(world.fire(.progress, after: Self.interval).isEmpty)
    _ = world.startOne()
    #expect(world.look().contains("progress in \(Self.interval)"), "the next download has a timer again")
  }

  @Test("The disk is asked once a second while a download waits for space")
  func room() async throws {
    var world = try await World()
    var record = world.setup.records[0]
    (record.awaited, record.notBefore) = (.disk, record.createdAt + 60)
    world.state.waits.note(record, available: 10, needed: 100)
    #expect(world.look().contains("room in 1.0 seconds"))
    #expect(!world.look().contains("room in 1.0 seconds"), "a second timer")
    #expect(world.fire(.room, after: .seconds(1)) == ["askRoom"])
    #expect(world.receive(.room(99)) == ["room in 1.0 seconds"])
    #expect(world.state.waits.takeDue().isEmpty)
    #expect(world.receive(.room(nil)) == ["room in 1.0 seconds"], "a storage that cannot tell is asked again")
    #expect(world.receive(.room(2 << 20)).isEmpty)
    #expect(world.state.waits.takeDue() == [record.id])
    #expect(world.state.hasNews, "a turn lets it start")
  }

  @Test("Changes by other processes are looked for while they matter, and not if the ledger cannot tell of any")
  func others() async throws {
    var world = try await World()
    #expect(world.look().contains("lookForOthers"))
    #expect(!world.look().contains("lookForOthers"), "a second look")
    #expect(world.receive(.lookedForOthers(mayMatter: true)) == ["others in 0.5 seconds"])
    #expect(world.fire(.others, after: .milliseconds(500)) == ["lookForOthers"])
    world.state.mode.mayHaveQueue = false
    #expect(world.receive(.lookedForOthers(mayMatter: false)).isEmpty)
    #expect(!world.look().contains("lookForOthers"))
    #expect(world.look(isWatched: true).contains("lookForOthers"), "a watcher wants to know")
    #expect(world.receive(.lookedForOthers(mayMatter: nil)).isEmpty)
    #expect(!world.look(isWatched: true).contains("lookForOthers"))
  }

  @Test("A turn tells new reasons at once while nothing runs, if a download is watched")
  func reasons() async throws {
    var world = try await World()
    world.state.reasons.mayHaveChanged = true
    #expect(!world.look().contains("takeTurn"))
    #expect(world.look(isWatched: true).contains("takeTurn"))
  }

  @Test("Downloads of dead owners are reclaimed once in the time of a lease")
  func maintenance() async throws {
    var world = try await World()
    let actions = world.receive(.maintained)
    #expect(actions.first == "lease in \(Self.lease)" && actions.count == 2, "and what others have left is deleted")
    #expect(world.fire(.lease, after: Self.lease) == ["maintain"])
  }
}
