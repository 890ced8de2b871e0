#if LIBCURL
  import CCurl

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// How sockets are closed.
  ///
  /// The system goes on to send what the server has not acknowledged, for minutes after the socket was closed, and after the
  /// process has ended. A request that was given up while the network was away would reach the server when it is back, when
  /// another worker has the download, and its place among the requests that the fleet may send to the host.
  enum SocketClosing {
    /// Closes a socket. What the server has not acknowledged is discarded, and the connection is reset. After the last answer of
    /// an idle one that is a farewell, which the server may have; one that libcurl does not keep, such as of FTP with TLS, may
    /// be reset with its farewell.
    static func closeSocket(_ socket: curl_socket_t, wasIdle: Bool) -> CInt {
      if !wasIdle, downpipe_unacknowledged_bytes(socket) > 0 { downpipe_discard_on_close(socket) }
      return close(socket)
    }
  }
#endif
