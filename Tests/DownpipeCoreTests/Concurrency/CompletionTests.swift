import HangLimit
import Testing

@testable import DownpipeCore

/// The end of some work.
@Suite(.endsHangs)
struct CompletionTests {
  private let completion = Completion()

  @Test func waitsEndWithTheWorkAndLaterOnesReturnAtOnce() async throws {
    async let first: Void = completion.wait()
    async let second: Void = completion.wait()
    completion.complete()
    completion.complete()
    try await first
    try await second
    try await completion.wait()
  }

  @Test func aWaitCanBeCancelled() async {
    let task = Task { try await completion.wait() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}
