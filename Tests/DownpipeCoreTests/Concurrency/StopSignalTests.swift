import HangLimit
import Testing

@testable import DownpipeCore

/// Stopping work from another task.
@Suite(.endsHangs)
struct StopSignalTests {
  private let signal = StopSignal<Int>()
  private let hasBegun = Completion()

  /// Works until it is cancelled.
  private func endless() async -> Bool {
    hasBegun.complete()
    do { try await Completion().wait() } catch { return true }
    return false
  }

  @Test func workThatEndsReturnsItsResult() async {
    #expect(await signal.guarding { 7 } == 7)
    #expect(signal.reason == nil)
  }

  @Test func aStopCancelsTheWorkAndItsFirstReasonCounts() async throws {
    async let wasCancelled = signal.guarding { await endless() }
    try await hasBegun.wait()
    #expect(signal.stop(1))
    #expect(!signal.stop(2))
    #expect(await wasCancelled)
    #expect(signal.reason == 1)
  }

  @Test func aStopBeforeTheWorkTakesEffect() async {
    signal.stop(1)
    #expect(await signal.guarding { await endless() })
  }

  @Test func theCancellationOfTheCallerCancelsTheWork() async throws {
    let task = Task { await signal.guarding { await endless() } }
    try await hasBegun.wait()
    task.cancel()
    #expect(await task.value)
    #expect(signal.reason == nil)
  }
}
