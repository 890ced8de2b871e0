import Dispatch
import DownpipeCore
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// One task of a session: waits for the head of its answer, then pushes its body.
///
/// Foundation's calls come on the delegate queue, one after the other. The first outcome counts, and whoever
/// waits hears of it as soon as the sink is not running.
final class Transfer: Sendable {
  /// The head of an answer.
  struct Answer: Sendable {
    var status: Int
    var headers: HeaderFields
  }

  private enum Phase {
    /// Nobody reads yet: chunks are kept.
    case waiting
    /// The kept chunks are being pushed; newer ones wait.
    case draining
    /// Chunks go to the sink as they come.
    case flowing
    /// Nothing goes to the sink any more.
    case over
  }

  private struct State {
    var phase = Phase.waiting
    var task: URLSessionTask?
    var answer: Answer?
    var kept: [Data] = []
    var keptBytes = 0
    var sink: ChunkSink?
    var isInSink = false
    var outcome: Result<Void, any Error>?
    var answerWaiter: CheckedContinuation<Answer, any Error>?
    var bodyWaiter: CheckedContinuation<Void, any Error>?
    let begun: ContinuousClock.Instant
    var lastActivity: ContinuousClock.Instant
  }

  /// What is kept of a body that nobody reads.
  private static let maximumKept = 1 << 20

  private let state: Mutex<State>
  private let limits: URLSessionSource.Configuration
  private let deadline: ContinuousClock.Instant?
  private let session: TransferSession
  /// Signalled whenever a chunk that waits may have got its turn.
  private let turn = DispatchSemaphore(value: 0)

  init(_ limits: URLSessionSource.Configuration, deadline: ContinuousClock.Instant?, session: TransferSession) {
    self.limits = limits
    self.deadline = deadline
    self.session = session
    let now = ContinuousClock.now
    state = Mutex(State(begun: now, lastActivity: now))
  }

  // MARK: For the one who asks

  /// The head of the answer.
  func answer() async throws -> Answer {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let result = state.withLock { state -> Result<Answer, any Error>? in
          if let answer = state.answer { return .success(answer) }
          if let outcome = state.outcome { return Self.answer(for: outcome) }
          state.answerWaiter = continuation
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      fail(CancellationError())
    }
  }

