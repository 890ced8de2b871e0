#if Postgres
  import Synchronization

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// A call whose wait for the server ends with its task: the socket is shut down, and the server ends the statement when it
  /// notices.
  final class CancellableCall: Sendable {
    /// A descriptor of its own for the socket: libpq closes its one when it loses the connection, and the number may then be
    /// that of another file.
    private let state = Mutex((socket: CInt?.none, isCancelled: false))

    /// Begins to use a socket, until ``end()``. Without a free descriptor the call does not end with its task.
    /// - Throws: `CancellationError` if the task was cancelled before.
    func begin(_ socket: CInt) throws(CancellationError) {
      let isCancelled = state.withLock { state in
        if !state.isCancelled {
          let copy = fcntl(socket, F_DUPFD_CLOEXEC, 0)
          state.socket = copy < 0 ? nil : copy
        }
        return state.isCancelled
      }
      if isCancelled { throw CancellationError() }
    }

    func end() {
      state.withLock { state in
        if let socket = state.socket.take() { close(socket) }
      }
    }

    /// Ends the call. It may be called at any time, on any thread.
    func cancel() {
      state.withLock { state in
        state.isCancelled = true
        if let socket = state.socket { _ = shutdown(socket, CInt(SHUT_RDWR)) }
      }
    }
  }
#endif
