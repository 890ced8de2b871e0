#if AsyncHTTPClient
  public import DownpipeCore
  public import Foundation

  /// Fetches `http:` and `https:` URLs with async-http-client: HTTP/1.1 and HTTP/2, TLS, redirects, proxies.
  ///
  /// ```swift
  /// AsyncHTTPClientSource()
  /// AsyncHTTPClientSource { $0.proxy = .socks5(host: "localhost", port: 1080) }
  /// ```
  /// Bytes go from the socket's buffer to the sink without a copy, a queue or a task hop, and a slow sink stops the
  /// transfer at the socket. The URL is sent as it is written. The source follows redirects itself: it counts them, keeps
  /// the range, sends bound fields to their origin only, and does not follow redirects from `https:` to `http:`.
  ///
  /// A downloader keeps connections open and reuses them. Idle ones are closed after 30 seconds, and the oldest ones
  /// when more than 32 connections are open (or more than there are concurrent downloads). Without a downloader each
  /// ``open(_:)`` makes a new connection and closes it when the body has ended or is discarded.
  ///
  /// It uses BSD sockets and BoringSSL on every platform, including Apple's. For transfers that iOS continues in the
  /// background use `DownpipeBackgroundURLSession`.
  ///
  /// ## Limits
  /// `HTTPSource`, which uses libcurl, has none of these.
  /// - SwiftNIO's parser refuses answers that browsers and curl read, with `.invalidResponse`: lines that end with LF
  ///   alone, fields that continue in the next line, control characters, more than 256 fields, `Content-Length` twice or
  ///   beside `Transfer-Encoding`. The head of one response has at most 256 fields of 80 KiB each and 2 MiB in total.
  /// - Octets of a field that are not UTF-8 are replaced. A `Location` with such octets is refused with
  ///   `.invalidResponse`; a file name in Latin-1 has replacement characters.
  /// - A connection attempt cannot be abandoned. A cancelled download ends at once, and so does
  ///   ``/DownpipeCore/Downloader/shutdown(waitingAtMost:)``, but the attempt keeps a thread and a socket until
  ///   ``Configuration/connectTimeLimit``.
  /// - When more connections are open than may be kept, the oldest idle one is closed. A request that is about to use
  ///   it fails with `.network` and is retried as the retry policy says.
  /// - Authentication is Basic only, and SOCKS proxies are SOCKS 5 without a password. Environment variables for
  ///   proxies and certificates are ignored.
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
    public func accepts(_ url: URL) -> Bool { url.isHTTP }

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
