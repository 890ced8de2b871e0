import DownpipeCore
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// What a ``TaskTransfer`` knows: the response, the outcome, and how far the body has come. A value, guarded by its lock.
struct TransferState {
  /// The head of a response.
  struct Answer: Sendable {
    var status: Int
    var headers: HeaderFields
  }

  enum Phase {
    /// The body is not being read: chunks are buffered.
    case waiting
    /// The buffered chunks are being pushed; new ones wait.
    case draining
    /// Chunks go to the sink as they arrive.
    case flowing
    /// The sink receives nothing more.
    case over
  }

  /// What happens to a chunk that has arrived.
  enum Step {
    case push(ChunkSink)
    case wait(until: DispatchTime?)
    case done
  }

  /// How much of an unread body is buffered.
  static let maximumKept = 1 << 20

  private(set) var phase = Phase.waiting
  var task: URLSessionTask?
  private(set) var answer: Answer?
  private(set) var outcome: Result<Void, any Error>?
  var answerWaiter: CheckedContinuation<Answer, any Error>?
  private var bodyWaiter: CheckedContinuation<Void, any Error>?
  private var kept: [Data] = []
  private var keptBytes = 0
  private var sink: ChunkSink?
  private var isInSink = false
  private let begun: ContinuousClock.Instant
  private var lastActivity: ContinuousClock.Instant

  init(begun: ContinuousClock.Instant) {
    self.begun = begun
    lastActivity = begun
  }

  /// Notes the head of the response; returns the continuation that waits for it.
  mutating func receive(_ answer: Answer) -> CheckedContinuation<Answer, any Error>? {
    lastActivity = .now
    guard self.answer == nil, outcome == nil else { return nil }
    self.answer = answer
    return answerWaiter.take()
  }

  /// Starts reading; returns `false` when the body was read or discarded before.
  mutating func startReading(_ sink: @escaping ChunkSink, _ waiter: CheckedContinuation<Void, any Error>) -> Bool {
    guard phase == .waiting else { return false }
    phase = .draining
    self.sink = sink
    bodyWaiter = waiter
    return true
  }

  /// Decides what happens to a chunk. `patience` is the end of the wait for a reader, set on the first wait.
  mutating func step(for data: Data, patience: inout DispatchTime?, unreadTimeLimit: Duration) -> Step {
    lastActivity = .now
    if outcome != nil { return .done }
    switch phase {
    case .waiting where keptBytes + data.count <= Self.maximumKept || kept.isEmpty:
      kept.append(data)
      keptBytes += data.count
      return .done
    case .waiting:
      let limit = patience ?? .now() + .nanoseconds(Int(min(.seconds(3600), unreadTimeLimit) / .nanoseconds(1)))
      patience = limit
      return .wait(until: limit)
    case .draining: return .wait(until: nil)
    case .flowing:
      guard let sink else { return .done }
      isInSink = true
      return .push(sink)
    case .over: return .done
    }
  }

  /// The next buffered chunk for the sink. After the last one, later chunks go to the sink directly.
  mutating func nextKept() -> (Data, ChunkSink)? {
    // Chunks that arrived before a failure are valid; after a cancellation they are not wanted.
    guard !kept.isEmpty, let sink, !Self.isCancellation(outcome) else {
      dropKept()
      phase = .flowing
      return nil
    }
    isInSink = true
    let data = kept.removeFirst()
    keptBytes -= data.count
    return (data, sink)
  }

  mutating func dropKept() {
    kept = []
    keptBytes = 0
  }

  /// The sink has returned or thrown.
  mutating func leaveSink() {
    isInSink = false
    lastActivity = .now
  }

  /// Sets the outcome; returns `false` when there is one already.
  mutating func settle(_ outcome: Result<Void, any Error>) -> Bool {
    guard self.outcome == nil else { return false }
    self.outcome = outcome
    if Self.isCancellation(outcome) { dropKept() }
    return true
  }

  /// Ends the body once there is an outcome and the sink has had everything before it; returns the reader to resume.
  mutating func finishBody() -> (waiter: CheckedContinuation<Void, any Error>?, outcome: Result<Void, any Error>)? {
    guard let outcome, !isInSink, phase == .flowing else { return nil }
    phase = .over
    sink = nil
    return (bodyWaiter.take(), outcome)
  }

  /// The time limit that has been exceeded, if any.
  func exceededLimit(
    _ limits: URLSessionSource.Configuration, deadline: ContinuousClock.Instant?, now: ContinuousClock.Instant
  ) -> DownloadError? {
    guard outcome == nil else { return nil }
    if let deadline, now > deadline {
      let limit = limits.totalTimeLimit.map { " of \($0.inSeconds)" } ?? ""
      return DownloadError(
        .timedOut, "the response was not complete within the time limit\(limit); try again later, or allow more time")
    }
    if answer == nil {
      guard now - begun > limits.connectTimeLimit else { return nil }
      let limit = limits.connectTimeLimit.inSeconds
      return DownloadError(.timedOut, "the server did not answer within the time limit of \(limit); try again later")
    }
    // While chunks wait for the sink, the server is not the slow side.
    guard !isInSink, phase != .draining, keptBytes < Self.maximumKept, now - lastActivity > limits.idleTimeLimit else {
      return nil
    }
    return DownloadError(.timedOut, "the server sent nothing for \(limits.idleTimeLimit.inSeconds); try again later")
  }

  private static func isCancellation(_ outcome: Result<Void, any Error>?) -> Bool {
    guard let error = outcome?.failure else { return false }
    let code = (error as? DownloadError)?.code
    return error is CancellationError || code == .cancelled || code == .shutDown
  }
}
