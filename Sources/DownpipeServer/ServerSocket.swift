#if Postgres || RPC
  import NIOCore
  import NIOWebSocket
#endif
import Synchronization

/// A socket of a client (RFC 6455): text messages both ways.
package final class ServerSocket: Sendable {
  private let limit: Int
  private let state = Mutex<(waiting: Int, isOver: Bool)>((0, false))
  private let items: AsyncStream<[UInt8]>
  private let continuation: AsyncStream<[UInt8]>.Continuation
  private let send: @Sendable ([UInt8]) async throws -> Void

  /// - Parameters:
  ///   - limit: The most bytes that wait for a client that does not read.
  ///   - send: Sends a message, and returns when the system has taken it.
  package init(limit: Int, send: @escaping @Sendable ([UInt8]) async throws -> Void) {
    self.limit = limit
    self.send = send
    // Bounded by `limit`.
    (items, continuation) = AsyncStream.makeStream()
  }

  /// Sends a message, and waits until the client has made room for it.
  package func reply(_ message: [UInt8]) async throws { try await send(message) }

  /// Queues a message. A client that does not take its messages is disconnected when too many bytes wait for it.
  package func post(_ message: [UInt8]) {
    let fits = state.withLock { state in
      guard !state.isOver, state.waiting + message.count <= limit else {
        state.isOver = true
        return false
      }
      state.waiting += message.count
      return true
    }
    if fits { continuation.yield(message) } else { continuation.finish() }
  }

  /// Sends what is queued, until the socket ends or a message finds no room.
  func sendQueued() async throws {
    for await message in items {
      try await send(message)
      state.withLock { $0.waiting -= message.count }
    }
  }

  func finish() {
    state.withLock { $0.isOver = true }
    continuation.finish()
  }
}

#if Postgres || RPC
  extension HTTPServer {
    func serve(_ channel: Frames, _ request: ServerRequest) async throws {
      try await channel.executeThenClose { frames, replies in
        let health = SocketHealth()
        let socket = ServerSocket(limit: limits.waitingBytes) { message in
          try await replies.write(WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(bytes: message)))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask { [handler] in
            defer { handler.closed(socket) }
            for try await frame in frames {
              switch frame.opcode {
              case .text:
                // The next message is read afterwards: a client cannot fill the memory.
                health.isReading(false)
                try await handler.receive(Array(buffer: frame.unmaskedData), from: socket, for: request)
              case .ping:
                try await replies.write(WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData))
              case .pong: break
              case .connectionClose:
                var data = frame.unmaskedData
                let code = data.readSlice(length: 2) ?? ByteBuffer()
                try await replies.write(WebSocketFrame(fin: true, opcode: .connectionClose, data: code))
                return
              default: return
              }
              health.isReading(true)
            }
          }
          group.addTask { try await socket.sendQueued() }
          group.addTask { [limits] in
            repeat {
              try await replies.write(WebSocketFrame(fin: true, opcode: .ping, data: ByteBuffer()))
              try await Task.sleep(for: limits.pingInterval)
            } while health.isAlive(within: limits.pingInterval * 3)
          }
          // The first one that ends ends the others.
          defer {
            socket.finish()
            group.cancelAll()
          }
          try await group.next()
        }
      }
    }
  }

  /// Whether a client of a socket lives: it answers pings, except while the server works on its last message and reads
  /// nothing.
  private final class SocketHealth: Sendable {
    /// When the server began to wait for the client; `nil` while it does not.
    private let waitingSince = Mutex<ContinuousClock.Instant?>(.now)

    func isReading(_ isReading: Bool) { waitingSince.withLock { $0 = isReading ? .now : nil } }

    func isAlive(within limit: Duration) -> Bool {
      waitingSince.withLock { since in since.map { $0.duration(to: .now) < limit } ?? true }
    }
  }
#endif
