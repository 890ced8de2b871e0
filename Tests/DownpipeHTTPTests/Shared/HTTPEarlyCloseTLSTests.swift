#if AsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import NIOCore
  import NIOPosix
  import NIOSSL
  import Testing

  /// A server that closes during a body over TLS, with and without `close_notify`.
  @Suite(.endsHangs)
  struct HTTPEarlyCloseTLSTests {
    private static let content = ScriptedContent.pattern(size: 2_000_000)

    @Test(
      arguments: TestedSource.allCases,
      [(70_000, true), (70_000, false), (200_000, true), (200_000, false), (1_000_000, true), (1_000_000, false)])
    func everyByteThatWasSentArrives(
      _ tested: TestedSource, _ example: (sent: Int64, isAnnounced: Bool)
    ) async throws {
      let (sent, isAnnounced) = example
      let expected = Self.content.bytes(in: 0..<sent)
      let server = try await CutOffServer.start(
        "HTTP/1.1 200 OK\r\nContent-Length: \(Self.content.size)\r\n\r\n", expected, announcesEnd: isAnnounced)
      let source = tested.trustingSource
      try await withRunning(source) { source in
        for _ in 0..<20 {
          let reply = try await source.open(SourceRequest(url: server.url))
          let collector = Collector()
          let error = await downloadError { try await reply.body.forEachChunk { collector.append($0) } }
          #expect(collector.bytes.count == expected.count)
          let isIdentical = collector.bytes == expected
          #expect(isIdentical)
          #expect(error?.code == .network)
        }
      }
      await server.shutdown()
    }

    /// The end is reported without waiting for the `close_notify` of a server that is gone.
    @Test(arguments: TestedSource.allCases, [true, false])
    func theEndIsReportedAtOnce(_ tested: TestedSource, _ isAnnounced: Bool) async throws {
      let server = try await CutOffServer.start(
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", [1, 2, 3], announcesEnd: isAnnounced)
      let source = tested.trustingSource
      // The wait of TLS for it is 5 seconds. A busy machine may delay some attempts, but not each of 50.
      var shortest = Duration.seconds(60)
      for _ in 0..<50 where shortest >= .seconds(5) {
        let begun = ContinuousClock.now
        let error = await downloadError { try await source.fetch(server.url) }
        #expect(error?.code == .network)
        shortest = min(shortest, ContinuousClock.now - begun)
      }
      #expect(shortest < .seconds(5))
      await server.shutdown()
    }
  }

  /// Answers the request of each connection with bytes and closes the connection.
  private final class CutOffServer: Sendable {
    private let group: MultiThreadedEventLoopGroup
    private let channel: any Channel

    var url: URL {
      var parts = URLComponents()
      (parts.scheme, parts.host, parts.port, parts.path) = ("https", "localhost", channel.localAddress?.port, "/")
      return parts.url ?? URL(filePath: "/")
    }

    private init(_ group: MultiThreadedEventLoopGroup, _ channel: any Channel) {
      self.group = group
      self.channel = channel
    }

    static func start(_ head: String, _ body: [UInt8], announcesEnd: Bool) async throws -> CutOffServer {
      let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
      let certificate = try NIOSSLCertificate.fromPEMBytes(Array(TestCertificate.certificate.utf8))
      let key = try NIOSSLPrivateKey(bytes: Array(TestCertificate.privateKey.utf8), format: .pem)
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: certificate.map { .certificate($0) }, privateKey: .privateKey(key))
      configuration.applicationProtocols = ["http/1.1"]
      let context = try NIOSSLContext(configuration: configuration)
      let channel = try await ServerBootstrap(group: group)
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(Cutter())
            try pipeline.addHandler(NIOSSLServerHandler(context: context))
            try pipeline.addHandler(Answer(ByteBuffer(bytes: Array(head.utf8) + body), announcesEnd: announcesEnd))
          }
        }
        .bind(host: "127.0.0.1", port: 0).get()
      return CutOffServer(group, channel)
    }

    func shutdown() async {
      try? await channel.close()
      try? await group.shutdownGracefully()
    }

    private struct CutOff: Sendable {}

    /// Closes the connection below TLS, so that TLS does not send `close_notify`.
    private final class Cutter: ChannelOutboundHandler {
      typealias OutboundIn = ByteBuffer
      func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        if event is CutOff { context.close(promise: promise) }
      }
    }

    private final class Answer: ChannelInboundHandler {
      typealias InboundIn = ByteBuffer
      typealias OutboundOut = ByteBuffer
      private let answer: ByteBuffer
      private let announcesEnd: Bool
      private var hasAnswered = false

      init(_ answer: ByteBuffer, announcesEnd: Bool) {
        self.answer = answer
        self.announcesEnd = announcesEnd
      }

      func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasAnswered else { return }
        hasAnswered = true
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        let announcesEnd = announcesEnd
        context.writeAndFlush(wrapOutboundOut(answer)).whenComplete { _ in
          if announcesEnd {
            bound.value.close(promise: nil)
          } else {
            bound.value.triggerUserOutboundEvent(CutOff(), promise: nil)
          }
        }
      }

      func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
  }
#endif
