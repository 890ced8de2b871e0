#if Postgres || RPC
  import Foundation
  import NIOCore
  import NIOHTTP1
  import NIOPosix
  import NIOWebSocket
  import Synchronization

  /// A server of HTTP/1.1 and WebSocket on SwiftNIO, with bounds on what clients can make it hold.
  package final class HTTPServer: Sendable {
    typealias Requests = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>
    typealias Frames = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    /// What a connection has become after its first request.
    enum Negotiated: Sendable {
      /// The request was for a socket that was refused: its head does not come again.
      case http(Requests, ServerConnection, refused: ServerRequest?)
      case socket(Frames, ServerRequest)
    }

    /// A connection whose first request is awaited.
    private struct Negotiation: Sendable {
      let channel: any Channel
      let result: EventLoopFuture<Negotiated>
    }

    let limits: ServerLimits
    let handler: any ServerHandler
    private let tls: ServerTLS?
    private let channel: NIOAsyncChannel<Negotiation?, Never>

    /// The path of the socket, which is removed at the end; `nil` for a port.
    private let path: String?

    /// Starts to listen. ``run()`` accepts connections.
    ///
    /// - Parameter tls: The certificate of the server; `nil` for connections that are not encrypted.
    /// - Throws: ``ListenError`` for an address that cannot be used.
    package init(
      _ address: ListenAddress, tls: ServerTLS? = nil, limits: ServerLimits = ServerLimits(),
      handler: any ServerHandler
    ) async throws {
      self.tls = tls
      self.limits = limits
      self.handler = handler
      let counter = ConnectionCounter(limits)
      let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .serverChannelOption(.backlog, value: 128)
      let start: @Sendable (any Channel) -> EventLoopFuture<Negotiation?> = { channel in
        channel.eventLoop.makeCompletedFuture {
          try Self.start(channel, tls, limits, handler, counter)
        }
      }
      path = if case .unix(let path) = address { path } else { nil }
      do {
        switch address {
        case .tcp(let host, let port):
          channel = try await bootstrap.serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .bind(host: host, port: port, childChannelInitializer: start)
        case .unix(let path):
          if await Self.hasListener(path) { throw ListenError(address, String(cString: strerror(EADDRINUSE))) }
          let descriptor = try Self.boundSocket(path, address)
          channel = try await bootstrap.bind(descriptor, childChannelInitializer: start)
        case .inherited(let descriptor):
          channel = try await bootstrap.bind(descriptor, childChannelInitializer: start)
        }
      } catch let error as IOError {
        throw ListenError(address, String(cString: strerror(error.errnoCode)))
      } catch let error as ListenError {
        throw error
      } catch { throw ListenError(address, "\(error)") }
    }

    /// A socket with a path, which nothing can connect to yet: only the user of this process can when it listens.
    private static func boundSocket(_ path: String, _ place: ListenAddress) throws(ListenError) -> CInt {
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      let bytes = Array(path.utf8)
      guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
        throw ListenError(place, String(cString: strerror(ENAMETOOLONG)))
      }
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
      #if canImport(Glibc)
        let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
      #else
        let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
      #endif
      guard descriptor >= 0 else { throw ListenError(place, String(cString: strerror(errno))) }
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      unlinkSocket(path)
      let isBound = withUnsafePointer(to: &address) { address in
        address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
        }
      }
      guard isBound, chmod(path, 0o600) == 0 else {
        let reason = String(cString: strerror(errno))
        close(descriptor)
        throw ListenError(place, reason)
      }
      return descriptor
    }

    /// Removes a socket that a process has left behind, and no other file.
    private static func unlinkSocket(_ path: String) {
      var status = stat()
      if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK { unlink(path) }
    }

    /// Whether a process listens at a path. A socket that a process has left behind refuses connections.
    private static func hasListener(_ path: String) async -> Bool {
      let client = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      guard let channel = try? await client.connect(unixDomainSocketPath: path).get() else { return false }
      try? await channel.close().get()
      return true
    }

    /// The port; `nil` for a socket in the file system.
    package var port: Int? { channel.channel.localAddress?.port }

    /// Serves connections until the task is cancelled, and returns when all have ended.
    package func run() async {
      await withTaskGroup(of: Void.self) { group in
        #if RPCTLS
          if let tls { group.addTask { await tls.watch() } }
        #endif
        await accept()
        group.cancelAll()
      }
      if let path { Self.unlinkSocket(path) }
    }

    private func accept() async {
      try? await channel.executeThenClose { connections in
        try await withThrowingDiscardingTaskGroup { group in
          for try await negotiation in connections {
            guard let negotiation else { continue }
            // A client that breaks off concerns only its own connection.
            group.addTask { try? await self.serve(negotiation) }
          }
        }
      }
    }

    private func serve(_ negotiation: Negotiation) async throws {
      // A client that says nothing does not hold up the end.
      let negotiated: Negotiated
      do {
        negotiated = try await withTaskCancellationHandler {
          try await negotiation.result.get()
        } onCancel: {
          negotiation.channel.close(promise: nil)
        }
      } catch {
        // Nothing serves the connection.
        negotiation.channel.close(promise: nil)
        throw error
      }
      switch negotiated {
      case .http(let channel, let connection, let refused): try await serve(channel, connection, refused)
      case .socket(let channel, let request): try await serve(channel, request)
      }
    }

    /// - Returns: `nil` for a connection beyond the limits, which is closed.
    private static func start(
      _ channel: any Channel, _ tls: ServerTLS?, _ limits: ServerLimits, _ handler: any ServerHandler,
      _ counter: ConnectionCounter
    ) throws -> Negotiation? {
      let client = channel.remoteAddress?.ipAddress
      guard counter.add(client) else {
        channel.close(promise: nil)
        return nil
      }
      channel.closeFuture.whenComplete { _ in counter.remove(client) }
      // A client that sends nothing, or little and slowly, does not hold a connection for ever.
      let first = channel.eventLoop.scheduleTask(in: TimeAmount(limits.requestTime)) { channel.close(promise: nil) }
      #if RPCTLS
        if let tls { try channel.pipeline.syncOperations.addHandler(tls.handler()) }
      #endif
      let connection = ServerConnection(client: client)
      let refusal = Refusal()
      let upgrader = NIOTypedWebSocketServerUpgrader<Negotiated>(
        maxFrameSize: limits.requestBytes,
        shouldUpgrade: { channel, head in
          let request = ServerRequest(head, connection: connection)
          let accepts = handler.acceptsSocket(request)
          if !accepts { refusal.request.withLock { $0 = request } }
          return channel.eventLoop.makeSucceededFuture(accepts ? HTTPHeaders() : nil)
        },
        upgradePipelineHandler: { channel, head in
          first.cancel()
          return channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(ClientFrames())
            try channel.pipeline.syncOperations.addHandler(
              NIOWebSocketFrameAggregator(
                minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 1024,
                maxAccumulatedFrameSize: limits.requestBytes))
            return .socket(
              try Frames(wrappingChannelSynchronously: channel), ServerRequest(head, connection: connection))
          }
        })
      let upgrade = NIOTypedHTTPServerUpgradeConfiguration<Negotiated>(
        upgraders: [upgrader],
        notUpgradingCompletionHandler: { channel in
          first.cancel()
          return channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(ConnectionClock(limits))
            return .http(
              try Requests(wrappingChannelSynchronously: channel), connection,
              refused: refusal.request.withLock { $0.take() })
          }
        })
      let negotiated = try channel.pipeline.syncOperations.configureUpgradableHTTPServerPipeline(
        configuration: .init(upgradeConfiguration: upgrade))
      let decoder = try channel.pipeline.syncOperations.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
      try channel.pipeline.syncOperations.addHandler(SocketOffer(), position: .after(decoder))
      try channel.pipeline.syncOperations.addHandler(ErrorEnd())
      return Negotiation(channel: channel, result: negotiated)
    }

    private func serve(
      _ channel: Requests, _ connection: ServerConnection, _ refused: ServerRequest?
    ) async throws {
      // After the last reply the connection ends when all of it has left: closing it here would cut it off.
      let ended = channel.channel.closeFuture
      func waitForEnd() async {
        await withTaskCancellationHandler {
          try? await ended.get()
        } onCancel: {
          channel.channel.close(promise: nil)
        }
      }
      try await channel.executeThenClose { parts, replies in
        var request = refused
        var isKept = true
        for try await part in parts {
          switch part {
          case .head(let head):
            isKept = head.isKeepAlive
            request = ServerRequest(head, connection: connection)
            let length = request?.value("Content-Length").flatMap { Int($0) } ?? 0
            if length > limits.requestBytes {
              try await refuse(replies)
              return await waitForEnd()
            }
            if request?.value("Expect")?.lowercased() == "100-continue" {
              try await replies.write(.head(HTTPResponseHead(version: .http1_1, status: .continue)))
            }
          case .body(let bytes):
            guard (request?.body.count ?? 0) + bytes.readableBytes <= limits.requestBytes else {
              try await refuse(replies)
              return await waitForEnd()
            }
            request?.body += bytes.readableBytesView
          case .end:
            guard let complete = request.take() else { return }
            let isHead = complete.method == "HEAD"
            let reply = await handler.reply(to: complete)
            isKept = isKept && !reply.isLast
            try await send(reply, to: replies, withoutBody: isHead, keepsConnection: isKept)
            if !isKept { return await waitForEnd() }
          }
        }
      }
    }

    private func refuse(_ replies: NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>) async throws {
      let reply = ServerReply(413, text: "a request has at most \(limits.requestBytes) bytes\n")
      try await send(reply, to: replies, withoutBody: false, keepsConnection: false)
    }

    private func send(
      _ reply: ServerReply, to replies: NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>, withoutBody: Bool,
      keepsConnection: Bool
    ) async throws {
      var fields = HTTPHeaders(reply.fields.map { ($0.name, $0.value) })
      if !keepsConnection { fields.add(name: "Connection", value: "close") }
      let status = HTTPResponseStatus(statusCode: reply.status)
      switch reply.body {
      case .bytes(let bytes):
        fields.replaceOrAdd(name: "Content-Length", value: String(bytes.count))
        try await replies.write(.head(HTTPResponseHead(version: .http1_1, status: status, headers: fields)))
        // In parts, so that the client's progress shows.
        var rest = withoutBody ? [] : bytes[...]
        while !rest.isEmpty {
          try await replies.write(.body(.byteBuffer(ByteBuffer(bytes: rest.prefix(65_536)))))
          rest = rest.dropFirst(65_536)
        }
      case .stream(let next):
        try await replies.write(.head(HTTPResponseHead(version: .http1_1, status: status, headers: fields)))
        while !withoutBody, let bytes = await next() {
          try await replies.write(.body(.byteBuffer(ByteBuffer(bytes: bytes))))
        }
      }
      try await replies.write(.end(nil))
    }
  }

  /// An address at which a server cannot listen.
  package struct ListenError: Error, CustomStringConvertible {
    package let description: String

    fileprivate init(_ address: ListenAddress, _ reason: String) { description = "\(address): \(reason)" }
  }

  /// The request for a socket that was refused.
  private final class Refusal: Sendable {
    let request = Mutex<ServerRequest?>(nil)
  }

  /// Ends a connection that sends what is not HTTP, after the reply; but a refused socket is no such error: its request gets a
  /// reply.
  private final class ErrorEnd: ChannelInboundHandler {
    typealias InboundIn = Never

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      if error is NIOWebSocketUpgradeError { return }
      context.fireErrorCaught(error)
      context.close(promise: nil)
    }
  }

  /// Takes the offer of another protocol out of a request that is none for a socket: the handler of upgrades would keep the
  /// head of it to itself, and would not end a connection whose request has a body.
  private final class SocketOffer: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .head(var head) = Self.unwrapInboundIn(data) else { return context.fireChannelRead(data) }
      if !Self.isForSocket(head) { head.headers.remove(name: "Upgrade") }
      context.fireChannelRead(Self.wrapInboundOut(.head(head)))
      // Only the first request of a connection can be for a socket, whose frames are no requests.
      context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    private static func isForSocket(_ head: HTTPRequestHead) -> Bool {
      let fields = head.headers
      return head.method == .GET && fields[canonicalForm: "Upgrade"].map { $0.lowercased() } == ["websocket"]
        && fields[canonicalForm: "Connection"].contains { $0.lowercased() == "upgrade" }
        && fields.contains(name: "Sec-WebSocket-Key") && fields.contains(name: "Sec-WebSocket-Version")
        && !fields.contains(name: "Transfer-Encoding") && fields["Content-Length"].allSatisfy { $0 == "0" }
    }
  }

  /// Ends a socket with a frame that no client sends (RFC 6455 §5.1, §5.2).
  private final class ClientFrames: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = WebSocketFrame

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let frame = Self.unwrapInboundIn(data)
      guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else { return context.close(promise: nil) }
      context.fireChannelRead(data)
    }
  }

  extension ServerRequest {
    fileprivate init(_ head: HTTPRequestHead, connection: ServerConnection) {
      self.init(
        method: head.method.rawValue, target: head.uri, fields: head.headers.map { ($0.name, $0.value) },
        connection: connection)
    }
  }

  /// Counts the connections of each address.
  private final class ConnectionCounter: Sendable {
    private let limits: ServerLimits
    private let counts = Mutex<(all: Int, ofAddress: [String: Int])>((0, [:]))

    init(_ limits: ServerLimits) { self.limits = limits }

    func add(_ client: String?) -> Bool {
      counts.withLock { counts in
        guard counts.all < limits.connections else { return false }
        if let client {
          let own = counts.ofAddress[client, default: 0]
          guard own < limits.connectionsPerAddress else { return false }
          counts.ofAddress[client] = own + 1
        }
        counts.all += 1
        return true
      }
    }

    func remove(_ client: String?) {
      counts.withLock { counts in
        counts.all -= 1
        guard let client, let own = counts.ofAddress[client] else { return }
        counts.ofAddress[client] = own > 1 ? own - 1 : nil
      }
    }
  }
#endif
