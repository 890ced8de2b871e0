public import DownpipeCore
import Synchronization

/// A gate that somebody opens and closes by hand: a pause button, a setting, office hours.
///
/// ```swift
/// let quiet = ManualGate("QuietHours")
/// let downloader = try await Downloader { HTTPSource(); FileStore("~/Downloads"); quiet }
/// quiet.close("it is night")     // running transfers are suspended; their bytes stay
/// quiet.open()                   // and go on
/// ```
/// Copies of a gate are the same gate, and may stand in several pipelines. Safe to use from any thread.
public struct ManualGate: Gate {
  /// The name in messages and in the printed pipeline.
  public let name: String
  /// What tells it from other gates of the pipeline: the name unless it was given another.
  public let id: String
  private let lever: Lever

  /// Makes a gate that is open.
  public init(_ name: String = "ManualGate", id: String? = nil) {
    self.name = name
    self.id = id ?? name
    lever = Lever(reason: nil)
  }

  /// Makes a gate that is closed for a reason, in a few words: `"it is night"`.
  public init(_ name: String = "ManualGate", id: String? = nil, closed reason: String) {
    self.name = name
    self.id = id ?? name
    lever = Lever(reason: reason)
  }

  /// Opens the gate: suspended transfers go on.
  public func open() { lever.set(nil) }

  /// Closes the gate for a reason, in a few words: transfers are suspended and say `"QuietHours: it is night"`.
  /// Closing a closed gate changes the reason.
  public func close(_ reason: String) { lever.set(reason) }

  /// Whether the gate is open.
  public var isOpen: Bool { lever.reason == nil }

  /// Why it is closed; `nil` when it is open.
  public var reason: String? { lever.reason }

  /// `open`, or `closed:` and the reason.
  public var summary: String { reason.map { "closed: \($0)" } ?? "open" }

  /// Publishes the rule at once and after each change, until the task is cancelled.
  ///
  /// A watcher that is slow misses rules that are out of date by then, never the last one.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    for await _ in lever.changes() {
      publish(reason.map { .closed("\(name): \($0)") } ?? .open)
    }
    try Task.checkCancellation()
  }
}

/// What the copies of a gate share.
private final class Lever: Sendable {
  private struct State {
    var reason: String?
    var lastWatcher: UInt64 = 0
    var watchers: [UInt64: AsyncStream<Void>.Continuation] = [:]
  }

  private let state: Mutex<State>

  init(reason: String?) { state = Mutex(State(reason: reason)) }

  var reason: String? { state.withLock(\.reason) }

  func set(_ reason: String?) {
    let watchers: [AsyncStream<Void>.Continuation] = state.withLock { state in
      guard state.reason != reason else { return [] }
      state.reason = reason
      return Array(state.watchers.values)
    }
    for watcher in watchers { watcher.yield() }
  }

  /// One element at once, and another after each change; those that nobody has taken yet become one.
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
