#if SQLite
  import DownpipeCore
  import DownpipeTesting
  import Foundation

  /// Synchronises the engine, the source and the ledger of one run, so that each run makes the same calls in nearly the
  /// same order: the ticker ticks after each chunk, and the next chunk follows when the checkpoint is written. After a
  /// fault they continue without waiting. It is also the clock of the run; sleeping takes no time.
  final class Pace: TimeSource {
    /// The interval of the engine's ticker.
    static let tick = Duration.milliseconds(100)
    /// A lease that does not expire. After a fault the engine still runs its maintenance.
    static let lease = Duration.seconds(1_000_000)
    /// The time between two checkpoints.
    static let never = Duration.seconds(3600)
    private static let turnsOfALease = 1000

    private struct State {
      var now = Duration.zero
      var hasTicked = false
      var tickerSleeps = false
      var committedBytes: Int64 = 0
      var isHurried = false
    }

    private let state = Watched(State())
    private let start: Date

    init(start: Date = Date(timeIntervalSince1970: 1_000_000_000)) { self.start = start }

    var now: Duration { state.value.now }
    var date: Date { start.addingTimeInterval(state.value.now / .seconds(1)) }

    func sleep(until instant: Duration, purpose: SleepPurpose) async throws {
      try Task.checkCancellation()
      switch purpose {
      case .lease:
        await state.wait(until: \.isHurried)
        for _ in 0..<Self.turnsOfALease { await Task.yield() }
      case .checkpoint:
        // Checkpoints follow a number of bytes, and only one download waits. The loop ends with the transfer.
        await state.wait { _ in false }
      case .progress:
        state.update { $0.tickerSleeps = true }
        await state.wait(until: \.hasTicked)
        state.update { state in
          state.tickerSleeps = false
          state.hasTicked = false
        }
      default:
        state.update { $0.now = max($0.now, instant) }
        await Task.yield()
      }
      try Task.checkCancellation()
    }

    /// Lets the ticker tick, and returns after that.
    func tick() async {
      state.update { state in
        state.now += Self.tick
        state.hasTicked = true
      }
      await state.wait { ($0.tickerSleeps && !$0.hasTicked) || $0.isHurried }
    }

    /// Lets the ticker tick, and returns when the checkpoint after a number of bytes is in the ledger.
    func checkpoint(at position: Int64, every bytes: Int64) async {
      await tick()
      if position - state.value.committedBytes < bytes { return }
      await state.wait { $0.committedBytes >= position || $0.isHurried }
    }

    /// Called when the ledger has saved a checkpoint, or failed to.
    func saved(_ bytes: Int64) { state.update { $0.committedBytes = bytes } }

    /// Ends all waiting.
    func hurry() { state.update { $0.isHurried = true } }
  }
#endif
