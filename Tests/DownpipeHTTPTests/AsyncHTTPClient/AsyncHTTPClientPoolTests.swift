#if AsyncHTTPClient && os(Linux)
  import DownpipeAsyncHTTPClient
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Glibc
  import Testing

  /// Idle connections, and connections that do not come about. On Linux every address in 127.0.0.0/8 is this machine.
  @Suite(.timeLimit(.minutes(5)))
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
      let session = try await AsyncHTTPClientSource().start(in: SourceContext())
      let opening = Task { try await session.open(SourceRequest(url: port.url)) }
      let cancelled = Task { try await session.open(SourceRequest(url: port.url)) }
      try await port.waitForAttempt()
      let time = await ContinuousClock().measure {
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        await session.stop()
        let error = await downloadError { try await opening.value }
        #expect(error?.code == .shutDown)
      }
      // The connect time limit is 30 seconds.
      #expect(time < .seconds(10), "\(time)")
    }
  }

  /// A port whose queue of new connections is full: the system drops further attempts to connect, which hang.
  private final class DeafPort: Sendable {
    private let listening: Int32
    private let waiting: [Int32]
    private let number: UInt16
    private let ownAttempts: Int
    let url: URL

    init() throws {
      listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let descriptor = listening
      let bound = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { place in
          bind(descriptor, place, length) == 0 && listen(descriptor, 0) == 0
            && getsockname(descriptor, place, &length) == 0
        }
      }
      try #require(bound)
      number = UInt16(bigEndian: address.sin_port)
      url = try #require(URL(string: "http://127.0.0.1:\(number)/"))
      waiting = (0..<4).map { _ in
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        withUnsafePointer(to: &address) { pointer in
          _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(client, $0, length) }
        }
        return client
      }
      // Each connection of this machine is accepted or dropped before `connect` returns.
      ownAttempts = try Self.attempts(number)
    }

    /// Waits until there are more attempts to connect than those of this object.
    func waitForAttempt() async throws {
      while try Self.attempts(number) <= ownAttempts {
        try Task.checkCancellation()
        await Task.yield()
      }
    }

    /// The number of attempts that wait for an answer: lines of the table with the remote address and the state 02.
    private static func attempts(_ number: UInt16) throws -> Int {
      let port = String(number, radix: 16, uppercase: true)
      let attempt = " 0100007F:\(String(repeating: "0", count: 4 - port.count))\(port) 02 "
      // Not `String(contentsOfFile:)`, which ends with the first page of such a file.
      let table = try FileHandle(forReadingFrom: URL(filePath: "/proc/net/tcp")).readToEnd() ?? Data()
      return String(decoding: table, as: UTF8.self).ranges(of: attempt).count
    }

    deinit { for descriptor in [listening] + waiting { close(descriptor) } }
  }
#endif
