import AsyncHTTPClient
import DownpipeCore
import NIOCore
import NIOHTTP1
import Synchronization

/// One request and its answer: the delegate through which AsyncHTTPClient pushes.
///
/// Until somebody reads the body, what came along with the head is held, and after ``heldBytes`` no more is asked
/// for: a connection that breaks in that moment loses nothing. Then every part goes to the sink on the event loop,
/// as it was read. The delegate's methods all run on that loop; ``start(_:_:on:deadline:)``, ``push(into:)``,
/// ``drain(atMost:)`` and ``cancel(_:)`` come from anywhere, hence the mutex.
final class HTTPExchange: HTTPClientResponseDelegate {
  typealias Response = Void

  private static let heldBytes = 64 * 1024

  private struct Reader {
    var sink: ChunkSink
    var continuation: CheckedContinuation<Void, any Error>
  }

  /// The head is there; what of the body is there too.
  private struct Held {
    var parts: [ByteBuffer] = []
    var bytes = 0
    /// Lets more come.
    var paused: EventLoopPromise<Void>?
    /// How it ended, when it has.
    var outcome: Result<Void, any Error>?
    /// Who will read, as soon as the event loop gets to it.
    var reader: Reader?
  }

  private enum Phase {
    /// Nothing was sent.
    case new
    /// Somebody waits for the head.
    case asking(CheckedContinuation<HTTPResponseHead, any Error>)
    case holding(Held)
    case pushing(Reader)
    /// Reads so many bytes more and forgets them.
    case draining(Int, CheckedContinuation<Void, Never>)
    /// Why there is nothing to read.
    case finished(any Error)
  }

  private struct State {
    var phase = Phase.new
    var task: HTTPClient.Task<Void>?
    /// Why it is to end. Set once; it wins over whatever the transport reports as a consequence.
    var stopReason: (any Error)?
    var received: Int64 = 0
  }

  private let session: HTTPSession
  private let lane: HTTPSession.Lane
  private let silence: SilenceWatch?
  private let state = Mutex(State())

  init(session: HTTPSession, lane: HTTPSession.Lane) {
    self.session = session
    self.lane = lane
    silence = session.configuration.idleTimeLimit.map {
      SilenceWatch(limit: TimeAmount(clamping: $0), eventLoop: lane.eventLoop)
    }
  }

  // MARK: From outside

