import NIOCore
import NIOPosix
import Synchronization

/// A TCP proxy on a loopback port that behaves as a network: with a delay, with a slow connection, or with a mirror
/// that dies.
///
/// It keeps the order of the bytes and does not limit their rate, except that of the slow connection. It does not
/// imitate lost packets or the slow start of TCP.
final class NetworkProxy: Sendable {
  struct Rules: Sendable {
    /// The delay in each direction. A new connection waits for a round trip before its first bytes pass, as for the
    /// handshake that loopback has without delay.
    var delay: Duration = .zero
    /// The connection with this number, counted from 1, has this rate from the server to the client.
    var slow: (connection: Int, bytesPerSecond: Int)?
    /// It closes all connections and refuses new ones when the counter has reached this number.
    var lifetime: Int64?

    /// The rate of a connection in bytes per second; `nil` for one without a limit.
    func bytesPerSecond(ofConnection number: Int) -> Int? {
      slow.flatMap { $0.connection == number ? $0.bytesPerSecond : nil }
    }
  }

  /// The bytes that servers have sent to clients through proxies.
  final class PassedBytes: Sendable {
    private let count = Atomic<Int64>(0)

    var value: Int64 { count.load(ordering: .relaxed) }
    /// - Returns: The number now.
    func add(_ bytes: Int) -> Int64 { count.add(Int64(bytes), ordering: .relaxed).newValue }
  }

  private struct State {
    var accepted = 0
    var listener: (any Channel)?
    var channels: [ObjectIdentifier: any Channel] = [:]
    var isOver = false
  }

  let rules: Rules
  private let passed: PassedBytes
  private let state = Mutex(State())

  /// - Parameters:
  ///   - port: The server's.
  ///   - passed: Counts the bytes, together with those of other proxies.
  init(to port: Int, _ rules: Rules, counting passed: PassedBytes, _ group: any EventLoopGroup) async throws {
    self.rules = rules
    self.passed = passed
    let listener = try await ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 4_096)
      .childChannelOption(.autoRead, value: false)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 1 << 16))
      .childChannelInitializer { [self] client in connect(client, to: port) }
      .bind(host: "127.0.0.1", port: 0).get()
    state.withLock { $0.listener = listener }
  }

  /// Where it listens.
  var port: Int { state.withLock { $0.listener?.localAddress?.port ?? 0 } }

  /// Closes everything.
  func stop() {
    let channels = state.withLock { state -> [any Channel] in
      state.isOver = true
      defer {
        state.channels = [:]
        state.listener = nil
      }
      return Array(state.channels.values) + (state.listener.map { [$0] } ?? [])
    }
    for channel in channels { channel.close(promise: nil) }
  }

  private func connect(_ client: any Channel, to port: Int) -> EventLoopFuture<Void> {
    guard let number = register(client) else { return client.close() }
    let opened = NIODeadline.now() + TimeAmount(rules.delay) * 2
    let upward = ProxyDirection(delay: TimeAmount(rules.delay), opened: opened)
    let downward = ProxyDirection(
      delay: TimeAmount(rules.delay), opened: opened,
      bytesPerSecond: rules.bytesPerSecond(ofConnection: number)
    ) { [self] count in pass(count) }
    (upward.opposite, downward.opposite) = (downward, upward)
    do { try client.pipeline.syncOperations.addHandler(upward) } catch {
      return client.eventLoop.makeFailedFuture(error)
    }
    let bound = NIOLoopBound(downward, eventLoop: client.eventLoop)
    return ClientBootstrap(group: client.eventLoop)
      .channelOption(.autoRead, value: false)
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 1 << 16))
      .channelInitializer { [self] server in
        server.eventLoop.makeCompletedFuture {
          guard register(server, isAccepted: false) != nil else { throw ChannelError.ioOnClosedChannel }
          try server.pipeline.syncOperations.addHandler(bound.value)
        }
      }
      .connect(host: "127.0.0.1", port: port).map { _ in }
  }

  /// - Returns: The number of accepted connections; `nil` when the proxy is dead.
  private func register(_ channel: any Channel, isAccepted: Bool = true) -> Int? {
    let number = state.withLock { state -> Int? in
      guard !state.isOver else { return nil }
      if isAccepted { state.accepted += 1 }
      state.channels[ObjectIdentifier(channel)] = channel
      return state.accepted
    }
    channel.closeFuture.whenComplete { [self] _ in
      state.withLock { _ = $0.channels.removeValue(forKey: ObjectIdentifier(channel)) }
    }
    return number
  }

  private func pass(_ count: Int) {
    let value = passed.add(count)
    if let lifetime = rules.lifetime, value >= lifetime { stop() }
  }
}
