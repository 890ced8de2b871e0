#if LIBCURL
  import CCurl
  package import DownpipeCore

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// The libcurl of this process.
  package enum CurlLibrary {
    /// The version, such as 0x075801 for 7.88.1.
    package static let version: UInt32 = {
      curl_global_init(Int(CURL_GLOBAL_DEFAULT))
      return downpipe_version_info()?.pointee.version_num ?? 0
    }()

    /// Whether a transfer can end while its name is looked up, and need not wait for the look-up (7.87 and later).
    static let leavesLookups: Bool = {
      guard version >= 0x07_57_00, let easy = EasyHandle() else { return false }
      defer { easy.destroy() }
      return downpipe_set_quick_exit(easy.pointer) == CURLE_OK
    }()

    /// The URL schemes that it was built for, in lower case.
    package static let schemes: Set<String> = {
      guard version > 0, var next = downpipe_version_info()?.pointee.protocols else { return [] }
      var schemes: Set<String> = []
      while let name = next.pointee {
        schemes.insert(String(cString: name))
        next += 1
      }
      return schemes
    }()

    /// Whether libcurl knows which domains belong to no single site (CURL_VERSION_PSL).
    static let hasPublicSuffixes = version > 0 && (downpipe_version_info()?.pointee.features ?? 0) & (1 << 20) != 0

    /// Whether a handle can be used for another transfer.
    ///
    /// 7.83 to 8.0 keep a pointer to the last field of the response before, which is released (curl issue 11101): a
    /// response whose first field begins with a blank would write to that memory.
    static let reusesHandles = !(0x07_53_00..<0x08_01_00).contains(version)

    /// The certificate authorities that libcurl was built to trust.
    static let authorities: (file: String?, folder: String?) = {
      guard version > 0, let info = downpipe_version_info()?.pointee else { return (nil, nil) }
      return (info.cainfo.map { String(cString: $0) }, info.capath.map { String(cString: $0) })
    }()

    package static let outOfMemory = DownloadError(.network, "there is not enough memory for another transfer")

    static func failure(_ code: CURLMcode) -> DownloadError {
      DownloadError(.network, "libcurl cannot take the transfer: \(String(cString: curl_multi_strerror(code)))")
    }

    /// Without this a connection that the server has closed could end the process: TLS libraries write to sockets without
    /// a flag against the signal.
    static func blockBrokenPipeSignal() {
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, SIGPIPE)
      pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
  }
#endif