  /// Sends the request and returns the final answer's head.
  func start(
    _ client: HTTPClient, _ request: HTTPClient.Request, deadline: NIODeadline?
  ) async throws -> HTTPResponseHead {
    try session.began(self, on: lane)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let stopReason = state.withLock { state in
          // Cancelled before it began: latched.
          state.phase = state.stopReason.map { .finished($0) } ?? .asking(continuation)
          return state.stopReason
        }
        if let stopReason {
          session.ended(self, on: lane)
          continuation.resume(throwing: stopReason)
          return
        }
        let task = client.execute(request: request, delegate: self, deadline: deadline)
        let cancelled = state.withLock { state in
          state.task = task
          return state.stopReason
        }
        if let cancelled { task.fail(reason: cancelled) }
        task.futureResult.whenComplete { self.completed($0) }
      }
    } onCancel: {
      cancel(CancellationError())
    }
  }

  /// Lets the body come.
  func push(into sink: @escaping ChunkSink) async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let failure = state.withLock { state -> (any Error)? in
          switch state.phase {
          case .holding(var held) where held.reader == nil:
            held.reader = Reader(sink: sink, continuation: continuation)
            state.phase = .holding(held)
            return nil
          case .finished(let error): return error
          default: return Self.readTwice
          }
        }
        if let failure {
          continuation.resume(throwing: failure)
        } else {
          // On the loop nothing comes between the parts that were held and those that follow.
          lane.eventLoop.execute { self.beginPushing() }
        }
      }
    } onCancel: {
      cancel(CancellationError())
    }
  }

  /// Reads a body that nobody wants, if it is short, so that the connection can be used again. Returns when that is
  /// done or given up.
  func drain(atMost bytes: Int) async {
    // A short body that takes long is not worth a connection either.
    let timer = lane.eventLoop.scheduleTask(in: .seconds(1)) { self.cancel(Self.unwanted) }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let held = state.withLock { state -> Held? in
          guard case .holding(let held) = state.phase, held.outcome == nil, held.bytes <= bytes,
            state.stopReason == nil
          else { return nil }
          state.phase = .draining(bytes - held.bytes, continuation)
          return held
        }
        if let held {
          held.paused?.succeed(())
        } else {
          cancel(Self.unwanted)
          continuation.resume()
        }
      }
    } onCancel: {
      cancel(CancellationError())
    }
    timer.cancel()
  }

  /// Ends the exchange if nobody has begun to read its body.
  func abandon() {
    let isUnread = state.withLock { state in
      if case .holding(let held) = state.phase { held.reader == nil } else { false }
    }
    if isUnread { cancel(DownloadError(.cancelled, "the body was dropped unread")) }
  }

  /// Ends the exchange, whatever it is doing, with an error for whoever waits. Too late it does nothing.
  func cancel(_ reason: any Error) {
    enum Means {
      case none
      case transport(HTTPClient.Task<Void>?, EventLoopPromise<Void>?)
      case reader(Reader?)
    }
    let means = state.withLock { state -> Means in
      if case .finished = state.phase { return .none }
      guard state.stopReason == nil else { return .none }
      state.stopReason = reason
      guard case .holding(let held) = state.phase else { return .transport(state.task, nil) }
      // While a part's future is open the client ends a request only through that future.
      guard held.outcome != nil else { return .transport(state.task, held.paused) }
      state.phase = .finished(reason)
      return .reader(held.reader)
    }
    switch means {
    case .none: break
    case .transport(let task, let promise):
      promise?.fail(reason)
      task?.fail(reason: reason)
    case .reader(let reader):
      session.ended(self, on: lane)
      reader?.continuation.resume(throwing: reason)
    }
  }

  // MARK: From the event loop

  func didSendRequestHead(task: HTTPClient.Task<Void>, _ head: HTTPRequestHead) {
    silence?.begin { self.cancel($0) }
  }

  func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
    silence?.rest()
    let result = state.withLock { state -> Result<CheckedContinuation<HTTPResponseHead, any Error>, any Error> in
      if let reason = state.stopReason { return .failure(reason) }
      guard case .asking(let continuation) = state.phase else { return .failure(Self.unwanted) }
      state.phase = .holding(Held())
      return .success(continuation)
    }
    switch result {
    case .success(let continuation):
      continuation.resume(returning: head)
      return task.eventLoop.makeSucceededVoidFuture()
    case .failure(let reason):
      return task.eventLoop.makeFailedFuture(reason)
    }
  }

  func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
    enum Use {
      case push(ChunkSink)
      case hold(EventLoopPromise<Void>?)
      case forget
      case fail(any Error)
    }
    let count = buffer.readableBytes
    let use = state.withLock { state -> Use in
      if let reason = state.stopReason { return .fail(reason) }
      state.received += Int64(count)
      switch state.phase {
      case .pushing(let reader): return .push(reader.sink)
      case .holding(var held):
        held.parts.append(buffer)
        held.bytes += count
        if held.bytes >= Self.heldBytes { held.paused = task.eventLoop.makePromise() }
        state.phase = .holding(held)
        return .hold(held.paused)
      case .draining(let left, let continuation) where count <= left:
        state.phase = .draining(left - count, continuation)
        return .forget
      default: return .fail(Self.unwanted)
      }
    }
    switch use {
    case .push(let sink):
      do {
        if count > 0 { try sink(buffer.readableBytesSpan) }
        silence?.wait()
      } catch {
        return task.eventLoop.makeFailedFuture(stopped(by: error))
      }
    case .hold(let promise?): return promise.futureResult
    case .hold(nil), .forget: break
    case .fail(let error): return task.eventLoop.makeFailedFuture(error)
    }
    return task.eventLoop.makeSucceededVoidFuture()
  }

  func didFinishRequest(task: HTTPClient.Task<Void>) throws {}

  /// Gives the reader what was held, and then lets the rest come.
  private func beginPushing() {
    let (held, task) = state.withLock { state -> (Held?, HTTPClient.Task<Void>?) in
      guard case .holding(let held) = state.phase, let reader = held.reader else { return (nil, nil) }
      state.phase = .pushing(reader)
      return (held, state.task)
    }
    guard let held, let reader = held.reader else { return }
    do {
      for part in held.parts where part.readableBytes > 0 {
        if let reason = state.withLock({ $0.stopReason }) { throw reason }
        try reader.sink(part.readableBytesSpan)
      }
    } catch {
      let reason = stopped(by: error)
      if held.outcome != nil { return finished(.failure(reason)) }
      held.paused?.fail(reason)
      task?.fail(reason: reason)
      return
    }
    if let outcome = held.outcome { return finished(outcome) }
    silence?.wait()
    held.paused?.succeed(())
  }

  /// Notes why it is to end, unless that is clear already.
  private func stopped(by error: any Error) -> any Error {
    state.withLock { state in
      let reason = state.stopReason ?? error
      state.stopReason = reason
      return reason
    }
  }

  /// The transport's last word.
  private func completed(_ result: Result<Void, any Error>) {
    silence?.end()
    let (paused, outcome) = state.withLock { state in
      var paused: EventLoopPromise<Void>?
      var outcome: Result<Void, any Error>? = result.mapError { error in
        let hasHead = if case .asking = state.phase { false } else { true }
        return state.stopReason ?? HTTPFailure.downloadError(error, received: hasHead ? state.received : nil)
      }
      if case .holding(var held) = state.phase {
        paused = held.paused
        if state.stopReason == nil {
          // What is held is still to be read, and the end after it.
          held.paused = nil
          held.outcome = outcome
          state.phase = .holding(held)
          outcome = nil
        }
      }
      state.task = nil
      return (paused, outcome)
    }
    paused?.fail(Self.unwanted)
    if let outcome { finished(outcome) }
  }

  /// The end, good or bad, of which there is exactly one.
  private func finished(_ outcome: Result<Void, any Error>) {
    let phase = state.withLock { state in
      let phase = state.phase
      if case .failure(let error) = outcome {
        state.phase = .finished(error)
      } else {
        state.phase = .finished(Self.readTwice)
      }
      return phase
    }
    if case .finished = phase { return }
    session.ended(self, on: lane)
    switch phase {
    case .asking(let continuation):
      switch outcome {
      case .success: continuation.resume(throwing: Self.unwanted)
      case .failure(let error): continuation.resume(throwing: error)
      }
    case .pushing(let reader): reader.continuation.resume(with: outcome)
    case .holding(let held): held.reader?.continuation.resume(with: outcome)
    case .draining(_, let continuation): continuation.resume()
    case .new, .finished: break
    }
  }

  private static let readTwice = DownloadError(.invalidRequest, "a body can be read once only")
  private static let unwanted = DownloadError(.cancelled, "nobody wants the rest of this answer")
}
