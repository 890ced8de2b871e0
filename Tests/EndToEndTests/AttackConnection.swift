#if RPC
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Synchronization

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// A connection to a daemon over which a test sends what it likes. Sending and receiving block, on threads of their
  /// own.
  final class AttackConnection: Sendable {
    /// A frame of the server (RFC 6455).
    struct Frame: Sendable, Hashable {
      let code: UInt8
      let payload: [UInt8]

      var json: JSON? { try? JSONDecoder().decode(JSON.self, from: Data(payload)) }
    }

    private let descriptor: Int32
    /// What has come, and was not asked for yet.
    private let received = Mutex<[UInt8]>([])

    /// Connects.
    ///
    /// - Parameters:
    ///   - source: The address of the client: Linux has all of 127.0.0.0/8.
    ///   - takesLittle: Whether the systems of both sides keep only some kilobytes of what the server sends.
    init(_ place: LocalPlace, from source: String? = nil, takesLittle: Bool = false) throws {
      descriptor = try place.connection { descriptor in
        func set(_ level: Int32, _ option: Int32, _ value: Int32) {
          var value = value
          setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
        }
        if takesLittle {
          set(SOL_SOCKET, SO_RCVBUF, 4096)
          // Linux makes the send buffer of the server from the size of a segment, which is 64 KiB within a machine.
          set(Int32(IPPROTO_TCP), TCP_MAXSEG, 536)
        }
        #if canImport(Darwin)
          set(SOL_SOCKET, SO_NOSIGPIPE, 1)
        #endif
        guard let source else { return }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr(source)
        _ = withUnsafePointer(to: &address) { pointer in
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
          }
        }
      }
      // A server that takes nothing and does not end the connection fails the test.
      var limit = timeval()
      limit.tv_sec = time_t(Command.hangLimit)
      setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    // MARK: Bytes

    func send(_ text: String) async { await send(Array(text.utf8)) }

    /// Sends bytes so many times, as far as the server takes them.
    func send(_ bytes: [UInt8], times: Int = 1) async {
      await withCheckedContinuation { continuation in
        Thread.detachNewThread { [self] in
          for _ in 0..<times where !sendAll(bytes) { break }
          continuation.resume()
        }
      }
    }

    private func sendAll(_ bytes: [UInt8]) -> Bool {
      var sent = 0
      while sent < bytes.count {
        let count = bytes[sent...].withUnsafeBytes { systemSend(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { return false }
        sent += count
      }
      return true
    }

    /// Ends what blocks: the connection is closed on both sides.
    func cut() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Whether the server has ended the connection, as far as this machine knows by now.
    var isEnded: Bool {
      var byte: UInt8 = 0
      let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
      return count == 0 || count < 0 && errno != EAGAIN && errno != EINTR
    }

    /// Receives until there is enough.
    /// - Parameter take: Takes what is enough; its second argument says whether the connection has ended.
    /// - Throws: `DownloadError` with `.timedOut` if the server neither sends anything nor ends the connection.
    private func receive<Value: Sendable>(
      _ take: @escaping @Sendable (inout [UInt8], Bool) -> Value?
    ) async throws -> Value? {
      try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { [self] in continuation.resume(with: Result { try receiveNow(take) }) }
      }
    }

    private func receiveNow<Value>(_ take: (inout [UInt8], Bool) -> Value?) throws -> Value? {
      var bytes = received.withLock { $0 }
      defer { received.withLock { $0 = bytes } }
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while true {
        if let value = take(&bytes, false) { return value }
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count > 0 {
          bytes += buffer[..<count]
        } else if count == 0 || errno != EAGAIN && errno != EINTR {
          return take(&bytes, true)
        } else if errno == EAGAIN {
          throw DownloadError(.timedOut, "the server neither sends anything nor ends the connection")
        }
      }
    }

    /// Receives to the end of the connection.
    func rest() async throws -> [UInt8] {
      try await receive { bytes, isAtEnd in
        guard isAtEnd else { return nil }
        defer { bytes = [] }
        return bytes
      } ?? []
    }

    /// Receives until a text has come, and returns what has come so far; `nil` if the connection ends before.
    func text(until mark: String) async throws -> String? {
      try await receive { bytes, _ in
        let text = String(decoding: bytes, as: UTF8.self)
        return text.contains(mark) ? text : nil
      }
    }

    /// Receives a reply; `nil` if the connection ends without one.
    func reply() async throws -> LocalPlace.Reply? {
      try await receive { bytes, isAtEnd in
        guard let reply = LocalPlace.parse(bytes, isAtEnd: isAtEnd) else { return nil }
        bytes = []
        return reply
      }
    }

    /// Receives the head of a reply, whose body may have no end; `nil` if the connection ends without one.
    func head() async throws -> LocalPlace.Reply? {
      try await receive { bytes, _ in
        guard let (head, end) = LocalPlace.parseHead(bytes) else { return nil }
        bytes.removeFirst(end)
        return head
      }
    }

    // MARK: WebSocket

    /// Asks for a socket.
    static func handshake(_ fields: [String] = ["Host: localhost"]) -> [UInt8] {
      let lines =
        [
          "GET /jsonrpc HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ] + fields
      return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    /// Makes a socket of the connection.
    /// - Throws: `DownloadError` with `.invalidResponse` if the server does not.
    func upgrade() async throws {
      await send(Self.handshake())
      let status = try await head()?.status
      guard status == 101 else { throw DownloadError(.invalidResponse, "no socket, but \(status ?? 0)") }
    }

    /// A frame, with a mask of zeros unless it has none.
    static func frame(_ code: UInt8, _ payload: [UInt8], isFinal: Bool = true, isMasked: Bool = true) -> [UInt8] {
      let mask: UInt8 = isMasked ? 0x80 : 0
      var bytes = [(isFinal ? 0x80 : 0) | code]
      switch payload.count {
      case ..<126: bytes.append(mask | UInt8(payload.count))
      case ..<65_536: bytes += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
      default: bytes += [mask | 127] + (0..<8).reversed().map { UInt8(payload.count >> (8 * $0) & 255) }
      }
      return bytes + (isMasked ? [0, 0, 0, 0] : []) + payload
    }

    /// Receives a frame; `nil` at the end of the connection.
    func frame() async throws -> Frame? {
      try await receive { bytes, _ in
        guard bytes.count >= 2 else { return nil }
        let short = Int(bytes[1] & 0x7F)
        let head = short < 126 ? 2 : short == 126 ? 4 : 10
        guard bytes.count >= head else { return nil }
        let length = short < 126 ? short : bytes[2..<head].reduce(0) { $0 << 8 | Int($1) }
        guard bytes.count >= head + length else { return nil }
        let frame = Frame(code: bytes[0] & 0x0F, payload: Array(bytes[head..<head + length]))
        bytes.removeFirst(head + length)
        return frame
      }
    }

    /// Receives a message of text; `nil` at the end of the connection.
    func message() async throws -> JSON? {
      while let frame = try await frame() { if frame.code == 1 { return frame.json } }
      return nil
    }
  }

  private func systemSend(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    #if canImport(Glibc)
      Glibc.send(descriptor, bytes, count, Int32(MSG_NOSIGNAL))
    #else
      Darwin.send(descriptor, bytes, count, 0)
    #endif
  }
#endif
