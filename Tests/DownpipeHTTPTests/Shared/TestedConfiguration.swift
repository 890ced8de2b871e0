#if LIBCURL || AsyncHTTPClient
  import DownpipeCore

  #if LIBCURL
    import DownpipeHTTP
  #endif
  #if AsyncHTTPClient
    import DownpipeAsyncHTTPClient
  #endif

  /// The settings that both sources have. Where their values differ, a method sets them.
  protocol TestedConfiguration {
    associatedtype TLS: TestedTLS

    var connectTimeLimit: Duration { get set }
    var idleTimeLimit: Duration? { get set }
    var totalTimeLimit: Duration? { get set }
    var maximumRedirects: Int { get set }
    var userAgent: String? { get set }
    var tls: TLS { get set }

    /// A source with these settings.
    var source: any Source & SourceSession { get }

    mutating func useHTTP1Only()
    mutating func useHTTPProxy(_ host: String, _ port: Int, _ login: (user: String, password: String)?)
    /// Uses a SOCKS 5 proxy of this machine that looks names up.
    mutating func useSOCKSProxy(_ port: Int)
    mutating func useProxy(_ url: String) throws
  }

  // The types of both sources have the same cases.

  protocol TestedTLS {
    associatedtype TrustRoots: TestedTrustRoots
    associatedtype ClientCertificate: TestedCertificate
    var trustRoots: TrustRoots { get set }
    var clientCertificate: ClientCertificate? { get set }
  }

  protocol TestedTrustRoots {
    associatedtype PEM: TestedPEM
    static func systemAnd(_ pem: PEM) -> Self
    static func only(_ pem: PEM) -> Self
  }

  protocol TestedCertificate {
    associatedtype PEM: TestedPEM
    init(chain: PEM, privateKey: PEM)
  }

  protocol TestedPEM {
    static func text(_ text: String) -> Self
    static func file(_ path: String) -> Self
  }

  extension TestedConfiguration {
    /// Trusts only the certificates in a text.
    mutating func trust(_ text: String) { tls.trustRoots = .only(.text(text)) }
    /// Trusts only the certificates in a file.
    mutating func trust(file: String) { tls.trustRoots = .only(.file(file)) }
    /// Trusts the certificates in a text and the authorities of the system.
    mutating func trustSystem(and text: String) { tls.trustRoots = .systemAnd(.text(text)) }
    mutating func show(_ certificate: String, _ key: String) {
      tls.clientCertificate = .init(chain: .text(certificate), privateKey: .text(key))
    }
  }

  #if LIBCURL
    extension HTTPSource.TLS: TestedTLS {}
    extension HTTPSource.TLS.TrustRoots: TestedTrustRoots {}
    extension HTTPSource.TLS.ClientCertificate: TestedCertificate {}
    extension HTTPSource.TLS.PEM: TestedPEM {}

    extension HTTPSource.Configuration: TestedConfiguration {
      var source: any Source & SourceSession { HTTPSource(self) }
      mutating func useHTTP1Only() { httpVersion = .http1Only }
      mutating func useHTTPProxy(_ host: String, _ port: Int, _ login: (user: String, password: String)?) {
        proxy = .proxy(
          .init(.http, host: host, port: port, credentials: login.map { .init(user: $0.user, password: $0.password) }))
      }
      mutating func useSOCKSProxy(_ port: Int) { proxy = .proxy(.init(.socks5h, host: "127.0.0.1", port: port)) }
      mutating func useProxy(_ url: String) throws { proxy = .proxy(try .init(url)) }
    }
  #endif

  #if AsyncHTTPClient
    extension AsyncHTTPClientSource.TLS: TestedTLS {}
    extension AsyncHTTPClientSource.TLS.TrustRoots: TestedTrustRoots {}
    extension AsyncHTTPClientSource.TLS.ClientCertificate: TestedCertificate {}
    extension AsyncHTTPClientSource.TLS.PEM: TestedPEM {}

    extension AsyncHTTPClientSource.Configuration: TestedConfiguration {
      var source: any Source & SourceSession { AsyncHTTPClientSource(self) }
      mutating func useHTTP1Only() { httpVersion = .http1Only }
      mutating func useHTTPProxy(_ host: String, _ port: Int, _ login: (user: String, password: String)?) {
        proxy = .http(
          host: host, port: port, credentials: login.map { .init(user: $0.user, password: $0.password) })
      }
      mutating func useSOCKSProxy(_ port: Int) { proxy = .socks5(host: "127.0.0.1", port: port) }
      mutating func useProxy(_ url: String) throws { proxy = try .init(url: url) }
    }
  #endif
#endif
