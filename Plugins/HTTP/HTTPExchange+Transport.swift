import AsyncHTTPClient
import DownpipeCore
import NIOCore
import NIOHTTP1
import Synchronization

// The calls of AsyncHTTPClient, all on the event loop.
extension HTTPExchange: HTTPClientResponseDelegate {
  typealias Response = Void

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

  /// Pushes the buffered parts, then lets the rest through.
  func beginPushing() {
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

  /// Sets the reason to end unless there is one, and returns it.
  private func stopped(by error: any Error) -> any Error {
    state.withLock { state in
      let reason = state.stopReason ?? error
      state.stopReason = reason
      return reason
    }
  }

  /// The request is over for the transport.
  func completed(_ result: Result<Void, any Error>) {
    silence?.end()
    let (paused, outcome) = state.withLock { state in
      var paused: EventLoopPromise<Void>?
      var outcome: Result<Void, any Error>? = result.mapError { error in
        let hasHead = if case .asking = state.phase { false } else { true }
        return state.stopReason
          ?? HTTPFailure.downloadError(
            error, received: hasHead ? state.received : nil, limits: session.configuration)
      }
      if case .holding(var held) = state.phase {
        paused = held.paused
        if state.stopReason == nil {
          // The buffered parts and then the outcome are still to be delivered.
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

  /// Ends the exchange and resumes the waiting caller; later calls have no effect.
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
}
