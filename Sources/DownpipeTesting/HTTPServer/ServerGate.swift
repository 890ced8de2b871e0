import Synchronization

/// Holds scripted replies until a test opens it, so that tests order events without waiting for time to pass.
///
/// ```swift
/// let gate = ServerGate()
/// let server = try await ScriptedHTTPServer.start { _ in
///   ScriptedReply([.head(200, ["Content-Length": "5"]), .hold(gate), .send("hello")])
/// }
/// // … the head has arrived, the body has not …
/// await gate.arrivals(1)
/// gate.open()
/// ```
public final class ServerGate: Sendable {
  private struct State {
    var isOpen = false
    var arrived = 0
    var held: [@Sendable () -> Void] = []
    var watchers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  /// Creates a closed gate.
  public init() {}

  /// Whether the gate is open.
  public var isOpen: Bool { state.withLock { $0.isOpen } }

  /// Opens the gate for the held replies and all later ones.
  public func open() {
    let held = state.withLock { state in
      state.isOpen = true
      return exchange(&state.held, with: [])
    }
    for resume in held { resume() }
  }

  /// Waits until `count` replies in total have arrived at the gate.
  public func arrivals(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let there = state.withLock { state in
        if state.arrived >= count { return true }
        state.watchers.append((count, continuation))
        return false
      }
      if there { continuation.resume() }
    }
  }

  /// Waits until the gate is open, for code of the test itself. Counts as an arrival.
  public func wait() async {
    await withCheckedContinuation { continuation in pass { continuation.resume() } }
  }

  /// Calls `resume` when the gate is open: immediately or later, on any thread.
  func pass(_ resume: @escaping @Sendable () -> Void) {
    let (isOpen, reached) = state.withLock { state in
      state.arrived += 1
      if !state.isOpen { state.held.append(resume) }
      let reached = state.watchers.filter { $0.count <= state.arrived }
      state.watchers.removeAll { $0.count <= state.arrived }
      return (state.isOpen, reached)
    }
    for watcher in reached { watcher.continuation.resume() }
    if isOpen { resume() }
  }
}
