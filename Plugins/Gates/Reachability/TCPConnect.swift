import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Opens TCP connections and closes them again.
enum TCPConnect {
  /// Resolves a host and connects to one of its addresses. It blocks: for the limit at most while it connects, and as
  /// long as the resolver takes before.
  ///
  /// - Throws: `DownloadError` with `.offline`, whose message follows the name of the host.
  static func check(_ host: String, port: UInt16, within limit: Duration) throws(DownloadError) {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    #if canImport(Glibc)
      hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    #else
      hints.ai_socktype = SOCK_STREAM
    #endif
    var list: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(host, String(port), &hints, &list)
    guard result == 0, list != nil else {
      throw DownloadError(.offline, "has no address: \(String(cString: gai_strerror(result)))")
    }
    defer { freeaddrinfo(list) }
    let deadline = ContinuousClock.now + limit
    var failure: Int32 = ETIMEDOUT
    var next = list
    while let address = next?.pointee {
      next = address.ai_next
      let rest = deadline - ContinuousClock.now
      guard rest > .zero else { break }
      // A silent address leaves time for the next one.
      let share = address.ai_next == nil ? rest : rest / 2
      failure = connect(address, within: share)
      if failure == 0 { return }
    }
    if failure == ETIMEDOUT {
      throw DownloadError(.offline, "did not answer within \(limit.components.seconds) s")
    }
    throw DownloadError(.offline, "cannot be reached: \(String(cString: strerror(failure)))")
  }

  /// Connects to an address.
  ///
  /// - Returns: 0, or the code of the error.
  private static func connect(_ address: addrinfo, within limit: Duration) -> Int32 {
    let descriptor = socket(address.ai_family, address.ai_socktype, address.ai_protocol)
    guard descriptor >= 0 else { return errno }
    defer { _ = close(descriptor) }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    guard fcntl(descriptor, F_SETFL, O_NONBLOCK) >= 0 else { return errno }
    #if canImport(Glibc)
      let result = Glibc.connect(descriptor, address.ai_addr, address.ai_addrlen)
    #elseif canImport(Musl)
      let result = Musl.connect(descriptor, address.ai_addr, address.ai_addrlen)
    #else
      let result = Darwin.connect(descriptor, address.ai_addr, address.ai_addrlen)
    #endif
    if result == 0 { return 0 }
    guard errno == EINPROGRESS || errno == EINTR else { return errno }
    let deadline = ContinuousClock.now + limit
    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    while true {
      let rest = deadline - ContinuousClock.now
      guard rest > .zero else { return ETIMEDOUT }
      let count = poll(&entry, 1, Int32(rest / .milliseconds(1)) + 1)
      if count > 0 { break }
      if count < 0 && errno != EINTR { return errno }
    }
    var failure: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &failure, &length) == 0 else { return errno }
    return failure
  }
}
