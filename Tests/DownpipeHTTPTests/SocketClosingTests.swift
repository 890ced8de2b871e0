#if LIBCURL && os(Linux)
  import DownpipeCore
  import Foundation
  import Glibc
  import HangLimit
  import Testing

  @testable import DownpipeHTTP

  /// What the system still sends of a transfer that has ended.
  @Suite(.endsHangs)
  struct SocketClosingTests {
    @Test("What the server has not acknowledged is not sent after the transfer was given up")
    func givenUp() async throws {
      let server = try SlowReader()
      let thread = try CurlThread("downpipe.test", HTTPSource.Configuration().curlSettings)
      let response = PendingResponse(thread, of: thread)
      let request = Task {
        try await response.start { id in
          Order(id: id, url: server.url, request: HTTPOrder(.put, fields: [:], body: Zeros(byteCount: 8 << 20)))
        }
      }
      let connection = try await server.connection(thatHasReceived: 1_000)
      request.cancel()
      await #expect(throws: CancellationError.self) { _ = try await request.value }
      await thread.stop()
      #expect(SlowReader.end(of: connection) == ECONNRESET)
    }

    private struct Zeros: RequestBody {
      let byteCount: Int64

      func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
        let count = Int(min(Int64(buffer.count), byteCount - offset))
        for index in 0..<count { buffer[index] = 0 }
        return count
      }
    }
  }

  /// A server that asks for a body, has room for little of it, and does not read.
  private final class SlowReader: Sendable {
    let url: String
    private let listener: CInt

    init() throws {
      let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
      self.listener = listener
      var size: CInt = 4096
      setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let listens = withUnsafeMutablePointer(to: &address) { address in
        address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(listener, $0, length) == 0 && listen(listener, 1) == 0 && getsockname(listener, $0, &length) == 0
        }
      }
      url = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))/"
      try #require(listens)
    }

    deinit { _ = close(listener) }

    /// Accepts a connection, and waits until bytes of the body have arrived: the client has sent more than there is room for.
    func connection(thatHasReceived bytes: CInt) async throws -> CInt {
      var connection: CInt = -1
      while connection < 0 {
        connection = accept(listener, nil, nil)
        await Task.yield()
      }
      let answer = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
      try #require(send(connection, answer, answer.count, 0) == answer.count)
      var waiting: CInt = 0
      while waiting < bytes {
        try #require(ioctl(connection, UInt(FIONREAD), &waiting) == 0)
        await Task.yield()
      }
      return connection
    }

    /// The error with which a connection ends; 0 if the client has closed it.
    static func end(of connection: CInt) -> CInt {
      defer { _ = close(connection) }
      var buffer = [UInt8](repeating: 0, count: 1 << 16)
      while true {
        switch recv(connection, &buffer, buffer.count, 0) {
        case 0: return 0
        case ..<0: return errno
        default: continue
        }
      }
    }
  }
#endif
