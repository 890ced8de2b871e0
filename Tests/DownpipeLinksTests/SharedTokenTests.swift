import DownpipeCore
import DownpipeTesting
import HangLimit
import Testing

@testable import DownpipeLinks

/// The call of the provider belongs to all requests that wait for it.
@Suite(.endsHangs)
struct SharedTokenTests {
  /// A provider that waits until a test lets it answer, and records how its calls went.
  private final class HeldProvider: Sendable {
    struct State: Sendable {
      var calls = 0
      var isOpen = false
      var cancelled = 0
      /// Whether a cancelled call waits for the test as well.
      var isStubborn = false
    }

    let state = Watched(State())

    func token(_ rejected: AccessToken?) async throws -> AccessToken {
      let number = state.update {
        $0.calls += 1
        return $0.calls
      }
      await state.wait { $0.isOpen }
      if Task.isCancelled {
        state.update { $0.cancelled += 1 }
        // Only a test ends it: the wait of a cancelled task returns at once.
        while state.value.isStubborn { await Task.yield() }
        throw CancellationError()
      }
      return AccessToken("token-\(number)")
    }

    func open() { state.update { $0.isOpen = true } }
  }

  private let provider = HeldProvider()

  private func sharedToken() -> SharedToken {
    SharedToken(stage: "Authorized") { [provider] in try await provider.token($0) }
  }

  private func waiting(_ count: Int, _ shared: SharedToken) async {
    while shared.waiting != count { await Task.yield() }
  }

  @Test("one of several that wait is cancelled: the call goes on for the others")
  func oneIsCancelled() async throws {
    let shared = sharedToken()
    let tasks = (0..<3).map { _ in Task { try await shared.current(insteadOf: nil) } }
    await waiting(3, shared)
    tasks[0].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[0].value }
    await waiting(2, shared)
    provider.open()
    for task in tasks.dropFirst() { #expect(try await task.value == AccessToken("token-1")) }
    #expect(provider.state.value.calls == 1 && provider.state.value.cancelled == 0)
  }

  @Test("all are cancelled: the call is cancelled, and has ended when the last one returns")
  func allAreCancelled() async throws {
    let shared = sharedToken()
    let tasks = (0..<3).map { _ in Task { try await shared.current(insteadOf: nil) } }
    await waiting(3, shared)
    for task in tasks { task.cancel() }
    for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
    #expect(provider.state.value.calls == 1 && provider.state.value.cancelled == 1)
    provider.open()
    #expect(try await shared.current(insteadOf: nil) == AccessToken("token-2"))
  }

  @Test("a request that comes while a cancelled call ends waits for a call of its own")
  func duringTheEnd() async throws {
    let shared = sharedToken()
    provider.state.update { $0.isStubborn = true }
    let first = Task { try await shared.current(insteadOf: nil) }
    await waiting(1, shared)
    first.cancel()
    await provider.state.wait { $0.cancelled == 1 }
    let second = Task { try await shared.current(insteadOf: nil) }
    for _ in 0..<100 { await Task.yield() }
    #expect(provider.state.value.calls == 1, "one call at a time")
    provider.state.update { ($0.isStubborn, $0.isOpen) = (false, true) }
    #expect(try await second.value == AccessToken("token-2"))
    await #expect(throws: CancellationError.self) { try await first.value }
  }

  @Test("all that wait get one failure; the next one asks again")
  func failures() async throws {
    let calls = Watched(0)
    let isOpen = Watched(false)
    let shared = SharedToken(stage: "Authorized") { _ in
      calls.update { $0 += 1 }
      await isOpen.wait { $0 }
      throw DownloadError(.network, "call \(calls.value)")
    }
    let tasks = (0..<50).map { _ in Task { try await shared.current(insteadOf: nil) } }
    await waiting(50, shared)
    isOpen.update { $0 = true }
    for task in tasks {
      let error = await #expect(throws: DownloadError.self) { try await task.value }
      #expect(error?.message == "call 1")
    }
    let error = await #expect(throws: DownloadError.self) { try await shared.current(insteadOf: nil) }
    #expect(error?.message == "call 2")
  }

  @Test func aCancelledRequestAsksForNothing() async throws {
    let shared = sharedToken()
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await shared.current(insteadOf: nil)
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(provider.state.value.calls == 0)
  }
}
