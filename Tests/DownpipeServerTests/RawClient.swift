#if Postgres || RPC
  import Foundation
  import Testing

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// A client that sends what it likes. Its calls block, on threads of their own.
  final class RawClient: Sendable {
    private let descriptor: CInt

    /// - Parameter receiveBuffer: The size of the system's buffer for what the server sends.
    init(port: Int, receiveBuffer: CInt? = nil) throws {
      #if canImport(Glibc)
        descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
      #else
        descriptor = socket(AF_INET, SOCK_STREAM, 0)
      #endif
      if var receiveBuffer {
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<CInt>.size))
      }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = in_port_t(port).bigEndian
      address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
      let result = withUnsafePointer(to: &address) { address in
        address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      try #require(result == 0)
    }

    deinit { close(descriptor) }

    func send(_ text: String) async { await send(Array(text.utf8)) }

    /// Sends bytes, as far as the server takes them.
    func send(_ bytes: [UInt8]) async {
      await withCheckedContinuation { continuation in
        Thread.detachNewThread { [descriptor] in
          var sent = 0
          while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { systemSend(descriptor, $0.baseAddress, $0.count) }
            if count <= 0 { break }
            sent += count
          }
          withExtendedLifetime(self) { continuation.resume() }
        }
      }
    }

    /// Receives until the end of the connection, or until what was received is enough.
    func receive(until isEnough: @escaping @Sendable ([UInt8]) -> Bool = { _ in false }) async -> [UInt8] {
      await withCheckedContinuation { continuation in
        Thread.detachNewThread { [descriptor] in
          var received: [UInt8] = []
          var buffer = [UInt8](repeating: 0, count: 65_536)
          while !isEnough(received) {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count <= 0 { break }
            received += buffer[..<count]
          }
          withExtendedLifetime(self) { continuation.resume(returning: received) }
        }
      }
    }

    /// Receives until a text has come, or to the end.
    func text(until end: String) async -> String {
      String(decoding: await receive { String(decoding: $0, as: UTF8.self).contains(end) }, as: UTF8.self)
    }

    // MARK: Sockets (RFC 6455)

    static let upgrade =
      "GET /socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

    /// A frame with a mask of zeros.
    static func frame(_ code: UInt8, _ payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
      var bytes = [(isFinal ? 0x80 : 0) | code]
      switch payload.count {
      case ..<126: bytes.append(0x80 | UInt8(payload.count))
      case ..<65_536: bytes += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
      default:
        bytes.append(0x80 | 127)
        withUnsafeBytes(of: UInt64(payload.count).bigEndian) { bytes += $0 }
      }
      return bytes + [0, 0, 0, 0] + payload
    }
  }

  private func systemSend(_ descriptor: CInt, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    #if canImport(Glibc)
      Glibc.send(descriptor, bytes, count, CInt(MSG_NOSIGNAL))
    #else
      Darwin.send(descriptor, bytes, count, 0)
    #endif
  }
#endif
