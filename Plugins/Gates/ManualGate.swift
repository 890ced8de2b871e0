public import DownpipeCore
import Synchronization

/// A gate that the program opens and closes: for a pause button, a setting or office hours.
///
/// ```swift
/// let quiet = ManualGate("QuietHours")
/// let downloader = try await Downloader { HTTPSource(); FileStore("~/Downloads"); quiet }
/// quiet.close("it is night")     // suspends running transfers; their bytes are kept
/// quiet.open()                   // resumes them
/// ```
/// Copies of a gate share its state, and can be in several pipelines. All members can be used from any thread.
public struct ManualGate: Gate {
  /// The name in messages and in the printed pipeline; `ManualGate` by default.
  public let name: String
  /// Identifies the gate in its pipeline; the name by default.
  public let id: String
  private let lever: Lever

  /// Creates an open gate.
  ///
  /// - Parameters:
  ///   - name: The name in messages.
  ///   - id: Identifies the gate in its pipeline; the name by default.
  public init(_ name: String = "ManualGate", id: String? = nil) {
    self.name = name
    self.id = id ?? name
    lever = Lever(reason: nil)
  }

  /// Creates a closed gate.
  ///
  /// - Parameters:
  ///   - name: The name in messages.
  ///   - id: Identifies the gate in its pipeline; the name by default.
  ///   - reason: Why it is closed, in a few words: `"it is night"`.
  public init(_ name: String = "ManualGate", id: String? = nil, closed reason: String) {
    self.name = name
    self.id = id ?? name
    lever = Lever(reason: reason)
  }

  /// Opens the gate: suspended transfers resume.
  public func open() { lever.set(nil) }

  /// Closes the gate: transfers are suspended, and wait with the reason `"QuietHours: it is night"`.
  ///
  /// - Parameter reason: Why, in a few words. Closing a closed gate changes the reason.
  public func close(_ reason: String) { lever.set(reason) }

  /// Whether the gate is open.
  public var isOpen: Bool { lever.reason == nil }

  /// Why the gate is closed; `nil` when it is open.
  public var reason: String? { lever.reason }

  /// `open`, or `closed: ` and the reason.
  public var summary: String { reason.map { "closed: \($0)" } ?? "open" }

  /// Publishes the current rule and then each change, until the task is cancelled.
  ///
  /// A slow watcher can miss rules that were replaced since, but not the current one.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    for await _ in lever.changes() {
      publish(reason.map { .closed("\(name): \($0)") } ?? .open)
    }
    try Task.checkCancellation()
  }
}

/// The shared state of the copies of a gate.
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
