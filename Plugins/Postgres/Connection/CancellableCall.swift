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
    private let state = Mutex((socket: CInt?.none, isCancelled: false))

    /// Begins to use a socket, which stays open until ``end()``.
    /// - Throws: `CancellationError` if the task was cancelled before.
    func begin(_ socket: CInt) throws(CancellationError) {
      let isCancelled = state.withLock { state in
        if !state.isCancelled { state.socket = socket }
        return state.isCancelled
      }
      if isCancelled { throw CancellationError() }
    }

    func end() { state.withLock { $0.socket = nil } }

    /// Ends the call. It may be called at any time, on any thread.
    func cancel() {
      state.withLock { state in
        state.isCancelled = true
        if let socket = state.socket { _ = shutdown(socket, CInt(SHUT_RDWR)) }
      }
    }
  }
#endif
