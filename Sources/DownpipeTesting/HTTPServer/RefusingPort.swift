public import DownpipeCore
public import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A port of this machine on which every connection is refused, for as long as the value lives.
///
/// The port is taken, but nothing listens on it. The port of a server that has ended is not the same: another server
/// may get it.
///
/// ```swift
/// let port = try RefusingPort()
/// await #expect { try await source.open(SourceRequest(url: port.url())) } throws: {
///   ($0 as? DownloadError)?.code == .network
/// }
/// withExtendedLifetime(port) {}
/// ```
public final class RefusingPort: Sendable {
  /// The port, on 127.0.0.1.
  public let port: Int
  private let descriptor: Int32

  /// Takes a free port.
  ///
  /// - Throws: `DownloadError` with `.network` if there is none.
  public init() throws(DownloadError) {
    #if canImport(Glibc)
      let stream = Int32(SOCK_STREAM.rawValue)
    #else
      let stream = SOCK_STREAM
    #endif
    let descriptor = socket(AF_INET, stream, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(descriptor, address, size) == 0 && getsockname(descriptor, address, &size) == 0
      }
    }
    guard isBound else {
      if descriptor >= 0 { close(descriptor) }
      throw DownloadError(.network, "no free port on 127.0.0.1")
    }
    self.descriptor = descriptor
    port = Int(UInt16(bigEndian: address.sin_port))
  }

  deinit { close(descriptor) }

  /// A URL on this port.
  public func url(_ path: String = "/") -> URL { URL(string: "http://127.0.0.1:\(port)\(path)")! }
}
