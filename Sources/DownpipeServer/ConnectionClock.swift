#if Postgres || RPC
  import NIOCore
  import NIOHTTP1

  /// Closes a connection whose client is slow, with its next request or with taking a reply, and after the last reply.
  final class ConnectionClock: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let limits: ServerLimits
    private var alarm: Scheduled<Void>?
    /// Parts of a reply that the system has not taken.
    private var waitingParts = 0
    /// Whether the head of the reply says that the connection ends with it.
    private var isLast = false

    init(_ limits: ServerLimits) { self.limits = limits }

    func handlerAdded(context: ChannelHandlerContext) { set(limits.requestTime, context) }

    func handlerRemoved(context: ChannelHandlerContext) { alarm?.cancel() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      // The server works, for as long as it needs.
      if case .end = Self.unwrapInboundIn(data) { alarm?.cancel() }
      context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      let part = Self.unwrapOutboundIn(data)
      if case .head(let head) = part {
        // The client still has to send its request.
        if head.status.code < 200 { return context.write(data, promise: promise) }
        isLast = head.headers[canonicalForm: "Connection"].contains("close")
      }
      let isEnd = if case .end = part { true } else { false }
      waitingParts += 1
      set(limits.replyTime, context)
      let written = promise ?? context.eventLoop.makePromise()
      let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
      written.futureResult.whenComplete { _ in
        let (clock, context) = bound.value
        clock.waitingParts -= 1
        if isEnd, clock.isLast {
          // Everything has left.
          context.close(promise: nil)
        } else if isEnd {
          clock.set(clock.limits.requestTime, context)
        } else if clock.waitingParts == 0 {
          clock.alarm?.cancel()
        } else {
          clock.set(clock.limits.replyTime, context)
        }
      }
      context.write(data, promise: written)
    }

    private func set(_ time: Duration, _ context: ChannelHandlerContext) {
      alarm?.cancel()
      let channel = context.channel
      guard channel.isActive else { return }
      alarm = context.eventLoop.scheduleTask(in: TimeAmount(time)) { channel.close(promise: nil) }
    }
  }
#endif
