import Synchronization

/// The state of a gate that the program changes, shared by the copies of the gate.
final class SharedState<Value: Equatable & Sendable>: Sendable {
  private struct State {
    var value: Value
    var lastWatcher: UInt64 = 0
    var watchers: [UInt64: AsyncStream<Void>.Continuation] = [:]
  }

  private let state: Mutex<State>

  init(_ value: Value) { state = Mutex(State(value: value)) }

  var value: Value { state.withLock(\.value) }

  func change(_ body: (inout Value) -> Void) {
    let watchers: [AsyncStream<Void>.Continuation] = state.withLock { state in
      let old = state.value
      body(&state.value)
      return state.value == old ? [] : Array(state.watchers.values)
    }
    for watcher in watchers { watcher.yield() }
  }

  /// An element at once and one after each change; unread elements are merged.
  func changes() -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let id = state.withLock { state in
      state.lastWatcher += 1
      state.watchers[state.lastWatcher] = continuation
      return state.lastWatcher
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { state in _ = state.watchers.removeValue(forKey: id) }
    }
    continuation.yield()
    return stream
  }
}
