#if LIBCURL
  /// The size of libcurl's buffer for a transfer, which it keeps until the transfer ends.
  ///
  /// One fast transfer gains from large reads. Many share the network, so that less arrives for each; and the pages that
  /// have once been read into stay in memory.
  enum ReceiveBuffer {
    /// - Parameter count: The number of transfers of the thread.
    static func bytes(ofTransfers count: Int) -> Int {
      switch count {
      case ...32: 256 * 1024
      case ...256: 32 * 1024
      case ...512: 8 * 1024
      case ...2048: 4 * 1024
      default: 2 * 1024
      }
    }
  }
#endif
