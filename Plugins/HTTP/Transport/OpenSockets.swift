#if LIBCURL
  import CCurl
  import Synchronization

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// The connections that libcurl may wait for within one call, for the threads that end such a wait.
  ///
  /// In a TLS handshake of FTP libcurl calls nothing back, and the thread reads no commands: a cancellation shuts the
  /// connection down.
  ///
  /// Each socket is duplicated. libcurl closes one whose connection was not made without a callback, and its number may be
  /// that of another file at once. A shutdown works under every number of a connection, and that of the copy is ours.
  final class OpenSockets: Sendable {
    private struct Entry {
      /// The copies, by libcurl's numbers.
      var copies: [curl_socket_t: Int32] = [:]
      var reason: (any Error)?
    }

    private struct State {
      var entries: [Order.ID: Entry] = [:]
      var owners: [curl_socket_t: Order.ID] = [:]
      var stopReason: (any Error)?
    }

    private let state = Mutex(State())

    // MARK: For the thread of the thread

    func begin(_ id: Order.ID) {
      state.withLock { state in
        let reason = state.stopReason
        state.entries[id] = Entry(reason: reason)
      }
    }

    /// - Returns: `false` when the transfer was cut: it opens no more sockets.
    func add(_ socket: curl_socket_t, of id: Order.ID) -> Bool {
      state.withLock { state in
        guard var entry = state.entries[id] else { return true }
        guard entry.reason == nil else { return false }
        let copy = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        // Without descriptors the wait ends by its limit.
        guard copy >= 0 else { return true }
        if let old = entry.copies.updateValue(copy, forKey: socket) { _ = close(old) }
        state.entries[id] = entry
        state.owners[socket] = id
        return true
      }
    }

    /// The connection was made from this port: other attempts are over.
    func keep(_ localPort: Int32, of id: Order.ID) {
      state.withLock { state in
        for (socket, copy) in state.entries[id]?.copies ?? [:] where Self.localPort(copy) != localPort {
          state.entries[id]?.copies[socket] = nil
          if state.owners[socket] == id { state.owners[socket] = nil }
          _ = close(copy)
        }
      }
    }

    /// The socket is about to be closed: the server must learn of it.
    func forget(_ socket: curl_socket_t) {
      state.withLock { state in
        guard let id = state.owners.removeValue(forKey: socket),
          let copy = state.entries[id]?.copies.removeValue(forKey: socket)
        else { return }
        _ = close(copy)
      }
    }

    func end(_ id: Order.ID) {
      state.withLock { state in
        guard let entry = state.entries.removeValue(forKey: id) else { return }
        for (socket, copy) in entry.copies {
          if state.owners[socket] == id { state.owners[socket] = nil }
          _ = close(copy)
        }
      }
    }

    /// Why the connections of a transfer were cut. libcurl may take that for the end of the body.
    func reason(of id: Order.ID) -> (any Error)? { state.withLock { $0.entries[id]?.reason } }

    // MARK: For all threads

    func cut(_ id: Order.ID, _ reason: any Error) { state.withLock { Self.cut(&$0, id, reason) } }

    func cutAll(_ reason: any Error) {
      state.withLock { state in
        state.stopReason = state.stopReason ?? reason
        for id in Array(state.entries.keys) { Self.cut(&state, id, reason) }
      }
    }

    private static func cut(_ state: inout State, _ id: Order.ID, _ reason: any Error) {
      guard let entry = state.entries[id], entry.reason == nil else { return }
      // First: what libcurl makes of the shutdown is judged by it.
      state.entries[id]?.reason = reason
      for copy in entry.copies.values { shutdown(copy, Int32(SHUT_RDWR)) }
    }

    /// The port is at the same place for IPv4 and IPv6.
    private static func localPort(_ socket: Int32) -> Int32? {
      var address = sockaddr_storage()
      var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let code = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &size) }
      }
      guard code == 0 else { return nil }
      return withUnsafeBytes(of: &address) {
        Int32(UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
      }
    }
  }
#endif
