import DownpipeCore

/// A ``Monitor`` that several objects share. The fakes are built on it.
package final class Watched<Value: Sendable>: Sendable {
  private let monitor: Monitor<Value>

  package init(_ value: Value) { monitor = Monitor(value) }

  /// A copy of the value.
  package var value: Value { monitor.value }

  /// Changes the value and wakes the tasks whose condition holds.
  package func update<Result: Sendable, Failure: Error>(
    _ change: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try monitor.update(change)
  }

  /// Waits until the value meets the condition, which is evaluated under the lock. Returns early when the task is
  /// cancelled.
  package func wait(until condition: @escaping @Sendable (Value) -> Bool) async {
    try? await monitor.wait { condition($0) }
  }
}
