#if LIBCURL
  import CCurl
  import Testing

  @testable import DownpipeHTTP

  /// Which connections are idle when they are closed.
  struct IdleConnectionsTests {
    private final class User {}
    private let key = ConnectionKey("192.0.2.1", 443, 50_000)
    // No process has so many descriptors.
    private let socket: curl_socket_t = 1 << 30
    private let first = User()
    private let second = User()

    @Test(arguments: [false, true])
    func `a connection is idle after its request`(isShared: Bool) {
      let connections = IdleConnections(OpenSockets())
      connections.use(key, by: ObjectIdentifier(first))
      connections.release(key, by: ObjectIdentifier(first), keeping: socket, isShared: isShared)
      // Only one that carries a request at a time is checked for stray bytes.
      #expect(connections.socket(of: key) == (isShared ? nil : socket))
      #expect(connections.forget(socket))
      #expect(connections.socket(of: key) == nil)
      #expect(!connections.forget(socket))
    }

    @Test func `a connection that the next transfer has before the last one is over is not idle`() {
      let connections = IdleConnections(OpenSockets())
      connections.use(key, by: ObjectIdentifier(first))
      connections.use(key, by: ObjectIdentifier(second))
      connections.release(key, by: ObjectIdentifier(first), keeping: socket)
      #expect(!connections.forget(socket))
    }

    @Test func `a reused connection is not idle, and is still checked before each request`() {
      let connections = IdleConnections(OpenSockets())
      connections.use(key, by: ObjectIdentifier(first))
      connections.release(key, by: ObjectIdentifier(first), keeping: socket)
      connections.use(key, by: ObjectIdentifier(second))
      #expect(connections.socket(of: key) == socket)
      #expect(!connections.forget(socket))
    }

    @Test func `a connection whose transfer has failed is not idle`() {
      let connections = IdleConnections(OpenSockets())
      connections.use(key, by: ObjectIdentifier(first))
      connections.release(key, by: ObjectIdentifier(first), keeping: nil)
      #expect(!connections.forget(socket))
    }
  }
#endif
