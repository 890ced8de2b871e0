#if AsyncHTTPClient
  import AsyncHTTPClient
  import NIOCore
  import NIOHTTP1

  /// Buffers the bytes that a server sent before it closed the connection until the client reads them.
  ///
  /// When the server closes a connection, NIO immediately delivers all bytes that the kernel has, requested or not, and
  /// then the end. AsyncHTTPClient puts unrequested bytes into a buffer that it drops when the connection ends, and it
  /// fails a request whose handler has left the pipeline, one turn of the event loop after the end. This handler
  /// therefore half-closes the connection first, delivers the bytes at the client's pace, and delivers the end last.
  ///
  /// After a reset the pipeline is torn down immediately, and unrequested bytes are lost.
  final class EarlyCloseHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    private enum Event {
      case part(HTTPClientResponsePart)
      case batchEnd
      case failure(any Error)
      /// The server has closed its side of the connection.
      case end
    }

    private var held = CircularBuffer<Event>()
    /// Whether the client has requested a batch that is not complete.
    private var isAsked = true
    /// Whether parts have arrived since the last end of a batch.
    private var isInBatch = false
    private var isReplaying = false
    /// Whether the client has closed the connection.
    private var isClosed = false

    /// Adds the handler between the decoder and the client's own handler.
    static func add(to channel: any Channel) throws {
      let pipeline = channel.pipeline.syncOperations
      let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
      try pipeline.addHandler(EarlyCloseHandler(), position: .after(decoder))
      try channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: true)
    }

    // MARK: From the server

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      isInBatch = true
      guard mustHold else { return context.fireChannelRead(data) }
      let part = unwrapInboundIn(data)
      held.append(.part(part))
      // The client accepts and keeps the rest of a complete response at any time.
      if case .end = part { release(context) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
      isInBatch = false
      if mustHold {
        held.append(.batchEnd)
      } else {
        isAsked = false
        context.fireChannelReadComplete()
      }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { hold(.failure(error), context) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if case .inputClosed? = event as? ChannelEvent {
        hold(.end, context)
      } else {
        context.fireUserInboundEventTriggered(event)
      }
    }

    func channelInactive(context: ChannelHandlerContext) {
      release(context)
      context.fireChannelInactive()
    }

    // MARK: From the client

    func read(context: ChannelHandlerContext) {
      isAsked = true
      if isReplaying { return }
      if held.isEmpty { context.read() } else { replay(context) }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
      isClosed = true
      held.removeAll()
      context.close(mode: mode, promise: promise)
    }

    // MARK: -

    private var mustHold: Bool { !isClosed && (!isAsked || isReplaying || !held.isEmpty) }

    /// Delivers an error or the end after the parts that arrived before it, at the pace of the client.
    private func hold(_ event: Event, _ context: ChannelHandlerContext) {
      guard !isClosed else { return deliver(event, context) }
      // A decoder error or a reset arrives in the middle of a batch.
      if isInBatch { channelReadComplete(context: context) }
      held.append(event)
      // After its end the channel itself does not request more.
      context.pipeline.read()
    }

    /// Delivers as much as the client requests.
    private func replay(_ context: ChannelHandlerContext) {
      isReplaying = true
      while isAsked, let event = held.popFirst() {
        if case .batchEnd = event {
          isAsked = false
          deliver(event, context)
          // As the channel does after each batch, let the client request another.
          context.pipeline.read()
        } else {
          deliver(event, context)
        }
      }
      isReplaying = false
      if isAsked, held.isEmpty, !isClosed { context.read() }
    }

    /// Delivers everything, requested or not.
    private func release(_ context: ChannelHandlerContext) {
      while let event = held.popFirst() { deliver(event, context) }
    }

    private func deliver(_ event: Event, _ context: ChannelHandlerContext) {
      switch event {
      case .part(let part): context.fireChannelRead(wrapInboundOut(part))
      case .batchEnd: context.fireChannelReadComplete()
      case .failure(let error): context.fireErrorCaught(error)
      case .end:
        guard !isClosed else { return }
        // The close would deliver this later: TLS delays it until the server has answered.
        context.fireErrorCaught(HTTPClientError.remoteConnectionClosed)
        close(context: context, mode: .all, promise: nil)
      }
    }
  }
#endif
