import DownpipeCore
import NIOCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// One connection of a scripted server: reads the head of a request, carries out the steps of the script, and reads the
/// next request.
///
/// It uses no HTTP library, because it must be able to send malformed messages. All code runs on the channel's event
/// loop.
final class ScriptedConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private static let maximumHeadSize = 256 * 1024
  private static let pieceSize = 128 * 1024
  private static let stallTime = TimeAmount.milliseconds(200)

  private let shared: ScriptedHTTPServer.Shared
  private var number = 0
  private var received = ByteBuffer()
  private var steps: ArraySlice<ScriptedReply.Step> = []
  /// The request whose reply is being sent.
  private var request: ScriptedRequest?
  private var isClosed = false
  private var bytesPerSecond: Int?
  /// The remaining size of the request's body, which is read and dropped.
  private var unread = 0

  init(shared: ScriptedHTTPServer.Shared) { self.shared = shared }

  func channelActive(context: ChannelHandlerContext) {
    guard let number = shared.connected(context.channel) else {
      context.close(promise: nil)
      return
    }
    self.number = number
  }

  func channelInactive(context: ChannelHandlerContext) {
    isClosed = true
    shared.disconnected(context.channel)
    if let request { shared.onLoss(request) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var buffer = unwrapInboundIn(data)
    received.writeBuffer(&buffer)
    if received.readableBytes > Self.maximumHeadSize { context.close(promise: nil) }
    if request == nil { readRequest(context) }
  }

  private func readRequest(_ context: ChannelHandlerContext) {
    let skipped = min(unread, received.readableBytes)
    received.moveReaderIndex(forwardBy: skipped)
    unread -= skipped
    let view = received.readableBytesView
    guard unread == 0, let end = view.firstIndex(ofSequence: [0x0D, 0x0A, 0x0D, 0x0A]) else { return }
    let head = received.readBytes(length: end - view.startIndex) ?? []
    received.moveReaderIndex(forwardBy: 4)
    received.discardReadBytes()
    let client = context.channel.remoteAddress.map { "\($0.ipAddress ?? ""):\($0.port ?? 0)" } ?? ""
    guard let request = ScriptedRequest.parse(head: head, from: client, connection: number, number: shared.count) else {
      context.close(promise: nil)
      return
    }
    unread = max(0, request.headers["Content-Length"].flatMap { Int($0) } ?? 0)
    self.request = request
    bytesPerSecond = nil
    shared.received(request)
    steps = shared.script(request).steps[...]
    if request.headers["Connection"]?.caseInsensitivelyEquals("close") == true { steps.append(.close) }
    advance(context)
  }

  /// Carries out the next step. Steps continue in new tasks of the event loop, so that long bodies do not grow the
  /// stack.
  private func advance(_ context: ChannelHandlerContext) {
    guard !isClosed else { return }
    guard let step = steps.popFirst() else {
      request = nil
      readRequest(context)
      return
    }
    switch step {
    case .head(let status, let headers): send(ScriptedReply.render(status, headers), context)
    case .bytes(let bytes): sendPiece(.bytes(bytes), 0..<Int64(bytes.count), context)
    case .content(let content, let range): sendPiece(content, range.clamped(to: 0..<content.size), context)
    case .delay(let duration): resume(after: TimeAmount(duration), context)
    case .throttle(let rate):
      bytesPerSecond = max(1, rate)
      advance(context)
    case .hold(let gate):
      let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
      let eventLoop = context.eventLoop
      let shared = shared
      gate.pass {
        // After the shutdown of the server there is no event loop to continue on.
        guard !shared.isShutDown else { return }
        eventLoop.execute {
          let (connection, context) = bound.value
          connection.advance(context)
        }
      }
    case .call(let body):
      body()
      advance(context)
    case .close: context.close(promise: nil)
    case .reset:
      // With a linger time of zero the system sends RST instead of FIN and drops unsent bytes.
      let option = context.channel as? any SocketOptionProvider
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      option?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
        .whenComplete { _ in bound.value.close(promise: nil) }
    }
  }

  /// Sends a piece of a content and inserts the rest as the next step.
  private func sendPiece(_ content: ScriptedContent, _ range: Range<Int64>, _ context: ChannelHandlerContext) {
    guard !range.isEmpty else { return advance(context) }
    // A throttled body is sent in portions of a twentieth of a second.
    let limit = bytesPerSecond.map { max(1, $0 / 20) } ?? Self.pieceSize
    let end = min(range.upperBound, range.lowerBound + Int64(min(limit, Self.pieceSize)))
    if end < range.upperBound { steps = [.content(content, end..<range.upperBound)] + steps }
    send(content.bytes(in: range.lowerBound..<end), context)
  }

  private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
    guard !bytes.isEmpty else { return advance(context) }
    let eventLoop = context.eventLoop
    let bound = NIOLoopBound((self, context), eventLoop: eventLoop)
    let shared = shared
    let stall = eventLoop.scheduleTask(in: Self.stallTime) { shared.stalled() }
    let promise = eventLoop.makePromise(of: Void.self)
    let pause = bytesPerSecond.map { TimeAmount.nanoseconds(Int64(bytes.count) * 1_000_000_000 / Int64($0)) }
    promise.futureResult.whenComplete { result in
      stall.cancel()
      guard case .success = result else { return }
      shared.sent(bytes.count)
      let (connection, context) = bound.value
      connection.resume(after: pause ?? .zero, context)
    }
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: promise)
  }

  private func resume(after time: TimeAmount, _ context: ChannelHandlerContext) {
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let task: @Sendable () -> Void = {
      let (connection, context) = bound.value
      connection.advance(context)
    }
    if time > .zero {
      context.eventLoop.scheduleTask(in: time, task)
    } else {
      context.eventLoop.execute(task)
    }
  }
}

extension ByteBufferView {
  /// The index of the first occurrence of a sequence of bytes.
  fileprivate func firstIndex(ofSequence sequence: [UInt8]) -> Int? {
    guard count >= sequence.count else { return nil }
    return (startIndex...(endIndex - sequence.count)).first { self[$0..<$0 + sequence.count].elementsEqual(sequence) }
  }
}
