import Synchronization

/// A value behind a lock, and tasks that wait until it meets a condition. The fakes are built on it.
package final class Watched<Value: Sendable>: Sendable {
  private struct Waiter {
    let id: UInt64
    let condition: @Sendable (Value) -> Bool
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var value: Value
    var lastID: UInt64 = 0
    var waiters: [Waiter] = []
    /// Waits that were cancelled before they started.
    var cancelled: Set<UInt64> = []
  }

  private let state: Mutex<State>

  package init(_ value: Value) { state = Mutex(State(value: value)) }

  /// A copy of the value.
  package var value: Value { state.withLock(\.value) }

  /// Changes the value and wakes the tasks whose condition holds.
  package func update<Result: Sendable, Failure: Error>(
    _ change: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let (result, woken) = try state.withLock {
      (state) throws(Failure) -> (Result, [CheckedContinuation<Void, Never>]) in
      let result = try change(&state.value)
      guard !state.waiters.isEmpty else { return (result, []) }
      let value = state.value
      let ready = state.waiters.filter { $0.condition(value) }
      if !ready.isEmpty { state.waiters.removeAll { waiter in ready.contains { $0.id == waiter.id } } }
      return (result, ready.map(\.continuation))
    }
    for waiter in woken { waiter.resume() }
    return result
  }

  /// Waits until the value meets the condition, which is evaluated under the lock. Returns early when the task is
  /// cancelled.
  package func wait(until condition: @escaping @Sendable (Value) -> Bool) async {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
        let isOver = state.withLock { state in
          if state.cancelled.contains(id) || condition(state.value) { return true }
          state.waiters.append(Waiter(id: id, condition: condition, continuation: continuation))
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      let waiter: Waiter? = state.withLock { state in
        guard let index = state.waiters.firstIndex(where: { $0.id == id }) else {
          state.cancelled.insert(id)
          return nil
        }
        return state.waiters.remove(at: index)
      }
      waiter?.continuation.resume()
    }
    state.withLock { state in
      // After the wait the cancellation handler cannot add the id again.
      _ = state.cancelled.remove(id)
    }
  }
}
