#if LIBCURL || AsyncHTTPClient
  import DownpipeCore

  #if LIBCURL
    import DownpipeHTTP
  #endif
  #if AsyncHTTPClient
    import DownpipeAsyncHTTPClient
  #endif

  /// The sources that the tests of this folder run with. The raw value is the name of the source.
  enum TestedSource: String, CaseIterable, Sendable {
    #if LIBCURL
      case curl = "HTTPSource"
    #endif
    #if AsyncHTTPClient
      case asyncHTTPClient = "AsyncHTTPClientSource"
    #endif

    /// The default settings of the source.
    private var configuration: any TestedConfiguration {
      switch self {
      #if LIBCURL
        case .curl: HTTPSource.Configuration()
      #endif
      #if AsyncHTTPClient
        case .asyncHTTPClient: AsyncHTTPClientSource.Configuration()
      #endif
      }
    }

    /// Creates a source with the default settings.
    func source() -> any Source & SourceSession { configuration.source }

    /// Creates a source whose default settings the closure changes.
    func source(
      _ configure: (inout any TestedConfiguration) throws -> Void
    ) rethrows -> any Source & SourceSession {
      var configuration = configuration
      try configure(&configuration)
      return configuration.source
    }

    /// A source that trusts the certificate of the tests only.
    var trustingSource: any Source & SourceSession { source { $0.trust(TestCertificate.certificate) } }

    /// The schemes of the proxies that the source can use.
    var proxySchemes: [String] {
      switch self {
      #if LIBCURL
        case .curl: HTTPSource.Proxy.Kind.allCases.map(\.rawValue)
      #endif
      #if AsyncHTTPClient
        case .asyncHTTPClient: ["http", "socks5"]
      #endif
      }
    }

    /// The description of the proxy that the source reads from a URL.
    func proxy(_ url: String) throws -> String {
      switch self {
      #if LIBCURL
        case .curl: try HTTPSource.Proxy(url).description
      #endif
      #if AsyncHTTPClient
        case .asyncHTTPClient: try AsyncHTTPClientSource.Proxy(url: url).description
      #endif
      }
    }
  }
#endif
