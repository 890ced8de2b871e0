public import DownpipeCore

/// One operation of a random sequence on a queue; see ``QueueProperties``.
///
/// Downloads are named by a number from 0 to 7. An operation on a download that does not exist, or that is in no state
/// for it, has no effect, so that a sequence stays valid when operations are left out of it.
@_spi(Ledger) public enum QueueOperation: Sendable, Hashable {
  /// Adds a download, or adds it again.
  ///
  /// - Parameters:
  ///   - number: The number of the download. It determines its host, one of three, whether it has the tag `even`, and
  ///     its file, which the server announces with its length unless the number is 3 or 7.
  ///   - priority: Its priority.
  ///   - size: Its size hint in bytes, which may be wrong.
  ///   - deadline: Its deadline in seconds after the start of the sequence.
  case add(_ number: Int, priority: Priority = .normal, size: Int64? = nil, deadline: Int? = nil)
  /// Changes the priority of a download.
  case setPriority(_ number: Int, Priority)
  /// Pauses a download.
  case pause(_ number: Int)
  /// Resumes a download.
  case resume(_ number: Int)
  /// Starts a download by hand.
  case start(_ number: Int, preempting: Preemption = .none)
  /// Restarts a download.
  case restart(_ number: Int)
  /// Cancels a download.
  case cancel(_ number: Int)
  /// Removes a download.
  case remove(_ number: Int)
  /// Pauses all downloads, or those with the tag `even`.
  case pauseAll(even: Bool)
  /// Resumes all downloads, or those with the tag `even`.
  case resumeAll(even: Bool)
  /// Cancels all downloads, or those with the tag `even`.
  case cancelAll(even: Bool)
  /// Lets the transfer of a download finish, if it runs.
  case finish(_ number: Int)
  /// Makes the transfer of a download fail, if it runs. It is tried again at once, tried again from the first byte
  /// after a second, or given up, depending on the number of its attempts.
  case fail(_ number: Int)
  /// Replaces the limits. Downloads that run beyond lower limits stop or finish.
  case limit(QueueLimits, excess: Excess = .stops)
  /// Replaces the policy by another instance of itself, or by the order of arrival.
  case replacePolicy(byArrival: Bool)
  /// Opens or closes a gate that all downloads need.
  case gate(isOpen: Bool)
  /// Suspends all downloads, or ends that.
  case suspend(Bool)
  /// Advances the clock by a number of seconds.
  case advance(seconds: Int)
  /// Shuts the downloader down, and opens another one with the same ledger and storage.
  case reopen
  /// Waits until the engine has nothing left to do.
  case settle

  /// The number of downloads that sequences use.
  public static let downloads = 8
  /// The priorities that random sequences use, in ascending order.
  public static let priorities: [Priority] = [-100, -1, 0, 1, 100]
}

/// The limits of a simulated queue.
@_spi(Ledger) public struct QueueLimits: Sendable, Hashable {
  /// The most downloads that run at once.
  public var concurrent: Int
  /// The most downloads that run at once from one host.
  public var perHost: Int
  /// The most downloads with the tag `even` that run at once.
  public var even: Int

  /// Creates limits.
  public init(concurrent: Int, perHost: Int, even: Int) {
    self.concurrent = concurrent
    self.perHost = perHost
    self.even = even
  }

  /// Whether one more download may run beside the running ones.
  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Bool {
    running.total < concurrent && running.perHost[candidate.host, default: 0] < perHost
      && !(candidate.tags.contains("even") && running.perTag["even", default: 0] >= even)
  }

  /// Limits that permit what these or the others permit.
  func union(_ other: QueueLimits) -> QueueLimits {
    QueueLimits(
      concurrent: max(concurrent, other.concurrent), perHost: max(perHost, other.perHost), even: max(even, other.even))
  }
}

// MARK: Random sequences

extension QueueOperation {
  /// Returns the sequence of a seed.
  static func sequence(of seed: UInt64, count: Int) -> [QueueOperation] {
    var generator = SeededGenerator(seed: seed)
    var sequence: [QueueOperation] = []
    while sequence.count < count {
      let operation = random(using: &generator)
      // Which downloads new limits stop is known only if all that can run do run.
      if case .limit = operation, Bool.random(using: &generator) { sequence.append(.settle) }
      sequence.append(operation)
    }
    return sequence
  }

