import Dispatch
import DownpipeCore
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// One task of a session: waits for the head of its response, then pushes its body.
///
/// Foundation calls it on the delegate queue, one call at a time. The first outcome counts; waiting callers get it as
/// soon as the sink is not running.
final class TaskTransfer: Sendable {
  typealias Answer = TransferState.Answer

  private let state: Mutex<TransferState>
  private let limits: URLSessionSource.Configuration
  private let deadline: ContinuousClock.Instant?
  private let pace: TransferPace
  private let session: TransferSession
  /// Signalled whenever a waiting chunk may proceed.
  private let turn = DispatchSemaphore(value: 0)

  init(
    _ limits: URLSessionSource.Configuration, deadline: ContinuousClock.Instant?, pace: TransferPace,
    session: TransferSession
  ) {
    self.limits = limits
    self.deadline = deadline
    self.pace = pace
    self.session = session
    state = Mutex(TransferState(begun: .now))
  }

  // MARK: For the opening

  /// Waits for the head of the response.
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
        if state.withLock({ $0.startReading(sink, continuation) }) {
          // A sink may block; the threads of Swift's concurrency must not.
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

  /// Ends the request; has no effect after the end.
  func discard() { fail(DownloadError(.cancelled, "the reply was discarded")) }

  var isOver: Bool { state.withLock { $0.outcome != nil } }

  /// Ends the transfer with an error, unless it has ended already.
  func fail(_ error: any Error) { settle(.failure(error)) }

  // MARK: For the session

  /// Sets the task; cancels it when the transfer is over already.
  func bind(_ task: URLSessionTask) {
    let isOver = state.withLock { state in
      state.task = task
      return state.outcome != nil
    }
    if isOver { session.cancel(task) }
  }

  /// Ends the transfer when it has exceeded a time limit.
  func checkTime(_ now: ContinuousClock.Instant) {
    if let error = state.withLock({ $0.exceededLimit(limits, deadline: deadline, now: now) }) { fail(error) }
  }

  // MARK: For the delegate

  func didReceive(_ response: HTTPURLResponse) {
    // Interim responses (RFC 9110 §15.2), which Linux reports like final ones.
    guard response.statusCode >= 200 else { return }
    let answer = Answer(status: response.statusCode, headers: HeaderFields(response))
    #if canImport(FoundationNetworking)
      if answer.headers["Trailer"] != nil {
        // Foundation ends the process when the trailer arrives. Unless the body is short, this comes in time.
        return fail(
          DownloadError(
            .invalidResponse,
            "the response announces a trailer, which URLSession does not support on Linux: use HTTPSource"))
      }
    #endif
    state.withLock { $0.receive(answer) }?.resume(returning: answer)
  }

  /// Takes a chunk; returns when it has been pushed, buffered or dropped.
  func didReceive(_ data: Data) {
    guard !data.isEmpty else { return }
    var patience: DispatchTime?
    while true {
      switch state.withLock({ $0.step(for: data, patience: &patience, unreadTimeLimit: limits.unreadTimeLimit) }) {
      case .done: return
      case .push(let sink):
        do {
          try data.forEachRegion(sink)
          keepPace(after: data.count)
          leaveSink(nil)
        } catch {
          leaveSink(error)
        }
        return
      case .wait(nil): turn.wait()
      case .wait(let limit?):
        // Reading may have started at the last moment: then the next wait is for `drain`.
        if turn.wait(timeout: limit) == .timedOut, state.withLock({ $0.phase == .waiting }) {
          return fail(
            DownloadError(
              .network,
              "the reply was not read within \(limits.unreadTimeLimit.inSeconds), so it was ended: read it sooner"))
        }
      }
    }
  }

  func didComplete(_ error: (any Error)?) {
    if let error {
      settle(.failure(DownloadError(transport: error)))
    } else if state.withLock({ $0.answer == nil }) {
      settle(.failure(DownloadError(.invalidResponse, "the connection ended without an HTTP response")))
    } else {
      settle(.success(()))
    }
  }

  // MARK: The body

  /// Pushes the buffered chunks, then lets new ones through.
  private func drain() {
    while let (data, sink) = state.withLock({ $0.nextKept() }) {
      do {
        try data.forEachRegion(sink)
        keepPace(after: data.count)
        state.withLock { $0.leaveSink() }
      } catch {
        state.withLock { $0.dropKept() }
        leaveSink(error)
      }
    }
    turn.signal()
    finishBody()
  }

  /// Blocks the delegate queue while the transfer is too fast for its pace. Other transfers of the session wait, too.
  private func keepPace(after bytes: Int) {
    var pause = pace.pause(after: bytes)
    while pause > .zero, !isOver {
      Thread.sleep(forTimeInterval: min(0.1, pause / .seconds(1)))
      pause = pace.pause(after: 0)
    }
  }

  private func leaveSink(_ error: (any Error)?) {
    state.withLock { $0.leaveSink() }
    if let error { fail(error) } else { finishBody() }
  }

  /// Sets the outcome unless there is one, and stops the task after a failure.
  private func settle(_ outcome: Result<Void, any Error>) {
    let (isFirst, task, waiter) = state.withLock {
      state -> (Bool, URLSessionTask?, CheckedContinuation<Answer, any Error>?) in
      guard state.settle(outcome) else { return (false, nil, nil) }
      return (true, state.task, state.answerWaiter.take())
    }
    guard isFirst else { return }
    if case .failure = outcome, let task { session.cancel(task) }
    waiter?.resume(with: Self.answer(for: outcome))
    turn.signal()
    finishBody()
  }

  private func finishBody() {
    guard let (waiter, outcome) = state.withLock({ $0.finishBody() }) else { return }
    waiter?.resume(with: outcome)
  }

  private static func answer(for outcome: Result<Void, any Error>) -> Result<Answer, any Error> {
    .failure(outcome.failure ?? DownloadError(.invalidResponse, "the connection ended without an HTTP response"))
  }
}
