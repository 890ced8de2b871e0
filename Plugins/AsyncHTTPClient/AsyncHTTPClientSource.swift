#if AsyncHTTPClient
  public import DownpipeCore
  public import Foundation

  /// Fetches `http:` and `https:` URLs: HTTP/1.1 and HTTP/2, TLS, redirects, proxies.
  ///
  /// ```swift
  /// AsyncHTTPClientSource()
  /// AsyncHTTPClientSource { $0.proxy = .socks5(host: "localhost", port: 1080) }
  /// ```
  /// Bytes go from the socket's buffer to the sink without a copy, a queue or a task hop, and a slow sink stops the
  /// transfer at the socket. The source follows redirects itself: it counts them, keeps the range, drops credentials
  /// when the origin changes, and does not follow redirects from `https:` to `http:`.
  ///
  /// A downloader keeps connections open and reuses them. Without a downloader each ``open(_:)`` makes a new connection
  /// and closes it when the body has ended or is discarded.
  ///
  /// It uses BSD sockets and BoringSSL on every platform, including Apple's. For transfers that iOS continues in the
  /// background use `DownpipeBackgroundURLSession`.
  ///
  /// The cost of one response is limited: at most 256 header fields of 80 KiB each and 2 MiB in total (SwiftNIO's
  /// limits), ``Configuration/maximumRedirects``, and the time limits.
  public struct AsyncHTTPClientSource: Source, SourceSession {
    /// The settings of the source.
    public let configuration: Configuration

    /// Creates a source with the given settings.
    public init(_ configuration: Configuration = Configuration()) { self.configuration = configuration }

    /// Creates a source whose default settings the closure changes.
    public init(_ configure: (inout Configuration) -> Void) {
      var configuration = Configuration()
      configure(&configuration)
      self.init(configuration)
    }

    /// The settings that differ from the default, for the printed pipeline.
    public var summary: String { configuration.summary }

    /// Returns whether `url` is an `http:` or `https:` URL.
    public func accepts(_ url: URL) -> Bool { HTTPTarget.isHTTP(url) }

    /// Sends the request over a new connection, which closes when the reply is released.
    ///
    /// - Throws: `DownloadError` with a code such as `.network`, `.hostNotFound`, `.tls`, `.timedOut`,
    ///   `.tooManyRedirects` or `.invalidResponse`; `CancellationError`.
    public func open(_ request: SourceRequest) async throws -> SourceReply {
      // The body of the reply holds the session, which closes the connection when it is released.
      try await HTTPSession(
        configuration, context: SourceContext(concurrentDownloads: 1, downloadsPerHost: 1), threads: 1
      )
      .open(request)
    }

    /// Creates the session of a run, with a pool of connections.
    /// - Throws: `DownloadError` with `.tls` when the certificates of the configuration cannot be read.
    public func start(in context: SourceContext) async throws -> any SourceSession {
      try HTTPSession(configuration, context: context)
    }
  }
#endif
