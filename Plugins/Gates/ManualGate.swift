public import DownpipeCore

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
  private let closedBecause: SharedState<String?>

  /// Creates an open gate.
  ///
  /// - Parameters:
  ///   - name: The name in messages.
  ///   - id: Identifies the gate in its pipeline; the name by default.
  public init(_ name: String = "ManualGate", id: String? = nil) {
    self.name = name
    self.id = id ?? name
    closedBecause = SharedState(nil)
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
    closedBecause = SharedState(reason)
  }

  /// Opens the gate: suspended transfers resume.
  public func open() { closedBecause.change { $0 = nil } }

  /// Closes the gate: transfers are suspended, and wait with the reason `"QuietHours: it is night"`.
  ///
  /// - Parameter reason: Why, in a few words. Closing a closed gate changes the reason.
  public func close(_ reason: String) { closedBecause.change { $0 = reason } }

  /// Whether the gate is open.
  public var isOpen: Bool { closedBecause.value == nil }

  /// Why the gate is closed; `nil` when it is open.
  public var reason: String? { closedBecause.value }

  /// `open`, or `closed: ` and the reason.
  public var summary: String { reason.map { "closed: \($0)" } ?? "open" }

  /// Publishes the current rule and then each change, until the task is cancelled.
  ///
  /// A slow watcher can miss rules that were replaced since, but not the current one.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    for await _ in closedBecause.changes() {
      publish(reason.map { .closed("\(name): \($0)") } ?? .open)
    }
    try Task.checkCancellation()
  }
}
