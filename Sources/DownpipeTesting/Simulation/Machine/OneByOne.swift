import Synchronization

/// Lets one piece of work run after the other, in the order of the calls, although each of them waits in between.
final class OneByOne: Sendable {
  private struct State: Sendable {
    var isBusy = false
    var waiters: [CheckedContinuation<Void, Never>] = []
  }
  private let state = Mutex(State())

  func perform<Result>(_ work: () async throws -> Result) async throws -> Result {
    await begin()
    defer { end() }
    return try await work()
  }

  private func begin() async {
    let isFree = state.withLock { state in
      defer { state.isBusy = true }
      return !state.isBusy
    }
    guard !isFree else { return }
    // No other job runs between the two locks: all of them are on the simulation's thread.
    await withCheckedContinuation { continuation in state.withLock { $0.waiters.append(continuation) } }
  }

  private func end() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard !state.waiters.isEmpty else {
        state.isBusy = false
        return nil
      }
      return state.waiters.removeFirst()
    }
    next?.resume()
  }
}
