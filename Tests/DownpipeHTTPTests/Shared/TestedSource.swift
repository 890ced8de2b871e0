#if LIBCURL || AsyncHTTPClient
  import DownpipeCore

  #if LIBCURL
    import DownpipeHTTP
  #endif
  #if AsyncHTTPClient
    import DownpipeAsyncHTTPClient
  #endif

  /// The sources that the tests of this folder run with.
  enum TestedSource: String, CaseIterable, Sendable {
    #if LIBCURL
      case curl
    #endif
    #if AsyncHTTPClient
      case asyncHTTPClient
    #endif

    /// The settings that both have, with the defaults of both.
    struct Settings {
      var idleTimeLimit: Duration? = .seconds(60)
      var totalTimeLimit: Duration?
      var userAgent: String?
      /// In PEM format; the authorities of the system when `nil`.
      var trustedCertificate: String?
    }

    func source(_ configure: (inout Settings) -> Void = { _ in }) -> any Source & SourceSession {
      var settings = Settings()
      configure(&settings)
      switch self {
      #if LIBCURL
        case .curl:
          return HTTPSource {
            $0.idleTimeLimit = settings.idleTimeLimit
            $0.totalTimeLimit = settings.totalTimeLimit
            $0.userAgent = settings.userAgent
            if let trusted = settings.trustedCertificate { $0.tls.trustRoots = .only(.text(trusted)) }
          }
      #endif
      #if AsyncHTTPClient
        case .asyncHTTPClient:
          return AsyncHTTPClientSource {
            $0.idleTimeLimit = settings.idleTimeLimit
            $0.totalTimeLimit = settings.totalTimeLimit
            $0.userAgent = settings.userAgent
            if let trusted = settings.trustedCertificate { $0.tls.trustRoots = .only(.text(trusted)) }
          }
      #endif
      }
    }
  }
#endif
