#if LIBCURL
  import CCurl

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// What tells the connections of a thread apart: the address and port of the server, and the port here.
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

  /// The sockets of a thread's connections that have carried a request, to check one before it is used again, and to know
  /// which of them are idle when they are closed.
  ///
  /// Bytes that come after the end of a response would be taken for the next response: another file would get them. libcurl
  /// (7.88) does not look. (It closes a connection when such bytes come with the end of the response.)
  final class IdleConnections {
    /// Those of connections that carry one request at a time.
    private var sockets: [ConnectionKey: curl_socket_t] = [:]
    private var keys: [curl_socket_t: ConnectionKey] = [:]
    /// The transfers whose requests the connections carry. libcurl hands a connection to the next transfer before it says
    /// that the last one has finished.
    private var users: [ConnectionKey: ObjectIdentifier] = [:]
    /// The data connections of FTP, with their transfers.
    private var dataSockets: [curl_socket_t: CurlTransfer] = [:]
    private let open: OpenSockets

    init(_ open: OpenSockets) { self.open = open }

    func socket(of key: ConnectionKey) -> curl_socket_t? { sockets[key] }

    /// A new socket has this number: libcurl has closed an earlier one, whose connection was not made, without a callback.
    func forgetData(_ socket: curl_socket_t) { if !dataSockets.isEmpty { dataSockets[socket] = nil } }

    /// A connection has a request, maybe another one of the same transfer.
    func use(_ key: ConnectionKey, by transfer: ObjectIdentifier) { users[key] = transfer }

    /// The request of a transfer is over.
    ///
    /// - Parameters:
    ///   - socket: That of the connection, if it may be used again.
    ///   - isShared: Whether the connection carries several requests at a time: frames come at any time.
    func release(
      _ key: ConnectionKey, by transfer: ObjectIdentifier, keeping socket: curl_socket_t?, isShared: Bool = false
    ) {
      if users[key] == transfer { users[key] = nil }
      guard let socket else { return }
      keys[socket] = key
      if !isShared { sockets[key] = socket }
    }

    func addData(_ socket: curl_socket_t, of transfer: CurlTransfer) { dataSockets[socket] = transfer }

    /// The socket is about to be closed.
    /// - Returns: Whether its connection was idle.
    func forget(_ socket: curl_socket_t) -> Bool {
      open.forget(socket)
      let key = keys.removeValue(forKey: socket)
      if let key, sockets[key] == socket { sockets[key] = nil }
      if !dataSockets.isEmpty, let transfer = dataSockets.removeValue(forKey: socket), Self.hasPlainBytes(socket) {
        transfer.noteUnreadBytes()
      }
      return key.map { users[$0] == nil } ?? false
    }

    /// Whether the server has sent nothing and has not closed the connection.
    func isClean(_ key: ConnectionKey) -> Bool {
      guard let socket = sockets[key] else { return true }
      var byte: UInt8 = 0
      let count = recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
      return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
    }

    /// Lets libcurl send its farewell on each idle connection, and not wait for the answer.
    func endReading() {
      for (socket, key) in keys where users[key] == nil { shutdown(socket, Int32(SHUT_RD)) }
    }

    /// Whether there are bytes that were not read, other than a record of TLS: that may be its end.
    private static func hasPlainBytes(_ socket: curl_socket_t) -> Bool {
      var bytes: (UInt8, UInt8) = (0, 0)
      let count = withUnsafeMutableBytes(of: &bytes) {
        recv(socket, $0.baseAddress, 2, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
      }
      return count > 0 && !(count == 2 && (20...24).contains(bytes.0) && bytes.1 == 3)
    }
  }
#endif
