public import DownpipeCore
import Synchronization

/// A gate that a test opens and closes by hand.
///
/// ```swift
/// let gate = FakeGate(.closed("no network yet"))
/// let downloader = try await Downloader { source; gate; FakeStorage() }
/// gate.open()                       // the rule is published before this returns
/// gate.close("the cable is out")
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

  /// Makes a gate with its first rule.
  public init(_ rule: GateRule = .open, name: String = "FakeGate") {
    state = Mutex(State(rule: rule))
    self.name = name
  }

  /// Opens the gate for every download.
  public func open() { publish(.open) }

  /// Closes the gate for every download.
  public func close(_ reason: String) { publish(.closed("\(name): \(reason)")) }

  /// Publishes any rule to everybody who watches, before it returns.
  public func publish(_ rule: GateRule) {
    state.withLock { state in
      state.rule = rule
      state.history += 1
      for watcher in state.watchers.values { watcher(rule) }
    }
  }

  /// Ends every watch, present and future, as a gate does that will never change again; with an error,
  /// as a gate that no longer knows.
  public func endWatching(throwing error: (any Error)? = nil) {
    ending.update { $0 = error.map { .throwing($0) } ?? .returns }
  }

  /// How many watch at the moment.
  public var watchers: Int { watching.value }

  /// Waits until at least `count` watch. Returns early when the waiting task is cancelled.
  public func watchers(atLeast count: Int) async {
    await watching.wait { $0 >= count }
  }

  /// Publishes the present rule, then each new one, until the task is cancelled or ``endWatching(throwing:)``.
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
