#if LIBCURL
  public import DownpipeCore
  public import Foundation

  /// Fetches `http:` and `https:` URLs with libcurl: HTTP/1.1 and HTTP/2, TLS, redirects, proxies, authentication.
  ///
  /// ```swift
  /// HTTPSource()
  /// HTTPSource { $0.proxy = .proxy(.init(.socks5h, host: "localhost", port: 1080)) }
  /// HTTPSource(.untrusted)
  /// ```
  /// libcurl reads what real servers send. What it could decide on its own and the engine must decide is switched off:
  /// redirects, content decoding, repeated attempts. The source follows redirects itself: it counts them, keeps the range,
  /// sends credentials to the origin that they were given for only, and refuses redirects from `https:` to `http:`.
  ///
  /// Bytes go to the sink on one of a few threads, without a queue or a task hop for each chunk, and a slow sink stops the
  /// transfer at the socket. A body of up to 64 KiB that arrives with its head goes to the sink on the thread of its reader.
  /// Cancelling a task ends its transfer at once, also while a server or a name server does not answer.
  ///
  /// A downloader keeps connections open and reuses them; idle ones are bounded in number and closed after a minute. Without
  /// a downloader each ``open(_:)`` makes a new connection and closes it when the body has ended or is discarded.
  ///
  /// It needs libcurl 7.75 or later, on Linux and macOS; before 7.80 a connection serves one request. Elsewhere the product
  /// `Downpipe` brings `URLSessionSource` under this name.
  public struct HTTPSource: Source, SourceSession {
    /// The settings of the source.
    public let configuration: Configuration

    /// Creates a source with the given settings.
    public init(_ configuration: Configuration = Configuration()) { self.configuration = configuration }

    /// Creates a source whose default settings the closure changes.
    public init(_ configure: (inout Configuration) throws -> Void) rethrows {
      var configuration = Configuration()
      try configure(&configuration)
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
      try await HTTPSession(configuration, threads: 1).open(request)
    }

    /// Returns the step that removes a content coding (gzip, deflate; br and zstd on Linux); `nil` with
    /// ``Configuration/keepsContentCoding``.
    public func decoder(for coding: String) -> (any PostProcessor<File, File>)? {
      configuration.keepsContentCoding ? nil : DecodeContent(coding, maximumSize: configuration.maximumSize)
    }

    /// Creates the session of a run, with its threads and connections.
    /// - Throws: `DownloadError` with `.tls` when the certificates of the configuration cannot be read; `.invalidPipeline`
    ///   for settings that contradict each other, and for a file of cookies that is none; `.permission` for one that cannot be
    ///   read.
    public func start(in context: SourceContext) async throws -> any SourceSession {
      try HTTPSession(
        configuration, threads: HTTPSession.usualThreads, keepsHostsOnThreads: HTTPSession.keepsHostsOnThreads(context))
    }
  }
#endif
