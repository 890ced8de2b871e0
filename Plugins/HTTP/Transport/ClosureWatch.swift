#if LIBCURL
  import CCurl

  /// Notices the closure alerts of TLS on the connections of one thread.
  ///
  /// A body without a length ends with its connection. Over TLS an attacker on the way can end the connection, too, but cannot
  /// send the alert `close_notify` before (RFC 8446 §6.1, RFC 9112 §9.8). libcurl takes both for the end; the alert itself is
  /// reported by OpenSSL alone.
  final class ClosureWatch {
    /// Whether alerts are noticed: libcurl uses OpenSSL, and was not linked in a way that hides its functions.
    static let isPossible = CurlLibrary.version > 0 && downpipe_has_closure_alerts() != 0

    private let watch = UnsafeMutablePointer<downpipe_closure_watch>.allocate(capacity: 1)

    /// - Parameter loop: The loop whose connections are watched. It outlives them.
    init(_ loop: CurlLoop) {
      watch.initialize(
        to: downpipe_closure_watch(
          callback: { context, connection in
            guard let context, let connection else { return }
            Unmanaged<CurlLoop>.fromOpaque(context).takeUnretainedValue().closureAlert(on: connection)
          }, context: Unmanaged.passUnretained(loop).toOpaque()))
    }

    deinit { watch.deallocate() }

    /// Watches the connections that the transfer of a handle opens.
    func add(to handle: EasyHandle) {
      if Self.isPossible { downpipe_set_closure_watch(handle.pointer, watch) }
    }
  }
#endif