  /// Pushes the body and returns after its last chunk.
  func push(to sink: @escaping ChunkSink) async throws {
    try await withTaskCancellationHandler {
      try Task.checkCancellation()
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        let canStart = state.withLock { state in
          guard state.phase == .waiting else { return false }
          state.phase = .draining
          state.sink = sink
          state.bodyWaiter = continuation
          return true
        }
        if canStart {
          // A sink may block, which the threads of Swift's concurrency must not.
          DispatchQueue.global().async { self.drain() }
        } else {
          let outcome = state.withLock { $0.outcome }
          let error = outcome?.failure ?? DownloadError(.cancelled, "the reply was discarded or has been read already")
          continuation.resume(throwing: error)
        }
      }
    } onCancel: {
      fail(CancellationError())
    }
  }

  /// Ends the request; nothing happens when it is over.
  func discard() { fail(DownloadError(.cancelled, "the reply was discarded")) }

  /// Whether nothing is to be asked for any more.
  var isOver: Bool { state.withLock { $0.outcome != nil } }

  /// Ends the transfer with an error, unless it has ended already.
  func fail(_ error: any Error) { settle(.failure(error)) }

  // MARK: For the session

  /// Notes the task; cancels it when the transfer is over already.
  func bind(_ task: URLSessionTask) {
    let isOver = state.withLock { state in
      state.task = task
      return state.outcome != nil
    }
    if isOver { session.cancel(task) }
  }

  /// Ends the transfer when a time limit has run out.
  func checkTime(_ now: ContinuousClock.Instant) {
    let error = state.withLock { state -> DownloadError? in
      guard state.outcome == nil else { return nil }
      if let deadline, now > deadline {
        return DownloadError(.timedOut, "the transfer took longer than \(limits.totalTimeLimit ?? .zero) in all")
      }
      if state.answer == nil {
        guard now - state.begun > limits.connectTimeLimit else { return nil }
        return DownloadError(.timedOut, "the server did not answer within \(limits.connectTimeLimit)")
      }
      // While chunks wait for their turn it is not the server that is slow.
      guard !state.isInSink, state.phase != .draining, state.keptBytes < Self.maximumKept,
        now - state.lastActivity > limits.idleTimeLimit
      else { return nil }
      return DownloadError(.timedOut, "the server sent nothing for \(limits.idleTimeLimit)")
    }
    if let error { fail(error) }
  }

  // MARK: For the delegate

  func didReceive(_ response: HTTPURLResponse) {
    // Interim answers (RFC 9110 §15.2), which Linux shows like final ones.
    guard response.statusCode >= 200 else { return }
    let answer = Answer(status: response.statusCode, headers: HeaderFields(response))
    #if canImport(FoundationNetworking)
      if answer.headers["Trailer"] != nil {
        // Foundation ends the process when the trailer comes. A longer body leaves time to prevent that.
        return fail(
          DownloadError(
            .invalidResponse, "the answer announces a trailer, which URLSession cannot take on Linux: use HTTPSource"))
      }
    #endif
    let waiter = state.withLock { state in
      state.lastActivity = .now
      guard state.answer == nil, state.outcome == nil else { return nil as CheckedContinuation<Answer, any Error>? }
      state.answer = answer
      return state.answerWaiter.take()
    }
    waiter?.resume(returning: answer)
  }

  /// Takes a chunk, and returns when it is dealt with.
  func didReceive(_ data: Data) {
    guard !data.isEmpty else { return }
    enum Step {
      case push(ChunkSink)
      case wait(until: DispatchTime?)
      case done
    }
    var patience: DispatchTime?
    while true {
      let step = state.withLock { state -> Step in
        state.lastActivity = .now
        if state.outcome != nil { return .done }
        switch state.phase {
        case .waiting where state.keptBytes + data.count <= Self.maximumKept || state.kept.isEmpty:
          state.kept.append(data)
          state.keptBytes += data.count
          return .done
        case .waiting:
          let limit =
            patience ?? .now() + .nanoseconds(Int(min(.seconds(3600), limits.unreadTimeLimit) / .nanoseconds(1)))
          patience = limit
          return .wait(until: limit)
        case .draining: return .wait(until: nil)
        case .flowing:
          guard let sink = state.sink else { return .done }
          state.isInSink = true
          return .push(sink)
        case .over: return .done
        }
      }
      switch step {
      case .done: return
      case .push(let sink):
        do {
          try data.forEachRegion(sink)
          leaveSink(nil)
        } catch {
          leaveSink(error)
        }
        return
      case .wait(nil): turn.wait()
      case .wait(let limit?):
        // Somebody may have begun to read in the last moment: then it is `drain` that is waited for.
        if turn.wait(timeout: limit) == .timedOut, state.withLock({ $0.phase == .waiting }) {
          return fail(
            DownloadError(
              .network, "the reply was not read within \(limits.unreadTimeLimit) and had to be ended: read it sooner"))
        }
      }
    }
  }

  /// The task is at its end.
  func didComplete(_ error: (any Error)?) {
    if let error {
      settle(.failure(DownloadError(transport: error)))
    } else if state.withLock({ $0.answer == nil }) {
      settle(.failure(DownloadError(.invalidResponse, "the connection ended without an HTTP answer")))
    } else {
      settle(.success(()))
    }
  }

  // MARK: The flow

  /// Pushes what was kept, then lets chunks through.
  private func drain() {
    while true {
      let next = state.withLock { state -> (Data, ChunkSink)? in
        // What arrived before a failure is still good, unless nobody wants it any more.
        guard !state.kept.isEmpty, let sink = state.sink, !Self.isCancellation(state.outcome) else {
          state.kept = []
          state.keptBytes = 0
          state.phase = .flowing
          return nil
        }
        state.isInSink = true
        let data = state.kept.removeFirst()
        state.keptBytes -= data.count
        return (data, sink)
      }
      guard let (data, sink) = next else { break }
      do {
        try data.forEachRegion(sink)
        state.withLock { state in
          state.isInSink = false
          state.lastActivity = .now
        }
      } catch {
        state.withLock { state in
          state.kept = []
          state.keptBytes = 0
        }
        leaveSink(error)
      }
    }
    turn.signal()
    report()
  }

  /// The sink has returned, or thrown.
  private func leaveSink(_ error: (any Error)?) {
    state.withLock { state in
      state.isInSink = false
      state.lastActivity = .now
    }
    if let error { fail(error) } else { report() }
  }

  /// Notes how the transfer ended, if it has not ended yet, and stops its task if it runs.
  private func settle(_ outcome: Result<Void, any Error>) {
    let (isFirst, task, waiter) = state.withLock {
      state -> (Bool, URLSessionTask?, CheckedContinuation<Answer, any Error>?) in
      guard state.outcome == nil else { return (false, nil, nil) }
      state.outcome = outcome
      if Self.isCancellation(outcome) {
        state.kept = []
        state.keptBytes = 0
      }
      return (true, state.task, state.answerWaiter.take())
    }
    guard isFirst else { return }
    if case .failure = outcome, let task { session.cancel(task) }
    waiter?.resume(with: Self.answer(for: outcome))
    turn.signal()
    report()
  }

  /// Tells the one who reads, once everything before the end has gone through the sink.
  private func report() {
    let (waiter, outcome) = state.withLock {
      state -> (CheckedContinuation<Void, any Error>?, Result<Void, any Error>?) in
      guard let outcome = state.outcome, !state.isInSink, state.phase == .flowing else { return (nil, nil) }
      state.phase = .over
      state.sink = nil
      return (state.bodyWaiter.take(), outcome)
    }
    if let waiter, let outcome { waiter.resume(with: outcome) }
  }

  private static func isCancellation(_ outcome: Result<Void, any Error>?) -> Bool {
    guard let error = outcome?.failure else { return false }
    let code = (error as? DownloadError)?.code
    return error is CancellationError || code == .cancelled || code == .shutDown
  }

  private static func answer(for outcome: Result<Void, any Error>) -> Result<Answer, any Error> {
    .failure(outcome.failure ?? DownloadError(.invalidResponse, "the connection ended without an HTTP answer"))
  }
}
