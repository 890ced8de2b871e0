#if AsyncHTTPClient
  import NIOCore
  import NIOHTTP1
  import NIOHTTP2

  /// Sends the request target as it is given, and reports whether its connection is in use.
  ///
  /// AsyncHTTPClient derives the target from a `URL`, decodes its path, and requests `/` when an escape is not UTF-8.
  /// To HTTP proxies it sends only `CONNECT`, which many of them allow for port 443 only. The target is therefore passed
  /// in ``field``: path and query as written, or for a proxy the whole URL (RFC 9112 §3.2).
  final class TargetHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    /// The name of the field that holds the target of a request. It is never sent.
    static let field = "Downpipe-Target"

    private let connections: OpenConnections?

    private init(_ connections: OpenConnections?) { self.connections = connections }

    /// Adds the handler to a connection of HTTP/1.1, between the codec and the client's own handler.
    static func add(to channel: any Channel, _ connections: OpenConnections) throws {
      let pipeline = channel.pipeline.syncOperations
      let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
      try pipeline.addHandler(TargetHandler(connections), position: .after(decoder))
      connections.opened(channel)
    }

    /// Adds the handler to a stream of an HTTP/2 connection.
    static func add(toStream channel: any Channel, _ connections: OpenConnections) throws {
      let pipeline = channel.pipeline.syncOperations
      let codec = try pipeline.handler(type: HTTP2FramePayloadToHTTP1ClientCodec.self)
      try pipeline.addHandler(TargetHandler(nil), position: .after(codec))
      guard let connection = channel.parent else { return }
      connections.began(on: connection)
      channel.closeFuture.whenComplete { _ in connections.ended(on: connection) }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      guard case .head(var head) = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
      if let target = head.headers.first(name: Self.field) {
        head.uri = target
        head.headers.remove(name: Self.field)
      }
      connections?.began(on: context.channel)
      context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      context.fireChannelRead(data)
      if case .end = unwrapInboundIn(data) { connections?.ended(on: context.channel) }
    }
  }
#endif
