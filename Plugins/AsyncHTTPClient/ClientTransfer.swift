#if AsyncHTTPClient
  import AsyncHTTPClient
  import DownpipeCore
  import NIOCore
  import NIOHTTP1
  import Synchronization

  /// One request and its response.
  ///
  /// Until the body is read, the parts that arrive are buffered; after ``heldBytes`` reading from the connection
  /// pauses. A connection that breaks meanwhile loses nothing. Then every part goes to the sink on the event loop, as
  /// it was read. AsyncHTTPClient calls the delegate methods on that loop; ``start(_:_:deadline:)``,
  /// ``push(into:pace:)``, ``drain(atMost:)`` and ``cancel(_:)`` can be called on any thread, hence the mutex.
  final class ClientTransfer: Sendable {
    let session: HTTPSession
    let loop: HTTPSession.LoopClient
    let silence: SilenceWatch?
    let state = Mutex(State())

    init(session: HTTPSession, loop: HTTPSession.LoopClient) {
      self.session = session
      self.loop = loop
      silence = session.configuration.idleTimeLimit.map {
        SilenceWatch(limit: TimeAmount(clamping: $0), eventLoop: loop.eventLoop)
      }
    }

    /// Sends the request and returns the head of the response.
    func start(
      _ client: HTTPClient, _ request: HTTPClient.Request, deadline: NIODeadline?
    ) async throws -> HTTPResponseHead {
      try session.began(self, on: loop)
      return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          let stopReason = state.withLock { state in
            // A cancellation before the start is latched.
            state.phase = state.stopReason.map { .finished($0) } ?? .asking(continuation)
            return state.stopReason
          }
          if let stopReason {
            session.ended(self, on: loop)
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

    /// Pushes the body and returns after its last part.
    func push(into sink: @escaping ChunkSink, pace: TransferPace) async throws {
      try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          let failure = state.withLock { state -> (any Error)? in
            switch state.phase {
            case .holding(var held) where held.reader == nil:
              held.reader = Reader(sink: sink, pace: pace, continuation: continuation)
              state.phase = .holding(held)
              return nil
            case .finished(let error): return error
            default: return Self.readTwice
            }
          }
          if let failure {
            continuation.resume(throwing: failure)
          } else {
            // On the loop no part can arrive between the buffered parts and the later ones.
            loop.eventLoop.execute { self.beginPushing() }
          }
        }
      } onCancel: {
        cancel(CancellationError())
      }
    }

    /// Reads and drops the body if it is short, so that the connection can be used again. Returns when that has
    /// succeeded or failed.
    func drain(atMost bytes: Int) async {
      // Waiting long for a short body would cost more than a new connection.
      let timer = loop.eventLoop.scheduleTask(in: .seconds(1)) { self.cancel(Self.unwanted) }
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

    /// Ends the transfer unless its body is being read.
    func abandon() {
      let isUnread = state.withLock { state in
        if case .holding(let held) = state.phase { held.reader == nil } else { false }
      }
      if isUnread { cancel(DownloadError(.cancelled, "the body was dropped unread")) }
    }

    /// Ends the transfer in any phase; waiting callers get the error. Has no effect after the end.
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
        if case .pushing(let reader) = state.phase { return .transport(state.task, reader.paused) }
        guard case .holding(let held) = state.phase else { return .transport(state.task, nil) }
        // While the future of a part is unresolved, the client can end the request only through that future.
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
        session.ended(self, on: loop)
        reader?.continuation.resume(throwing: reason)
      }
    }

    static let readTwice = DownloadError(.invalidRequest, "a body can be read only once")
    static let unwanted = DownloadError(.cancelled, "the rest of this response is not needed")
  }
#endif
