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
  /// Ends when a message found no room.
  private let overflow = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
  private let send: @Sendable ([UInt8]) async throws -> Void

  /// - Parameters:
  ///   - limit: The most bytes that wait for a client that does not read.
  ///   - send: Sends a message, and returns when there is room for another one.
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
    if fits { continuation.yield(message) } else { finish() }
  }

  /// Sends what is queued, until the socket ends.
  func sendQueued() async throws {
    for await message in items {
      try await send(message)
      state.withLock { $0.waiting -= message.count }
    }
  }

  /// Returns when a message has found no room, also while a write waits for the client.
  func waitForOverflow() async { for await _ in overflow.stream {} }

  func finish() {
    state.withLock { $0.isOver = true }
    continuation.finish()
    overflow.continuation.finish()
  }
}

#if Postgres || RPC
  extension HTTPServer {
    func serve(_ channel: Frames, _ request: ServerRequest) async throws {
      try await channel.executeThenClose { frames, replies in
        let health = SocketHealth()
        let socket = ServerSocket(limit: limits.waitingBytes) { message in
          try await health.writing {
            try await replies.write(WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(bytes: message)))
          }
        }
        defer { handler.closed(socket) }
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask { [handler] in
            for try await frame in frames {
              health.hear()
              switch frame.opcode {
              case .text:
                // The next message is read afterwards: a client cannot fill the memory.
                try await health.working {
                  try await handler.receive(Array(buffer: frame.unmaskedData), from: socket, for: request)
                }
              case .ping:
                try await health.writing {
                  try await replies.write(WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData))
                }
              case .pong: break
              case .connectionClose:
                var data = frame.unmaskedData
                let code = data.readSlice(length: 2) ?? ByteBuffer()
                try await replies.write(WebSocketFrame(fin: true, opcode: .connectionClose, data: code))
                return
              default: return
              }
            }
          }
          group.addTask { try await socket.sendQueued() }
          group.addTask { await socket.waitForOverflow() }
          group.addTask { [limits] in
            while true {
              try await replies.write(WebSocketFrame(fin: true, opcode: .ping, data: ByteBuffer()))
              try await Task.sleep(for: limits.pingInterval)
            }
          }
          // Writes wait for as long as the client does not read; this task does not.
          group.addTask { [limits] in
            while health.isAlive(within: limits.pingInterval * 3) { try await Task.sleep(for: limits.pingInterval) }
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

  /// Whether a client of a socket lives: it answers pings, except while the server works on a message and reads nothing; and it
  /// takes what is sent.
  private final class SocketHealth: Sendable {
    private struct State {
      /// When the client has sent something last, or the server has begun to read again.
      var heard = ContinuousClock.now
      var isWorking = false
      /// When each write that waits has begun, by its number.
      var writes: [Int: ContinuousClock.Instant] = [:]
      var lastWrite = 0
    }

    private let state = Mutex(State())

    func hear() { state.withLock { $0.heard = .now } }

    func working(_ body: () async throws -> Void) async throws {
      state.withLock { $0.isWorking = true }
      defer {
        state.withLock { state in
          state.isWorking = false
          state.heard = .now
        }
      }
      try await body()
    }

    func writing(_ body: () async throws -> Void) async throws {
      let number = state.withLock { state in
        state.lastWrite += 1
        state.writes[state.lastWrite] = .now
        return state.lastWrite
      }
      defer { state.withLock { $0.writes[number] = nil } }
      try await body()
    }

    func isAlive(within limit: Duration) -> Bool {
      state.withLock { state in
        let now = ContinuousClock.now
        let isSilent = !state.isWorking && state.heard.duration(to: now) >= limit
        return !isSilent && !state.writes.values.contains { $0.duration(to: now) >= limit }
      }
    }
  }
#endif
