#if LIBCURL
  package import DownpipeCore
  import Synchronization

  /// One request and its response, for the tasks that wait for it. Its transfer runs on a thread.
  package final class PendingResponse: Sendable {
    private static let lastID = Atomic<Order.ID>(0)

    private let thread: CurlThread
    private let id: Order.ID
    /// Whether the thread has forgotten the transfer.
    private let isOver = Atomic(false)
    /// Why the response was ended before its body was read.
    private let end = Mutex<DownloadError?>(nil)
    /// The body, if it has come with the head and was not read. The thread has nothing of the response then.
    private let body = Mutex<(bytes: [UInt8], end: Body.End)?>(nil)
    /// Keeps the threads running.
    private let session: any AnyObject & Sendable

    package init(_ thread: CurlThread, of session: any AnyObject & Sendable) {
      self.thread = thread
      self.session = session
      id = Self.lastID.add(1, ordering: .relaxed).newValue
    }

    deinit {
      if !isOver.load(ordering: .relaxed) { thread.send(.discard(id)) }
    }

    /// Sends the request and returns the head of the response.
    package func start(_ makeOrder: (Order.ID) throws -> Order) async throws -> ResponseHead {
      let order = try makeOrder(id)
      var head = try await untilCancelled { continuation in
        thread.send(.start(order, continuation)) ? nil : { continuation.resume(throwing: Self.shutDown) }
      }
      if let whole = head.body.take() {
        isOver.store(true, ordering: .relaxed)
        body.withLock { $0 = whole }
      }
      return head
    }

    /// Pushes the body and returns after its last byte, with what is known then.
    @discardableResult package func push(
      into sink: @escaping ChunkSink, pace: TransferPace, limit: Int64?
    ) async throws -> Body.End {
      // The reply may be released while its body is read.
      defer { withExtendedLifetime(self) {} }
      try Task.checkCancellation()
      if let end = end.withLock({ $0 }) { throw end }
      if let whole = body.withLock({ $0.take() }) {
        // As if the thread had it still.
        if thread.isClosed { throw Self.shutDown }
        try Self.push(whole.bytes, into: sink, pace: pace, limit: limit)
        return whole.end
      }
      defer { isOver.store(true, ordering: .relaxed) }
      return try await untilCancelled { continuation in
        let reader = CurlThread.Reader(sink: sink, pace: pace, limit: limit, continuation: continuation)
        return thread.send(.read(id, reader)) ? nil : { continuation.resume(throwing: Self.shutDown) }
      }
    }

    /// Pushes a body that has come with its head.
    private static func push(_ body: [UInt8], into sink: ChunkSink, pace: TransferPace, limit: Int64?) throws {
      if body.isEmpty { return }
      if let limit, Int64(body.count) > limit { throw tooLarge(limit) }
      try sink(body.span.bytes)
      // It has arrived: what exceeds the rate is for the next request to wait for.
      _ = pace.pause(after: body.count)
    }

    /// Reads and drops the body if it is short, so that the connection can be used again. Returns when that has succeeded
    /// or failed.
    package func drain() async {
      if isOver.load(ordering: .relaxed) { return }
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          if !thread.send(.drain(id, continuation)) { continuation.resume() }
          if Task.isCancelled { cancel() }
        }
      } onCancel: {
        cancel()
      }
    }

    /// Ends a response that is not wanted.
    package func discard() {
      end.withLock { $0 = Self.unwanted }
      body.withLock { $0 = nil }
      if isOver.load(ordering: .relaxed) { return }
      thread.send(.discard(id))
    }

    /// Puts a command that answers through a continuation into the inbox, and cancels the transfer with the task.
    private func untilCancelled<Value: Sendable>(
      _ send: (CheckedContinuation<Value, any Error>) -> (() -> Void)?
    ) async throws -> Value {
      try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          if let refuse = send(continuation) { refuse() }
          // A cancellation that came before the command has found nothing to cancel.
          if Task.isCancelled { cancel() }
        }
      } onCancel: {
        cancel()
      }
    }

    private func cancel() { thread.send(.cancel(id, CancellationError())) }

    static let readTwice = DownloadError(.invalidRequest, "a body can be read only once")
    package static let unwanted = DownloadError(.cancelled, "the rest of this response is not needed")
    package static let shutDown = DownloadError(.shutDown, "the downloader was shut down")

    package static func tooLarge(_ limit: Int64) -> DownloadError {
      DownloadError(
        .tooLarge, "the body has more than the \(limit) bytes that are allowed: raise the limit, or skip the file")
    }
  }
#endif
