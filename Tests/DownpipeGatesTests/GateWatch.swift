import DownpipeCore

/// A running watch, and the rules that it publishes in order.
final class GateWatch: Sendable {
  private let task: Task<Void, any Error>
  private let rules: AsyncStream<GateRule>

  init(_ gate: some Gate) {
    let (rules, continuation) = AsyncStream.makeStream(of: GateRule.self)
    self.rules = rules
    task = Task {
      defer { continuation.finish() }
      try await gate.watch { continuation.yield($0) }
    }
  }

  deinit { task.cancel() }

  /// The next rule; `nil` when the watch has ended.
  func next() async -> GateRule? {
    var iterator = rules.makeAsyncIterator()
    return await iterator.next()
  }

  /// The verdict of the next rule for a host.
  func verdict(_ host: String = "example.org") async -> GateRule.Verdict? {
    await next()?.verdict(for: Candidate(host: host))
  }

  /// Cancels the watch and returns how it ended.
  func cancel() async -> Result<Void, any Error> {
    task.cancel()
    return await task.result
  }

  /// The error that ended the watch.
  func end() async -> Result<Void, any Error> { await task.result }
}
