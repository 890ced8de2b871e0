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
    /// Closes a socket. What the server has not acknowledged is discarded, and the connection is reset; after the last answer of
    /// an idle one that is a farewell, which the server may have.
    static func close(_ socket: curl_socket_t, wasIdle: Bool) -> CInt {
      if !wasIdle, hasUnacknowledged(socket) {
        var reset = linger(l_onoff: 1, l_linger: 0)
        _ = setsockopt(socket, SOL_SOCKET, SO_LINGER, &reset, socklen_t(MemoryLayout<linger>.size))
      }
      #if canImport(Glibc)
        return Glibc.close(socket)
      #elseif canImport(Musl)
        return Musl.close(socket)
      #else
        return Darwin.close(socket)
      #endif
    }

    private static func hasUnacknowledged(_ socket: curl_socket_t) -> Bool {
      var count: CInt = 0
      #if canImport(Darwin)
        var size = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(socket, SOL_SOCKET, SO_NWRITE, &count, &size) == 0 && count > 0
      #else
        return ioctl(socket, UInt(TIOCOUTQ), &count) == 0 && count > 0
      #endif
    }
  }
#endif
