public import DownpipeCore
public import Foundation

/// Fetches `http:` and `https:` URLs: HTTP/1.1 and HTTP/2, TLS, redirects, proxies.
///
/// ```swift
/// HTTPSource()
/// HTTPSource { $0.proxy = .socks5(host: "localhost", port: 1080) }
/// ```
/// Bytes go from the socket's buffer to the sink without a copy, a queue or a task hop; what the sink does
/// not take stays in the network. Redirects are followed by this source and by no library: they are counted,
/// keep the range, drop credentials when the origin changes, and never go from `https:` to `http:`.
///
/// While a downloader runs, its connections are kept and used again. Used without a downloader, it is a session by
/// itself, and each ``open(_:)`` makes a connection of its own and closes it when the body has ended or is discarded.
///
/// It uses BSD sockets and BoringSSL on every platform, also on Apple's: for transfers that iOS is to carry on in
/// the background there is `DownpipeURLSession`.
///
/// What one answer may cost is bounded: 256 header fields of at most 80 KiB each and 2 MiB together (SwiftNIO's
/// limits), ``Configuration/maximumRedirects``, and the time limits.
public struct HTTPSource: Source, SourceSession {
  /// What can be set.
  public let configuration: Configuration

  /// Makes a source.
  public init(_ configuration: Configuration = Configuration()) { self.configuration = configuration }

  /// Makes a source, changing what the closure changes.
  public init(_ configure: (inout Configuration) -> Void) {
    var configuration = Configuration()
    configure(&configuration)
    self.init(configuration)
  }

  /// What is set otherwise than by default.
  public var summary: String { configuration.summary }

  /// Whether it is an `http:` or `https:` URL.
  public func accepts(_ url: URL) -> Bool { HTTPTarget.isHTTP(url) }

  /// Asks for the bytes over a connection of its own.
  public func open(_ request: SourceRequest) async throws -> SourceReply {
    // The reply's body keeps the session, whose end closes the connection.
    try await HTTPSession(
      configuration, context: SourceContext(concurrentDownloads: 1, downloadsPerHost: 1), threads: 1
    )
    .open(request)
  }

  /// A session with a pool of connections.
  /// - Throws: ``DownloadError`` with `.tls` when the certificates of the configuration cannot be read.
  public func start(in context: SourceContext) async throws -> any SourceSession {
    try HTTPSession(configuration, context: context)
  }
}
