#if AsyncHTTPClient && os(Linux)
  import DownpipeAsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Glibc
  import HangLimit
  import Testing

  /// Idle connections, and connections that do not come about. On Linux every address in 127.0.0.0/8 is this machine.
  @Suite(.endsHangs)
  struct AsyncHTTPClientPoolTests {
    @Test func idleConnectionsToManyHostsAreBounded() async throws {
      let server = try await ScriptedHTTPServer.start(host: "0.0.0.0") { _ in ScriptedReply(200, body: .text("ok")) }
      try await withCleanup {
        await server.shutdown()
      } _: {
        try await withRunning(AsyncHTTPClientSource()) { source in
          for host in 1...100 {
            let url = try #require(URL(string: "http://127.0.0.\(host):\(server.port)/"))
            #expect(try await source.fetch(url).bytes == Array("ok".utf8))
          }
          try await server.until { $0.connections == 100 && $0.openConnections <= 32 }
          // The latest ones are still open, and are used again.
          let url = try #require(URL(string: "http://127.0.0.100:\(server.port)/"))
          _ = try await source.fetch(url)
          #expect(server.activity.connections == 100)
        }
      }
    }

    @Test func cancellingAndStoppingDoNotWaitForAConnection() async throws {
      let port = try DeafPort()
      // An attempt outlasts the test: the test would not end if something waited for it.
      let source = AsyncHTTPClientSource { $0.connectTimeLimit = .seconds(3600) }
      let session = try await source.start(in: SourceContext())
      let opening = Task { try await session.open(SourceRequest(url: port.url)) }
      let cancelled = Task { try await session.open(SourceRequest(url: port.url)) }
      try await port.waitForAttempt()
      cancelled.cancel()
      await #expect(throws: CancellationError.self) { try await cancelled.value }
      await session.stop()
      let error = await downloadError { try await opening.value }
      #expect(error?.code == .shutDown)
    }
  }

  /// A port whose queue of new connections is full: the system drops further attempts to connect, which hang.
  private final class DeafPort: Sendable {
    private let listening: Int32
    private let waiting: [Int32]
    private let number: UInt16
    /// The ports of `waiting`.
    private let ownPorts: [UInt16]
    let url: URL

    init() throws {
      listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      let length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let descriptor = listening
      let isListening = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) == 0 }
          && listen(descriptor, 0) == 0
      }
      try #require(isListening)
      number = try Self.port(of: listening)
      address.sin_port = number.bigEndian
      url = try #require(URL(string: "http://127.0.0.1:\(number)/"))
      waiting = (0..<4).map { _ in
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        withUnsafePointer(to: &address) { pointer in
          _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(client, $0, length) }
        }
        return client
      }
      ownPorts = try waiting.map(Self.port)
    }

    private static func port(of descriptor: Int32) throws -> UInt16 {
      var address = sockaddr_in()
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let result = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
      }
      try #require(result == 0)
      return UInt16(bigEndian: address.sin_port)
    }

    /// Waits until an attempt to connect waits for an answer that is not one of this object's.
    func waitForAttempt() async throws {
      while try !hasAttempt() {
        try Task.checkCancellation()
        await Task.yield()
      }
    }

    /// Reads the table of connections: number, local address, remote address, state; 02 is an attempt.
    ///
    /// The attempts are told apart by their ports, not counted: other connections begin and end while the table is read,
    /// and the system then lists some lines twice.
    private func hasAttempt() throws -> Bool {
      // Not `String(contentsOfFile:)`, which ends with the first page of such a file.
      let table = try FileHandle(forReadingFrom: URL(filePath: "/proc/net/tcp")).readToEnd() ?? Data()
      return String(decoding: table, as: UTF8.self).split(separator: "\n").contains { line in
        let fields = line.split(separator: " ", maxSplits: 4)
        guard fields.count == 5, fields[3] == "02", Self.port(fields[2]) == number else { return false }
        return !ownPorts.contains { $0 == Self.port(fields[1]) }
      }
    }

    /// The port of an address such as `0100007F:1F90`.
    private static func port(_ address: Substring) -> UInt16? { UInt16(address.suffix(4), radix: 16) }

    deinit { for descriptor in [listening] + waiting { close(descriptor) } }
  }
#endif
