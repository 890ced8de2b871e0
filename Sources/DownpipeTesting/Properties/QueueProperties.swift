@_spi(Ledger) public import DownpipeCore

/// Checks a scheduling policy in a downloader, with random sequences of operations.
///
/// ```swift
/// try await QueueProperties { MyPolicy() }.run(seeds: 0..<100)
/// ```
/// Each seed determines a sequence of ``QueueOperation``s: downloads are added, paused, resumed, started by hand,
/// cancelled and removed, limits and policies are replaced, gates close, transfers fail, the clock advances, and the
/// downloader is opened again. A real downloader performs them with a fake source, a fake storage and
/// ``VirtualTime``. After each operation every ``QueueProperty`` is checked, each lease is compared with what it left
/// waiting, and at the end all downloads must end.
///
/// ``QueuePropertyFailure`` contains the seed and the shortest sequence that was found to fail. Repeat it with
/// ``run(_:)``:
///
/// ```swift
/// try await QueueProperties { MyPolicy() }.run([.add(1), .add(3, priority: 100), .settle])
/// ```
/// The engine works on several threads, so that a sequence may fail only sometimes.
@_spi(Ledger) public struct QueueProperties: Sendable {
  /// The stages that are tested.
  var subject: QueueSimulation.Subject
  private let length: Int
  private let limit: Duration

  /// Creates a suite for a policy.
  ///
  /// - Parameters:
  ///   - length: The number of operations for each seed.
  ///   - limit: The longest time for one operation, and for the end of all downloads.
  ///   - bound: How much later than a download with the given properties another one may be added and still start
  ///     before it; `nil` for any time. Sequences use ``QueueOperation/priorities``. Only downloads that may both start
  ///     are compared.
  ///   - limits: Makes the admission policy for limits. All policies that it makes must have the same `id`. Without it
  ///     a ``FakeAdmissionPolicy`` applies the limits.
  ///   - ledger: Makes a new, empty ledger for each sequence; a `MemoryLedger` unless given.
  ///   - policy: Makes the policy. All policies that it makes must rank alike.
  public init(
    length: Int = 60, limit: Duration = .hangLimit,
    bound: (@Sendable (RankingContext) -> Duration?)? = nil,
    limits: @escaping @Sendable (QueueLimits) -> any AdmissionPolicy = Self.fakeLimits,
    ledger: @escaping @Sendable () async throws -> any Ledger = { MemoryLedger() },
    _ policy: @escaping @Sendable () -> any SchedulingPolicy
  ) {
    subject = QueueSimulation.Subject(policy: policy, limits: limits, ledger: ledger, bound: bound)
    self.length = length
    self.limit = limit
  }

  /// Makes the admission policy that is used unless another one is given.
  public static func fakeLimits(_ limits: QueueLimits) -> any AdmissionPolicy {
    FakeAdmissionPolicy(maximumConcurrent: limits.concurrent, maximumPerHost: limits.perHost) { candidate, running in
      if running.total >= limits.concurrent { return .full("\(limits.concurrent) run") }
      if running.perHost[candidate.host, default: 0] >= limits.perHost { return .hostFull("\(limits.perHost) run") }
      return limits.admit(candidate, beside: running) ? .admitted : .refused("\(limits.even) run")
    }
  }

  /// Performs the sequences of seeds.
  /// - Throws: ``QueuePropertyFailure`` for the first seed that fails; `CancellationError`.
  public func run(seeds: Range<UInt64>) async throws {
    for seed in seeds {
      try Task.checkCancellation()
      let operations = QueueOperation.sequence(of: seed, count: length)
      guard let found = await firstFailure(of: operations, within: limit) else { continue }
      try Task.checkCancellation()
      // A sequence that fails by waiting forever fails this long in each attempt.
      let limit = min(limit, .seconds(6))
      let shortest = await Shrinking(found: found) { operations in
        // On a busy machine, the short limit may end a sequence: that is not what was found.
        let failure = await firstFailure(of: operations, within: limit)
        return failure?.violation.property == found.violation.property ? failure : nil
      }.shortest()
      throw QueuePropertyFailure(seed: seed, shortest)
    }
  }

  /// Performs one sequence.
  /// - Throws: ``QueuePropertyFailure`` with the operations up to the one that failed; `CancellationError`.
  public func run(_ operations: [QueueOperation]) async throws {
    let failure = await firstFailure(of: operations, within: limit)
    try Task.checkCancellation()
    if let failure { throw QueuePropertyFailure(seed: nil, failure) }
  }

  /// Performs a sequence on a new downloader.
  private func firstFailure(of operations: [QueueOperation], within limit: Duration) async -> FailedSequence? {
    var done: [QueueOperation] = []
    do {
      let simulation = try await QueueSimulation(subject, patience: limit / 3)
      let outcome: FailedSequence?
      do {
        for operation in operations {
          done.append(operation)
          // Settling ends by its own patience, which a busy machine stretches.
          let deadline = if case .settle = operation { max(limit, .hangLimit) } else { limit }
          try await withDeadline(deadline) { try await simulation.perform(operation) }
        }
        try await withDeadline(max(limit, .hangLimit)) { try await simulation.end() }
        outcome = nil
      } catch {
        outcome = FailedSequence(operations: done, violation: Violation(error, after: done.last))
      }
      try await withDeadline(max(limit, .hangLimit)) { await simulation.close() }
      return outcome
    } catch {
      return FailedSequence(operations: done, violation: Violation(error, after: done.last))
    }
  }
}

/// A sequence of operations after which a property does not hold.
@_spi(Ledger) public struct QueuePropertyFailure: Error, Sendable, CustomStringConvertible {
  /// The seed of the sequence; `nil` for a given sequence.
  public let seed: UInt64?
  /// The property that does not hold.
  public let property: QueueProperty
  /// What happened instead.
  public let happened: String
  /// The shortest sequence that was found to fail.
  public let operations: [QueueOperation]

  init(seed: UInt64?, _ failed: FailedSequence) {
    self.seed = seed
    property = failed.violation.property
    happened = failed.violation.text
    operations = failed.operations
  }

  /// The property, what happened, and the sequence as Swift source.
  public var description: String {
    let from = seed.map { " (seed \($0))" } ?? ""
    let list = operations.map { "  \($0),\n" }.joined()
    return "QueueProperties\(from): not so: \(property.rawValue)\n  happened: \(happened)\n  after:\n[\n\(list)]"
  }
}

/// A sequence that fails, and why.
struct FailedSequence: Sendable {
  var operations: [QueueOperation]
  var violation: Violation
}

extension Violation {
  fileprivate init(_ error: any Error, after operation: QueueOperation?) {
    if let violation = error as? Violation {
      self = violation
    } else {
      self.init(property: .response, text: "\(operation.map { "\($0)" } ?? "opening"): \(error)")
    }
  }
}
