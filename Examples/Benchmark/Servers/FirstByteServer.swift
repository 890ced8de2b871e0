import NIOCore
import NIOPosix
import Synchronization

/// A server that notes when the first byte of a request arrives. Its file is one byte.
final class FirstByteServer: Sendable {
  let port: Int
  private let channel: any Channel
  private let first: First

  private final class First: Sendable {
    let time = Mutex<UInt64?>(nil)
  }

  init(_ group: any EventLoopGroup) async throws {
    let first = First()
    self.first = first
    channel = try await ServerBootstrap(group: group)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Answer(first)) }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    port = channel.localAddress?.port ?? 0
  }

  /// When the first request began, on the monotonic clock, in nanoseconds.
  var firstByte: UInt64? { first.time.withLock { $0 } }

  func stop() async { try? await channel.close() }

  private final class Answer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let first: First
    private var received = ""

    init(_ first: First) { self.first = first }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let now = MonotonicClock.nanoseconds
      first.time.withLock { $0 = $0 ?? now }
      received += String(buffer: unwrapInboundIn(data))
      guard received.hasSuffix("\r\n\r\n") else { return }
      let body = received.hasPrefix("HEAD") ? "" : "x"
      received = ""
      let reply = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nETag: \"1\"\r\n\r\n\(body)"
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: reply)), promise: nil)
    }
  }
}
