import Foundation
import NIOCore
import NIOHTTP1

/// Turns `GET /path` into `GET http://host/path`, as HTTP proxies want it (RFC 9112 §3.2.2).
///
/// AsyncHTTPClient asks every proxy for a `CONNECT` tunnel, which many allow to port 443 only. So requests for
/// `http:` URLs are made as if the proxy were the server, with the real server in `Host`, and put right here.
final class AbsoluteFormHandler: ChannelOutboundHandler {
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  /// Puts the handler between the encoder and the client's own handler.
  static func add(to channel: any Channel) throws {
    let pipeline = channel.pipeline.syncOperations
    let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
    try pipeline.addHandler(AbsoluteFormHandler(), position: .after(decoder))
  }

  /// The URL that makes the client connect to the proxy and send the right path.
  static func hop(to proxy: HTTPSource.Proxy, for url: URL) -> URL? {
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
