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

  /// A connection over the loopback interface within a process: one end for libcurl, which connects and closes it, one for
  /// the code that feeds it.
  final class LoopbackPair {
    let port: UInt16
    private let listening: Int32
    private var client: Int32 = -1
    private var feeding: Int32 = -1

    /// - Throws: ``DownloadError`` with `.tooManyOpenFiles` or `.processing`.
    init() throws(DownloadError) {
      listening = try Self.openSocket()
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let descriptor = listening
      let isReady = withUnsafeMutableBytes(of: &address) { bytes in
        guard let any = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return false }
        return bind(descriptor, any, length) == 0 && listen(descriptor, 1) == 0
          && getsockname(descriptor, any, &length) == 0 && fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0
      }
      port = UInt16(bigEndian: address.sin_port)
      guard isReady else { throw Self.failure(errno) }
    }

    deinit {
      close(listening)
      if feeding >= 0 { close(feeding) }
    }

    private static func openSocket() throws(DownloadError) -> Int32 {
      #if os(Linux)
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      #else
        let descriptor = socket(AF_INET, SOCK_STREAM, 0)
      #endif
      guard descriptor >= 0 else { throw failure(errno) }
      #if !os(Linux)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      #endif
      return descriptor
    }

    private static func failure(_ number: Int32) -> DownloadError {
      DownloadError(
        number == EMFILE || number == ENFILE ? .tooManyOpenFiles : .processing,
        "the decoder cannot start: \(String(cString: strerror(number)))")
    }

    /// The socket that libcurl connects, and closes.
    func openClient() -> Int32 {
      client = (try? Self.openSocket()) ?? -1
      return client
    }

    /// - Returns: Whether libcurl's end has connected.
    func accept() throws(DownloadError) -> Bool {
      var address = sockaddr_in()
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let accepted = withUnsafeMutableBytes(of: &address) {
        CCurl.accept(listening, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), &length)
      }
      guard accepted >= 0 else {
        guard [EAGAIN, EWOULDBLOCK, EINTR, ECONNABORTED].contains(errno) else { throw Self.failure(errno) }
        return false
      }
      // Another process of this machine may have been faster.
      guard address.sin_port == clientPort else {
        close(accepted)
        return false
      }
      _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
      _ = fcntl(accepted, F_SETFL, O_NONBLOCK)
      feeding = accepted
      return true
    }

    private var clientPort: in_port_t? {
      var address = sockaddr_in()
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let found = withUnsafeMutableBytes(of: &address) {
        $0.baseAddress.map { getsockname(client, $0.assumingMemoryBound(to: sockaddr.self), &length) } ?? -1
      }
      return found == 0 ? address.sin_port : nil
    }

    /// - Returns: The number of bytes that were taken, 0 when there is no room, -1 when the other end is closed.
    func send(_ bytes: RawSpan) -> Int {
      // The request is of no interest.
      var request = [UInt8](repeating: 0, count: 1024)
      while recv(feeding, &request, request.count, 0) > 0 {}
      let sent = bytes.withUnsafeBytes { buffer in
        #if os(Linux)
          CCurl.send(feeding, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
        #else
          write(feeding, buffer.baseAddress, buffer.count)
        #endif
      }
      if sent < 0, [EAGAIN, EWOULDBLOCK, EINTR].contains(errno) { return 0 }
      return sent
    }

    /// There is nothing more to send.
    func end() { shutdown(feeding, Int32(SHUT_WR)) }
  }
#endif
