import CSystemCalls
import DownpipeCore
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Owns a socket of a scripted server, which never blocks.
final class ServerSocket: Sendable {
  let descriptor: Int32
  private let hasEnded = Atomic(false)

  private init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { end() }

  /// Closes it. It must not be used any more.
  func end() {
    if !hasEnded.exchange(true, ordering: .relaxed) { close(descriptor) }
  }

  /// Listens on an address of this machine.
  ///
  /// - Parameter port: A free one if 0.
  /// - Throws: `DownloadError` with `.network` that names address and port.
  static func listening(host: String, port: Int) throws(DownloadError) -> ServerSocket {
    var hints = addrinfo()
    hints.ai_protocol = Int32(IPPROTO_TCP)
    var addresses: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, String(port), &hints, &addresses)
    guard status == 0, let address = addresses?.pointee else {
      throw DownloadError(.network, "cannot listen on \(host), port \(port): \(String(cString: gai_strerror(status)))")
    }
    defer { freeaddrinfo(addresses) }
    let descriptor = downpipe_socket(address.ai_family)
    if descriptor >= 0 {
      let socket = ServerSocket(descriptor)
      socket.set(SOL_SOCKET, SO_REUSEADDR, 1)
      if bind(descriptor, address.ai_addr, address.ai_addrlen) == 0, listen(descriptor, 1024) == 0 { return socket }
    }
    throw DownloadError(.network, "cannot listen on \(host), port \(port): \(String(cString: strerror(errno)))")
  }

  /// Makes two sockets that are connected with each other.
  ///
  /// - Throws: `DownloadError` with `.network` if the process has no descriptors left.
  static func pair() throws(DownloadError) -> (ServerSocket, ServerSocket) {
    var descriptors: [Int32] = [-1, -1]
    guard downpipe_socket_pair(&descriptors) == 0 else {
      throw DownloadError(.network, "no sockets: \(String(cString: strerror(errno)))")
    }
    return (ServerSocket(descriptors[0]), ServerSocket(descriptors[1]))
  }

  /// The next connection; `nil` if there is none, or no descriptor for it.
  func nextConnection() -> ServerSocket? {
    let descriptor = downpipe_accept(descriptor)
    return descriptor < 0 ? nil : ServerSocket(descriptor)
  }

  /// The port that it is bound to.
  var port: Int { Int(name(getsockname).port) ?? 0 }

  /// The address and the port of the other end.
  var peer: String {
    let name = name(getpeername)
    return "\(name.host):\(name.port)"
  }

  /// Sends the bytes of every call at once, rather than when those before them have arrived.
  func sendAtOnce() { set(Int32(IPPROTO_TCP), TCP_NODELAY, 1) }

  /// Sets the size of the send buffer in bytes.
  func setSendBuffer(_ size: Int) { set(SOL_SOCKET, SO_SNDBUF, Int32(clamping: size)) }

  /// Lets the system send RST instead of FIN when the socket is closed, and drop unsent bytes.
  func resetWhenClosed() {
    var setting = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &setting, socklen_t(MemoryLayout<linger>.size))
  }

  /// Receives what is there; an empty array if nothing is, `nil` at the end or after an error.
  func receive() -> [UInt8]? {
    var count = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, used in
      repeat { count = recv(descriptor, buffer.baseAddress, buffer.count, 0) } while count < 0 && errno == EINTR
      used = max(0, count)
    }
    if count < 0 { return errno == EAGAIN || errno == EWOULDBLOCK ? [] : nil }
    return count == 0 ? nil : bytes
  }

  /// Sends as many bytes as the system takes now, and returns their number; `nil` after an error.
  func send(_ bytes: ArraySlice<UInt8>) -> Int? {
    var count = 0
    repeat {
      count = bytes.withUnsafeBytes { downpipe_send(descriptor, $0.baseAddress, UInt($0.count)) }
    } while count < 0 && errno == EINTR
    if count >= 0 { return count }
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 0 : nil
  }

  private func set(_ level: Int32, _ option: Int32, _ value: Int32) {
    var value = value
    setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  private func name(
    _ call: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> (host: String, port: String) {
    var address = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    var (host, port) = ([CChar](repeating: 0, count: 64), [CChar](repeating: 0, count: 8))
    withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard call(descriptor, address, &size) == 0 else { return }
        _ = getnameinfo(
          address, size, &host, socklen_t(host.count), &port, socklen_t(port.count), NI_NUMERICHOST | NI_NUMERICSERV)
      }
    }
    return (String(nullTerminated: host), String(nullTerminated: port))
  }
}

extension String {
  fileprivate init(nullTerminated characters: [CChar]) {
    self.init(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