  private static func random(using generator: inout SeededGenerator) -> QueueOperation {
    let number = Int.random(in: 0..<downloads, using: &generator)
    let isOne = Bool.random(using: &generator)
    let priority = priorities.randomElement(using: &generator) ?? .normal
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<24:
      let size = isOne ? Int64.random(in: 0...4, using: &generator) * 2_000 : nil
      let deadline = Int.random(in: -20...100, using: &generator)
      return .add(number, priority: priority, size: size, deadline: deadline < 0 ? nil : deadline)
    case 24..<29: return .setPriority(number, priority)
    case 29..<33: return .pause(number)
    case 33..<37: return .resume(number)
    case 37..<42:
      return .start(number, preempting: [.none, .oldest, .lowestPriority].randomElement(using: &generator) ?? .none)
    case 42..<44: return .restart(number)
    case 44..<46: return .cancel(number)
    case 46..<48: return .remove(number)
    case 48: return .pauseAll(even: isOne)
    case 49..<51: return .resumeAll(even: isOne)
    case 51: return .cancelAll(even: isOne)
    case 52..<64: return .finish(number)
    case 64..<71: return .fail(number)
    case 71..<76:
      return .limit(
        QueueLimits(
          concurrent: Int.random(in: 1...4, using: &generator), perHost: Int.random(in: 1...3, using: &generator),
          even: Int.random(in: 1...3, using: &generator)),
        excess: Int.random(in: 0..<4, using: &generator) == 0 ? .finishes : .stops)
    case 76..<79: return .replacePolicy(byArrival: isOne)
    case 79..<82: return .gate(isOpen: Int.random(in: 0..<3, using: &generator) > 0)
    case 82..<85: return .suspend(Int.random(in: 0..<3, using: &generator) == 0)
    case 85..<90: return .advance(seconds: [1, 5, 40].randomElement(using: &generator) ?? 1)
    case 90: return .reopen
    default: return .settle
    }
  }
}

// MARK: Text

extension QueueOperation: CustomStringConvertible {
  /// The operation as Swift source.
  public var description: String {
    switch self {
    case .add(let number, let priority, let size, let deadline):
      var parts = ["\(number)"]
      if priority != .normal { parts.append("priority: \(priority.rawValue)") }
      if let size { parts.append("size: \(size)") }
      if let deadline { parts.append("deadline: \(deadline)") }
      return ".add(\(parts.joined(separator: ", ")))"
    case .setPriority(let number, let priority): return ".setPriority(\(number), \(priority.rawValue))"
    case .pause(let number): return ".pause(\(number))"
    case .resume(let number): return ".resume(\(number))"
    case .start(let number, .none): return ".start(\(number))"
    case .start(let number, let preemption): return ".start(\(number), preempting: .\(preemption))"
    case .restart(let number): return ".restart(\(number))"
    case .cancel(let number): return ".cancel(\(number))"
    case .remove(let number): return ".remove(\(number))"
    case .pauseAll(let even): return ".pauseAll(even: \(even))"
    case .resumeAll(let even): return ".resumeAll(even: \(even))"
    case .cancelAll(let even): return ".cancelAll(even: \(even))"
    case .finish(let number): return ".finish(\(number))"
    case .fail(let number): return ".fail(\(number))"
    case .limit(let limits, let excess):
      let numbers = "concurrent: \(limits.concurrent), perHost: \(limits.perHost), even: \(limits.even)"
      return ".limit(QueueLimits(\(numbers))" + (excess == .stops ? ")" : ", excess: .\(excess))")
    case .replacePolicy(let byArrival): return ".replacePolicy(byArrival: \(byArrival))"
    case .gate(let isOpen): return ".gate(isOpen: \(isOpen))"
    case .suspend(let isSuspended): return ".suspend(\(isSuspended))"
    case .advance(let seconds): return ".advance(seconds: \(seconds))"
    case .reopen: return ".reopen"
    case .settle: return ".settle"
    }
  }
}
