import Downpipe
import DownpipeURLSession
import Foundation

#if AsyncHTTPClient
  import DownpipeAsyncHTTPClient
#endif

extension PipelineSettings {
  /// The source of the pipeline.
  ///
  /// - Throws: ``UsageError`` for a proxy or a certificate that cannot be used.
  func source() throws(UsageError) -> any Source {
    guard hasSource else { return NoSource() }
    switch transport {
    #if LIBCURL
      case .curl:
        let usual = HTTPSource(try HTTPSource.Configuration(self))
        if network.isUntrusted { return usual }
        return TrustSource(usual: usual, strict: HTTPSource(try HTTPSource.Configuration(forStrangers)))
    #endif
    #if AsyncHTTPClient
      case .asyncHTTPClient:
        return TrustSource(usual: AsyncHTTPClientSource(try AsyncHTTPClientSource.Configuration(self)))
    #endif
    case .urlSession: return TrustSource(usual: URLSessionSource(URLSessionSource.Configuration(self)))
    }
  }
}

#if LIBCURL
  extension PipelineSettings {
    /// The schemes of the URLs that the command fetches.
    static let schemes = ["https", "http", "ftp", "ftps", "sftp"]

    /// The source for FTP and SFTP, beside each source for HTTP.
    ///
    /// - Throws: ``UsageError`` for a proxy or a certificate that cannot be used.
    func furtherSources() throws(UsageError) -> [any Source] {
      guard hasSource else { return [] }
      return [
        TrustSource(
          usual: FileTransferSource(try FileTransferSource.Configuration(self)),
          strict: FileTransferSource(try FileTransferSource.Configuration(forStrangers)), isRare: true)
      ]
    }

    /// The settings for URLs that strangers have named.
    private var forStrangers: PipelineSettings {
      var settings = self
      settings.network = network.forStrangers
      return settings
    }
  }

  extension FileTransferSource.Configuration {
    fileprivate init(_ settings: PipelineSettings) throws(UsageError) {
      let network = settings.network
      self = network.isUntrusted ? .untrusted : FileTransferSource.Configuration()
      if let limit = settings.connectTimeLimit { connectTimeLimit = limit }
      totalTimeLimit = settings.timeLimit
      if let speed = network.minimumSpeed {
        minimumSpeed = .init(bytesPerSecond: Int(speed), over: ConnectionOptions.slowTime)
      }
      if let limit = network.maximumSize { maximumSize = limit }
      proxy = try HTTPSource.Configuration.proxy(network)
      resolve = network.addresses.map { .init(host: $0.host, port: $0.port, addresses: $0.addresses) }
      tls = HTTPSource.TLS(network.tls)
      netrc = network.logIn.netrc.map { .file($0) }
      // Basic is up to ``LogInInterceptor``. These protocols have no Digest: only “any” allows the password itself.
      if let user = network.logIn.logIn, network.logIn.method == .any {
        credentials = (network.logIn.origins ?? []).map { .init(user: user.user, password: user.password, for: $0) }
      }
    }
  }
#else
  extension PipelineSettings {
    static let schemes = ["https", "http"]

    /// None: those for other schemes need libcurl.
    func furtherSources() -> [any Source] { [] }
  }
#endif

/// Takes the place of a source where nothing is fetched.
private struct NoSource: Source, SourceSession {
  func accepts(_ url: URL) -> Bool { true }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    throw DownloadError(.unsupportedURL, "this command fetches nothing")
  }
}

