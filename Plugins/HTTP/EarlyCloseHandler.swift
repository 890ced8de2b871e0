import AsyncHTTPClient
import NIOCore
import NIOHTTP1

/// Keeps what a server sent before it closed until the client asks for it.
///
/// When the server's end of a connection comes, NIO passes on at once all that the kernel has, asked for or not,
/// and then the end. AsyncHTTPClient takes what it did not ask for into a buffer of its own, which it drops when the
/// connection ends. It also gives up a request whose handler has left the pipeline, which happens a turn of the event
/// loop after the end. So the connection is only half closed at first, and what it brought is handed on at the client's
/// pace; the end comes last.
///
/// After a reset there is nothing to wait for: the pipeline is taken down at once, and what was not asked for is lost.
final class EarlyCloseHandler: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias InboundOut = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  private enum Event {
    case part(HTTPClientResponsePart)
    case batchEnd
    case failure(any Error)
    /// The server sends nothing more.
    case end
  }

  private var held = CircularBuffer<Event>()
  /// Whether the client has asked for a batch that has not come to its end.
  private var isAsked = true
  /// Whether parts came in after the last end of a batch.
  private var isInBatch = false
  private var isReplaying = false
  /// Whether the client has closed the connection: it wants nothing more.
  private var isClosed = false

  /// Puts the handler between the decoder and the client's own handler.
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
    // The client takes the rest of a complete answer at any time, and keeps it.
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

  /// Lets what came before an error or the end through, if the client is ready for it, and then that.
  private func hold(_ event: Event, _ context: ChannelHandlerContext) {
    guard !isClosed else { return deliver(event, context) }
    // An error that the decoder finds, or a reset, comes in the middle of a batch.
    if isInBatch { channelReadComplete(context: context) }
    held.append(event)
    // The channel itself asks for nothing more after its end.
    context.pipeline.read()
  }

  /// Hands on so much as the client asks for.
  private func replay(_ context: ChannelHandlerContext) {
    isReplaying = true
    while isAsked, let event = held.popFirst() {
      if case .batchEnd = event {
        isAsked = false
        deliver(event, context)
        // After each batch that it reads, the channel asks the client whether it wants another.
        context.pipeline.read()
      } else {
        deliver(event, context)
      }
    }
    isReplaying = false
    if isAsked, held.isEmpty, !isClosed { context.read() }
  }

  /// Hands on everything, asked for or not.
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
      // Not left to the close, which TLS holds up until the server has answered.
      context.fireErrorCaught(HTTPClientError.remoteConnectionClosed)
      close(context: context, mode: .all, promise: nil)
    }
  }
}
