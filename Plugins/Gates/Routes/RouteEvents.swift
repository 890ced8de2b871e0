#if os(Linux)
  import Dispatch
  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// The kernel's word that links, addresses or routes have changed (rtnetlink(7)), without asking it all the time.
  package enum RouteEvents {
    /// `RTMGRP_LINK`, `RTMGRP_IPV4_IFADDR`, `RTMGRP_IPV4_ROUTE`, `RTMGRP_IPV6_IFADDR`, `RTMGRP_IPV6_ROUTE`.
    private static let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400

    /// Opens a socket that hears of changes in the network namespace of the calling thread.
    /// - Returns: its descriptor, which the caller owns; `nil` when it is refused, as some sandboxes do.
    package static func open() -> Int32? {
      #if canImport(Glibc)
        let kind = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
      #else
        let kind = SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK
      #endif
      let descriptor = socket(AF_NETLINK, kind, 0 /* NETLINK_ROUTE */)
      guard descriptor >= 0 else { return nil }
      // `struct sockaddr_nl` is not in Swift's module of the C library, which leaves out <linux/netlink.h>. Its
      // twelve bytes are part of the kernel's stable interface: family (16 bits), padding (16), port (32; 0 lets the
      // kernel choose), groups (32).
      var address = sockaddr_storage()
      let result = withUnsafeMutableBytes(of: &address) { bytes in
        bytes.storeBytes(of: UInt16(AF_NETLINK), toByteOffset: 0, as: UInt16.self)
        bytes.storeBytes(of: 0, toByteOffset: 4, as: UInt32.self)
        bytes.storeBytes(of: groups, toByteOffset: 8, as: UInt32.self)
        return bytes.withMemoryRebound(to: sockaddr.self) { bind(descriptor, $0.baseAddress, 12) }
      }
      guard result == 0 else {
        _ = close(descriptor)
        return nil
      }
      return descriptor
    }

    /// An element after each change that the socket hears of; the stream owns the socket. It ends when the socket fails.
    package static func stream(_ descriptor: Int32) -> AsyncStream<Void> {
      let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
      let source = DispatchSource.makeReadSource(
        fileDescriptor: descriptor, queue: DispatchQueue(label: "downpipe.route-events"))
      source.setEventHandler {
        if drain(descriptor) { continuation.yield() } else { continuation.finish() }
      }
      source.setCancelHandler { _ = close(descriptor) }
      let owner = SourceOwner(source: source)
      continuation.onTermination = { _ in owner.source.cancel() }
      source.activate()
      return stream
    }

    /// Reads away what is there: that something changed is all that counts, the tables say what.
    /// - Returns: false when the socket has failed.
    private static func drain(_ descriptor: Int32) -> Bool {
      var buffer = [UInt8](repeating: 0, count: 8 << 10)
      // Bounded: what is left raises another event.
      for _ in 0..<256 {
        let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT)) }
        if count > 0 { continue }
        if count == 0 { return false }
        switch errno {
        // ENOBUFS: more changes than the socket's buffer holds; the tables have them all.
        case EINTR, ENOBUFS: continue
        case EAGAIN, EWOULDBLOCK: return true
        default: return false
        }
      }
      return true
    }
  }

  /// Carries a dispatch source to where the stream ends.
  private struct SourceOwner: @unchecked Sendable {
    // Sound: only `cancel` is called on it from elsewhere, which Dispatch allows from any thread.
    let source: any DispatchSourceRead
  }
#endif