#if LIBCURL
  extension HTTPSource.Configuration {
    init(_ settings: PipelineSettings) throws(UsageError) {
      let network = settings.network
      self = network.isUntrusted ? .untrusted : HTTPSource.Configuration()
      if let limit = settings.connectTimeLimit { connectTimeLimit = limit }
      totalTimeLimit = settings.timeLimit
      if let speed = network.minimumSpeed {
        minimumSpeed = .init(bytesPerSecond: Int(speed), over: ConnectionOptions.slowTime)
      }
      if let limit = network.maximumRedirects { maximumRedirects = limit }
      if let limit = network.maximumSize { maximumSize = limit }
      allowsInsecureRedirects = network.allowsInsecureRedirects
      if network.usesHTTP1Only { httpVersion = .http1Only }
      keepsContentCoding = network.keepsContentCoding
      idleConnections = DescriptorLimit.idleConnections
      proxy = try Self.proxy(network)
      resolve = network.addresses.map { .init(host: $0.host, port: $0.port, addresses: $0.addresses) }
      tls = HTTPSource.TLS(network.tls)
      apply(network.logIn)
    }

    fileprivate static func proxy(_ network: NetworkSettings) throws(UsageError) -> HTTPSource.ProxySetting {
      let text: String
      switch network.proxy {
      case .none: return .none
      case .environment:
        if network.proxyLogIn == nil { return .environment(passwordSchemes: .init(network.proxyMethod)) }
        throw UsageError("--proxy-user needs --proxy: the proxy to log in to")
      case .url(let url): text = url.text
      }
      var proxy: HTTPSource.Proxy
      do {
        proxy = try HTTPSource.Proxy(text)
      } catch {
        throw UsageError("--proxy: \(error.message)")
      }
      let schemes = HTTPSource.PasswordSchemes(network.proxyMethod)
      if let logIn = network.proxyLogIn {
        proxy.credentials = .init(user: logIn.user, password: logIn.password, schemes: schemes)
      } else if schemes != .basic {
        guard proxy.credentials != nil else {
          throw UsageError("--proxy-auth needs --proxy-user, or a name and a password in the URL of --proxy")
        }
        proxy.credentials?.schemes = schemes
      }
      return .proxy(proxy)
    }

    /// Basic and tokens are up to ``LogInInterceptor``, as for every source.
    private mutating func apply(_ logIn: LogInSettings) {
      if let user = logIn.logIn, logIn.method != .basic {
        credentials = (logIn.origins ?? []).map {
          .password(user: user.user, password: user.password, schemes: .init(logIn.method), for: $0)
        }
      }
      netrc = logIn.netrc.map { .file($0) }
      passwordSchemes = .init(logIn.method)
      cookies = logIn.cookieJar.map { .file($0) }
    }
  }

  extension HTTPSource.PasswordSchemes {
    fileprivate init(_ method: LogInSettings.Method) {
      switch method {
      case .basic: self = .basic
      case .digest: self = .digest
      case .any: self = .any
      }
    }
  }

  extension HTTPSource.TLS {
    fileprivate init(_ settings: TLSSettings) {
      self.init()
      if let path = settings.trustRoots { trustRoots = .only(.file(path)) }
      if let path = settings.certificate {
        clientCertificate = .init(chain: .file(path), privateKey: .file(settings.privateKey ?? path))
      }
      pinnedPublicKeys = settings.pinnedPublicKeys
      switch settings.minimumVersion {
      case .tls12: minimumVersion = .tls12
      case .tls13: minimumVersion = .tls13
      case nil: break
      }
      verifiesServer = !settings.isInsecure
    }
  }
#endif

#if AsyncHTTPClient
  extension AsyncHTTPClientSource.Configuration {
    fileprivate init(_ settings: PipelineSettings) throws(UsageError) {
      let network = settings.network
      self.init()
      if let limit = settings.connectTimeLimit { connectTimeLimit = limit }
      totalTimeLimit = settings.timeLimit
      if let limit = network.maximumRedirects { maximumRedirects = limit }
      if network.usesHTTP1Only { httpVersion = .http1Only }
      if case .url(let url) = network.proxy {
        do { proxy = try AsyncHTTPClientSource.Proxy(url: url.text) } catch {
          throw UsageError("--proxy: \(error.message)")
        }
      }
      if let path = network.tls.trustRoots { tls.trustRoots = .only(.file(path)) }
      if let path = network.tls.certificate {
        tls.clientCertificate = .init(chain: .file(path), privateKey: .file(network.tls.privateKey ?? path))
      }
    }
  }
#endif

extension URLSessionSource.Configuration {
  fileprivate init(_ settings: PipelineSettings) {
    self = .default
    if let limit = settings.connectTimeLimit { connectTimeLimit = limit }
    totalTimeLimit = settings.timeLimit
    if let limit = settings.network.maximumRedirects { maximumRedirects = limit }
  }
}
