#if LIBCURL
  import CCurl
  import DownpipeCore

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// Why a socket was not opened, for the error of the transfer.
  enum SocketRefusal: Equatable {
    case privateAddress(String)
    case system(Int32)
  }

  extension CurlTransfer {
    /// Opens the socket for an address that libcurl is about to connect to.
    ///
    /// This is after the look-up of the name, for each attempt and each hop: an address that is refused here is not
    /// connected to, under any name.
    func openSocket(_ address: inout curl_sockaddr) -> curl_socket_t {
      if settings.blocksPrivateAddresses {
        let host = withUnsafePointer(to: &address.addr) { NetworkAddress($0, length: Int(address.addrlen)) }
        guard let host, host.isPublic else {
          refusal = .privateAddress(host?.description ?? "an address of an unknown kind")
          return CURL_SOCKET_BAD
        }
      }
      #if canImport(Glibc)
        let descriptor = socket(address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.protocol)
      #else
        let descriptor = socket(address.family, address.socktype, address.protocol)
        if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
      #endif
      if descriptor >= 0 {
        connections.forgetData(descriptor)
        guard loop.sockets.add(descriptor, of: order.id) else {
          _ = close(descriptor)
          return CURL_SOCKET_BAD
        }
      }
      if descriptor < 0 {
        refusal = .system(errno)
      } else if isConnected, handler.opensDataConnections {
        connections.addData(descriptor, of: self)
      } else {
        hasOpenedSocket = true
      }
      return descriptor
    }
  }
#endif
