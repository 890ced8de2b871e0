#if AsyncHTTPClient
  import DownpipeTesting
  import Foundation
  import NIOCore
  import NIOPosix
  import NIOSSL
  import Synchronization

  /// A server that requires a TLS handshake, a `CONNECT` or a SOCKS greeting before HTTP. It then answers every request
  /// with `hello` (`/insecure` with a redirect to `http:`), as if it were the target of the tunnel.
  final class TunnelServer: Sendable {
    enum Front: Sendable {
      case tls(wantsCertificate: Bool = false)
      /// An HTTP proxy that accepts tunnels only with this `Proxy-Authorization`, followed by TLS.
      case connect(authorization: String?)
      case socks5
      /// Accepts connections and sends nothing.
      case silent
      /// Sends bytes that are neither TLS nor HTTP immediately.
      case talkative
    }

    let port: Int
    private let group: MultiThreadedEventLoopGroup
    private let channel: any Channel
    private let seen: Seen

    /// The first line received in plain text, then the first lines of the requests.
    final class Seen: Sendable {
      let lines = Mutex<[String]>([])
    }

    var lines: [String] { seen.lines.withLock { $0 } }

    private init(port: Int, group: MultiThreadedEventLoopGroup, channel: any Channel, seen: Seen) {
      self.port = port
      self.group = group
      self.channel = channel
      self.seen = seen
    }

    static func start(_ front: Front) async throws -> TunnelServer {
      let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
      let seen = Seen()
      var wantsCertificate = false
      if case .tls(true) = front { wantsCertificate = true }
      let context = try context(wantsCertificate: wantsCertificate)
      let channel = try await ServerBootstrap(group: group)
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            if case .tls = front { try pipeline.addHandler(NIOSSLServerHandler(context: context)) }
            try pipeline.addHandler(TunnelHandler(front: front, context: context, seen: seen))
          }
        }
        .bind(host: "127.0.0.1", port: 0).get()
      return TunnelServer(port: channel.localAddress?.port ?? 0, group: group, channel: channel, seen: seen)
    }

    private static func context(wantsCertificate: Bool) throws -> NIOSSLContext {
      let certificate = try NIOSSLCertificate.fromPEMBytes(Array(TestCertificate.certificate.utf8))
      let key = try NIOSSLPrivateKey(bytes: Array(TestCertificate.privateKey.utf8), format: .pem)
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: certificate.map { .certificate($0) }, privateKey: .privateKey(key))
      configuration.applicationProtocols = ["http/1.1"]
      if wantsCertificate {
        configuration.certificateVerification = .noHostnameVerification
        configuration.trustRoots = .certificates(certificate)
      }
      return try NIOSSLContext(configuration: configuration)
    }

    func shutdown() async {
      try? await channel.close()
      try? await group.shutdownGracefully()
    }
  }

  func withTunnel<R>(_ front: TunnelServer.Front, _ body: (TunnelServer) async throws -> R) async throws -> R {
    let server = try await TunnelServer.start(front)
    return try await withCleanup {
      await server.shutdown()
    } _: {
      try await body(server)
    }
  }

  private final class TunnelHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let front: TunnelServer.Front
    private let context: NIOSSLContext
    private let seen: TunnelServer.Seen
    private var received = ByteBuffer()
    private var greetings = 0

    init(front: TunnelServer.Front, context: NIOSSLContext, seen: TunnelServer.Seen) {
      self.front = front
      self.context = context
      self.seen = seen
    }

    func channelActive(context: ChannelHandlerContext) {
      if case .talkative = front { write("220 mail.example.org ESMTP\r\n", context) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      var buffer = unwrapInboundIn(data)
      received.writeBuffer(&buffer)
      switch front {
      case .silent, .talkative: break
      case .tls: answer(context)
      case .connect(let authorization):
        if greetings > 0 { return answer(context) }
        guard let head = head() else { return }
        guard
          authorization == nil
            || head.lowercased().contains("roxy-authorization: \((authorization ?? "").lowercased())")
        else {
          write("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", context)
          return
        }
        greetings += 1
        write("HTTP/1.1 200 Connected\r\n\r\n", context)
        try? context.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: self.context), position: .first)
      case .socks5:
        if greetings == 2 { return answer(context) }
        if greetings == 0, received.readableBytes >= 3 {
          // Version 5, one method: none.
          received.clear()
          greetings = 1
          context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: [5, 0])), promise: nil)
        } else if greetings == 1, received.readableBytes > 6 {
          // Version 5, connect, reserved, a name: its length, the name, two bytes of port.
          let bytes = Array(received.readableBytesView)
          seen.lines.withLock { $0.append(String(decoding: bytes[5..<bytes.count - 2], as: UTF8.self)) }
          received.clear()
          greetings = 2
          context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: [5, 0, 0, 1, 127, 0, 0, 1, 0, 80])), promise: nil)
        }
      }
    }

    private func answer(_ context: ChannelHandlerContext) {
      while let head = head() {
        let isRedirect = head.hasPrefix("GET /insecure ")
        write(
          isRedirect
            ? "HTTP/1.1 302 Found\r\nLocation: http://localhost/\r\nContent-Length: 0\r\n\r\n"
            : "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", context)
      }
    }

    /// Takes a request's head, notes its first line.
    private func head() -> String? {
      let text = String(buffer: received)
      guard let end = text.range(of: "\r\n\r\n") else { return nil }
      let head = String(text[..<end.lowerBound])
      received.moveReaderIndex(forwardBy: head.utf8.count + 4)
      seen.lines.withLock { $0.append(String(head.prefix { $0 != "\r\n" })) }
      return head
    }

    private func write(_ text: String, _ context: ChannelHandlerContext) {
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
    }
  }
#endif
