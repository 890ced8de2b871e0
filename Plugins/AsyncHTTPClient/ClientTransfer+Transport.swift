#if AsyncHTTPClient
  import AsyncHTTPClient
  import DownpipeCore
  import NIOCore
  import NIOHTTP1
  import Synchronization

  // The calls of AsyncHTTPClient, all on the event loop.
  extension ClientTransfer: HTTPClientResponseDelegate {
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
        case push(Reader)
        case hold(EventLoopPromise<Void>?)
        case forget
        case fail(any Error)
      }
      let count = buffer.readableBytes
      let use = state.withLock { state -> Use in
        if let reason = state.stopReason { return .fail(reason) }
        state.received += Int64(count)
        switch state.phase {
        case .pushing(let reader): return .push(reader)
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
      case .push(let reader):
        do {
          if count > 0 { try reader.sink(buffer.readableBytesSpan) }
          if let pause = pause(reader, after: count, on: task.eventLoop) { return pause }
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

    /// Pauses the connection if the transfer is too fast for its pace; `nil` if it is not.
    private func pause(_ reader: Reader, after count: Int, on loop: any EventLoop) -> EventLoopFuture<Void>? {
      let pause = reader.pace.pause(after: count)
      guard pause > .zero else { return nil }
      silence?.rest()
      let promise = loop.makePromise(of: Void.self)
      let reason = state.withLock { state -> (any Error)? in
        guard case .pushing(var reader) = state.phase else { return Self.unwanted }
        if let reason = state.stopReason { return reason }
        reader.paused = promise
        state.phase = .pushing(reader)
        return nil
      }
      if let reason { promise.fail(reason) } else { wait(pause, promise, on: loop) }
      return promise.futureResult
    }

    private func wait(_ pause: Duration, _ promise: EventLoopPromise<Void>, on loop: any EventLoop) {
      loop.scheduleTask(in: TimeAmount(clamping: pause)) {
        // Ended meanwhile: the promise has failed.
        guard case .pushing(let reader) = self.state.withLock({ $0.phase }), reader.paused != nil else { return }
        let more = reader.pace.pause(after: 0)
        if more > .zero { return self.wait(more, promise, on: loop) }
        let isOver = self.state.withLock { state in
          guard case .pushing(var reader) = state.phase, state.stopReason == nil else { return true }
          reader.paused = nil
          state.phase = .pushing(reader)
          return false
        }
        if isOver { return }
        self.silence?.wait()
        promise.succeed(())
      }
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
          // The next part pays for these: they are few.
          _ = reader.pace.pause(after: part.readableBytes)
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
        if case .pushing(let reader) = state.phase { paused = reader.paused }
        state.task = nil
        return (paused, outcome)
      }
      paused?.fail(Self.unwanted)
      if let outcome { finished(outcome) }
    }

    /// Ends the transfer and resumes the waiting caller; later calls have no effect.
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
      session.ended(self, on: loop)
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
#endif
