#if LIBCURL
  import CCurl

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// What tells the connections of a lane apart: the address and port of the server, and the port here.
  struct ConnectionKey: Hashable {
    let address: String
    let port: Int32
    let localPort: Int32

    init(_ address: String, _ port: Int32, _ localPort: Int32) {
      self.address = address
      self.port = port
      self.localPort = localPort
    }
  }

  /// The sockets of a lane's HTTP/1.1 connections, to check one before it is used again.
  ///
  /// Bytes that come after the end of a response would be taken for the next response: another file would get them. libcurl
  /// (7.88) does not look. (It closes a connection when such bytes come with the end of the response.)
  final class IdleConnections {
    private var sockets: [ConnectionKey: curl_socket_t] = [:]
    private var keys: [curl_socket_t: ConnectionKey] = [:]

    func add(_ socket: curl_socket_t, _ key: ConnectionKey) {
      sockets[key] = socket
      keys[socket] = key
    }

    /// The socket is closed.
    func forget(_ socket: curl_socket_t) {
      if let key = keys.removeValue(forKey: socket) { sockets[key] = nil }
    }

    /// Whether the server has sent nothing and has not closed the connection.
    func isClean(_ key: ConnectionKey) -> Bool {
      guard let socket = sockets[key] else { return true }
      var byte: UInt8 = 0
      let count = recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
      return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
    }
  }
#endif
