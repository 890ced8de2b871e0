#if AsyncHTTPClient
  import Foundation
  import NIOCore
  import NIOHTTP1

  /// Rewrites `GET /path` to `GET http://host/path`, the form that HTTP proxies require (RFC 9112 §3.2.2).
  ///
  /// AsyncHTTPClient requests a `CONNECT` tunnel from every proxy, which many proxies allow for port 443 only. Requests
  /// for `http:` URLs are therefore sent as if the proxy were the server, with the real server in `Host`, and rewritten
  /// here.
  final class AbsoluteFormHandler: ChannelOutboundHandler {
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    /// Adds the handler between the encoder and the client's own handler.
    static func add(to channel: any Channel) throws {
      let pipeline = channel.pipeline.syncOperations
      let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
      try pipeline.addHandler(AbsoluteFormHandler(), position: .after(decoder))
    }

    /// The URL with the host of the proxy and the path of the request.
    static func hop(to proxy: AsyncHTTPClientSource.Proxy, for url: URL) -> URL? {
      var parts = URLComponents()
      parts.percentEncodedPath = url.path(percentEncoded: true)
      parts.percentEncodedQuery = url.query(percentEncoded: true)
      let host = proxy.host.contains(":") ? "[\(proxy.host)]" : proxy.host
      let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
      let query = parts.percentEncodedQuery.map { "?\($0)" } ?? ""
      return URL(string: "http://\(host):\(proxy.port)\(path)\(query)")
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      guard case .head(var head) = unwrapOutboundIn(data), let host = head.headers.first(name: "Host") else {
        context.write(data, promise: promise)
        return
      }
      head.uri = "http://\(host)\(head.uri)"
      context.write(wrapOutboundOut(.head(head)), promise: promise)
    }
  }
#endif
