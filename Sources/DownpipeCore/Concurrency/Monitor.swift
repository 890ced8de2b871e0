internal import Synchronization

/// A value behind a lock, and tasks that wait until it meets a condition: a monitor, as operating systems call it.
///
/// Every continuation of the core that waits for a change of state is held by a monitor. It is stored in place, like a
/// `Mutex`, and allocates nothing unless a task has to wait.
///
/// - Waits whose condition holds return without suspending. The others are resumed by the change that fulfils their
///   condition, in the order of their arrival, after the lock was released: a task that goes on must look at the value again if
///   a later change may have undone it.
/// - Conditions are evaluated under the lock, after each ``update(_:)``. They must be short, and must not call the monitor.
package struct Monitor<Value: Sendable>: ~Copyable, Sendable {
  struct Waiter: Sendable {
    let number: UInt64
    let condition: @Sendable (Value) -> Bool
    let continuation: CheckedContinuation<Void, Never>
  }

  // Not private: the layout of a monitor is needed in the files of its owners.
  struct State: Sendable {
    var value: Value
    var lastNumber: UInt64 = 0
    /// In the order of their arrival.
    var waiters: [Waiter] = []

    /// Removes and returns the waiters whose condition holds.
    mutating func takeReady() -> [Waiter] {
      guard waiters.contains(where: { $0.condition(value) }) else { return [] }
      var ready: [Waiter] = []
      var left: [Waiter] = []
      for waiter in waiters {
        if waiter.condition(value) { ready.append(waiter) } else { left.append(waiter) }
      }
      waiters = left
      return ready
    }
  }

  private let state: Mutex<State>

  package init(_ value: Value) { state = Mutex(State(value: value)) }

  /// A copy of the value.
  package var value: Value { state.withLock(\.value) }

  /// The number of waiting tasks, for tests.
  var waiting: Int { state.withLock { $0.waiters.count } }

  /// Reads the value in place.
  package func read<Result: Sendable>(_ body: (Value) -> Result) -> Result { state.withLock { body($0.value) } }

  /// Changes the value, and resumes the tasks whose condition holds then.
  package func update<Result: Sendable, Failure: Error>(
    _ change: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let (result, ready) = try state.withLock { (state) throws(Failure) -> (Result, [Waiter]) in
      let result = try change(&state.value)
      return (result, state.waiters.isEmpty ? [] : state.takeReady())
    }
    for waiter in ready { waiter.continuation.resume() }
    return result
  }

  /// Waits until the value meets a condition.
  ///
  /// - Throws: `CancellationError` if the task is cancelled, also if the condition holds.
  package func wait(until condition: @escaping @Sendable (Value) -> Bool) async throws {
    if !state.withLock({ condition($0.value) }) { try await suspend(until: condition) }
    try Task.checkCancellation()
  }

  /// Waits until the value meets a condition, also if the task is cancelled.
  package func waitThroughCancellation(until condition: @escaping @Sendable (Value) -> Bool) async {
    if state.withLock({ condition($0.value) }) { return }
    let number = makeNumber()
    await withCheckedContinuation { enqueue($0, number, until: condition) }
  }

  private func suspend(until condition: @escaping @Sendable (Value) -> Bool) async throws {
    let number = makeNumber()
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        enqueue(continuation, number, until: condition)
        // The handler may have run before the continuation was stored.
        if Task.isCancelled { giveUp(number) }
      }
    } onCancel: {
      giveUp(number)
    }
  }

  private func makeNumber() -> UInt64 {
    state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
  }

  private func enqueue(
    _ continuation: CheckedContinuation<Void, Never>, _ number: UInt64,
    until condition: @escaping @Sendable (Value) -> Bool
  ) {
    let isOver = state.withLock { state in
      if condition(state.value) { return true }
      state.waiters.append(Waiter(number: number, condition: condition, continuation: continuation))
      return false
    }
    if isOver { continuation.resume() }
  }

  private func giveUp(_ number: UInt64) {
    let waiter = state.withLock { state in
      state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0) }
    }
    waiter?.continuation.resume()
  }
}
