public import DownpipeCore
import Synchronization

/// A gate that a test opens and closes.
///
/// ```swift
/// let gate = FakeGate(.closed("no network yet"))
/// let downloader = try await Downloader { source; gate; FakeStorage() }
/// gate.open()                       // the rule is published before this returns
/// gate.close("the cable is unplugged")
/// ```
public final class FakeGate: Gate {
  private enum Ending {
    case returns
    case throwing(any Error)
  }

  private struct State {
    var rule: GateRule
    var history = 0
    var lastID: UInt64 = 0
    var watchers: [UInt64: @Sendable (GateRule) -> Void] = [:]
  }

  // Rules are published under this lock, so that every watcher sees them in the same order.
  private let state: Mutex<State>
  private let watching = Watched(0)
  private let ending = Watched<Ending?>(nil)
  /// The name in reasons and in the printed pipeline.
  public let name: String

  /// Creates a gate with an initial rule.
  public init(_ rule: GateRule = .open, name: String = "FakeGate") {
    state = Mutex(State(rule: rule))
    self.name = name
  }

  /// Opens the gate for every download.
  public func open() { publish(.open) }

  /// Closes the gate for every download.
  public func close(_ reason: String) { publish(.closed("\(name): \(reason)")) }

  /// Publishes a rule to every watcher before it returns.
  public func publish(_ rule: GateRule) {
    state.withLock { state in
      state.rule = rule
      state.history += 1
      for watcher in state.watchers.values { watcher(rule) }
    }
  }

  /// Ends every current and future watch: without an error like a gate that will not change again, with an error like a
  /// gate that has lost its information.
  public func endWatching(throwing error: (any Error)? = nil) {
    ending.update { $0 = error.map { .throwing($0) } ?? .returns }
  }

  /// The number of current watchers.
  public var watchers: Int { watching.value }

  /// Waits for at least `count` watchers. Returns early when the waiting task is cancelled.
  public func watchers(atLeast count: Int) async {
    await watching.wait { $0 >= count }
  }

  /// Publishes the current rule and each new one until the task is cancelled or ``endWatching(throwing:)`` is called.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    try Task.checkCancellation()
    let id = state.withLock { state in
      state.lastID += 1
      state.watchers[state.lastID] = publish
      publish(state.rule)
      return state.lastID
    }
    watching.update { $0 += 1 }
    await ending.wait { $0 != nil }
    state.withLock { state in _ = state.watchers.removeValue(forKey: id) }
    watching.update { $0 -= 1 }
    if case .throwing(let error) = ending.value { throw error }
    try Task.checkCancellation()
  }
}
