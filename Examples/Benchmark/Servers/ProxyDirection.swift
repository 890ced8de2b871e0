import NIOCore

/// One direction of a connection: what its channel receives is written to the channel of the opposite direction, when
/// it is due. All code runs on one event loop.
final class ProxyDirection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// More than a fast connection has on its way in a second.
  private static let mostHeld = 64 << 20

  /// The pipelines hold both directions as long as their channels are open.
  weak var opposite: ProxyDirection?
  private let delay: TimeAmount
  private let bytesPerSecond: Int?
  private let count: (Int) -> Void
  private var context: ChannelHandlerContext?
  /// `nil` is the end.
  private var waiting: CircularBuffer<(due: NIODeadline, bytes: ByteBuffer?)> = []
  private var held = 0
  private var isScheduled = false
  /// When the next byte may leave.
  private var free: NIODeadline

  /// - Parameters:
  ///   - opened: When the first byte may leave.
  ///   - count: Gets the number of bytes of each block that is passed on.
  init(delay: TimeAmount, opened: NIODeadline, bytesPerSecond: Int? = nil, count: @escaping (Int) -> Void = { _ in }) {
    self.delay = delay
    free = opened
    self.bytesPerSecond = bytesPerSecond
    self.count = count
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }
  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }
  func channelActive(context: ChannelHandlerContext) { context.read() }
  func channelReadComplete(context: ChannelHandlerContext) { readMore() }
  func channelWritabilityChanged(context: ChannelHandlerContext) { opposite?.readMore() }
  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    held += bytes.readableBytes
    // A slow connection passes pieces of a twentieth of a second.
    let piece = bytesPerSecond.map { max(1, $0 / 20) } ?? bytes.readableBytes
    while let part = bytes.readSlice(length: min(piece, bytes.readableBytes)), part.readableBytes > 0 {
      free = max(free, .now())
      if let bytesPerSecond {
        free = free + .nanoseconds(Int64(part.readableBytes) * 1_000_000_000 / Int64(bytesPerSecond))
      }
      waiting.append((free + delay, part))
    }
    deliver()
  }

  func channelInactive(context: ChannelHandlerContext) {
    waiting.append((max(free, .now()) + delay, nil))
    deliver()
  }

  /// Stops reading when the client does not keep up, so that the server waits, as with a real network.
  private func readMore() {
    guard let context, held < (bytesPerSecond == nil ? Self.mostHeld : 1 << 16) else { return }
    if opposite?.context?.channel.isWritable ?? true { context.read() }
  }

  private func deliver() {
    let now = NIODeadline.now()
    var isFlushed = true
    while let first = waiting.first, first.due <= now {
      waiting.removeFirst()
      guard let bytes = first.bytes else {
        end()
        break
      }
      held -= bytes.readableBytes
      count(bytes.readableBytes)
      if let target = opposite?.context {
        target.write(wrapOutboundOut(bytes), promise: nil)
        isFlushed = false
      }
    }
    if !isFlushed { opposite?.context?.flush() }
    readMore()
    guard let next = waiting.first, !isScheduled else { return }
    guard let eventLoop = context?.eventLoop ?? opposite?.context?.eventLoop else { return }
    isScheduled = true
    // The task holds this direction while it has bytes to deliver, even when its channel is closed.
    eventLoop.assumeIsolated().scheduleTask(deadline: next.due) {
      self.isScheduled = false
      self.deliver()
    }
  }

  /// Closes the other channel after its last bytes.
  private func end() {
    guard let target = opposite?.context else { return }
    let written = target.eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenComplete { _ in target.close(promise: nil) }
    target.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
  }
}
