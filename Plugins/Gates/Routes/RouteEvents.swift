#if os(Linux)
  import Dispatch
  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// Notifications of the kernel about changed links, addresses and routes (rtnetlink(7)).
  package enum RouteEvents {
    /// `RTMGRP_LINK`, `RTMGRP_IPV4_IFADDR`, `RTMGRP_IPV4_ROUTE`, `RTMGRP_IPV6_IFADDR`, `RTMGRP_IPV6_ROUTE`.
    private static let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400

    /// Opens a socket for changes in the network namespace of the calling thread.
    ///
    /// - Returns: Its descriptor, which the caller owns; `nil` when the system forbids it, as some sandboxes do.
    package static func open() -> Int32? {
      #if canImport(Glibc)
        let kind = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
      #else
        let kind = SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK
      #endif
      let descriptor = socket(AF_NETLINK, kind, 0 /* NETLINK_ROUTE */)
      guard descriptor >= 0 else { return nil }
      // Swift's module of the C library does not contain `struct sockaddr_nl`. Its twelve bytes are part of the
      // kernel's stable interface: family (16 bits), padding (16), port (32; 0 lets the kernel choose), groups (32).
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

    /// A stream with an element after each change. It owns the socket, and ends when the socket fails.
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

    /// Reads and discards all notifications, since the tables have the new state.
    ///
    /// - Returns: False when the socket has failed.
    private static func drain(_ descriptor: Int32) -> Bool {
      var buffer = [UInt8](repeating: 0, count: 8 << 10)
      // Limited, since unread notifications cause another event.
      for _ in 0..<256 {
        let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT)) }
        if count > 0 { continue }
        if count == 0 { return false }
        switch errno {
        // ENOBUFS: there were more changes than the socket buffer can store, which does not matter here.
        case EINTR, ENOBUFS: continue
        case EAGAIN, EWOULDBLOCK: return true
        default: return false
        }
      }
      return true
    }
  }

  /// Passes a dispatch source to the handler at the end of the stream.
  private struct SourceOwner: @unchecked Sendable {
    // Safe: only `cancel` is called from another thread, which Dispatch allows.
    let source: any DispatchSourceRead
  }
#endif
