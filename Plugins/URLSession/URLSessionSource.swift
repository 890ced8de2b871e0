public import DownpipeCore
public import Foundation

/// Fetches `http` and `https` URLs with Foundation's URLSession.
///
/// It decides how bytes are asked for and how they are handed on; it never writes, retries or resumes. It
/// asks for no coding, follows redirects itself (see ``Configuration``) and keeps neither cookies nor a cache.
///
/// ```swift
/// Downloader {
///   URLSessionSource(.ephemeral)
///   FileStore("~/Downloads")
/// }
/// ```
///
/// ## Back-pressure
/// The sink runs on the session's delegate queue, and nothing is read while it runs. On Linux URLSession has no
/// back-pressure of its own: it queues chunks for the delegate without bound, and suspending a task starts its
/// request anew. The delegate queue is therefore one that runs every call at once, on the thread of
/// libcurl, which is shared by *all* URLSessions of a process: a sink that blocks holds up every other transfer of
/// URLSession, never memory. A reply that is not read is buffered up to 1 MiB, then holds the thread up for at most
/// ``Configuration/unreadTimeLimit``, and is ended with `.network`. On a fast network a transfer that is ended early
/// still receives, and drops, some megabytes.
///
/// Measured on Linux (Swift 6.3.1, libcurl 7.88, release build, two busy cores), 1 GiB over loopback, most memory
/// resident: into a sink of 60 MB/s 59 MB, where an ordinary queue takes 945 MB; into a sink that does nothing
/// 41–44 MB and 1.8–2.3 s, where an ordinary queue takes 63–82 MB and 1.9–3.4 s. On Apple platforms the delegate queue
/// is an ordinary serial one; that it holds CFNetwork up has not been measured.
///
/// ## What URLSession cannot do
/// - Content codings are undone even though none was asked for. Such a reply has no ``SourceReply/length`` and no
///   digests, and its ``SourceReply/contentCoding`` is `decoded-gzip` or the like: bytes that must not be
///   mixed with those of the file itself.
/// - On Linux **a hostile server can end the process**: URLSession calls `fatalError` on trailers after a
///   chunked body, and nothing outside it can prevent that. It also keeps the body of a redirect in memory until
///   its end (``Configuration/connectTimeLimit`` is the bound), and refuses answers whose header fields are not UTF-8
///   or end in a bare line feed. Use `HTTPSource` for servers that you do not trust.
/// - On Linux a proxy is taken from the environment (`http_proxy`, `https_proxy`, `no_proxy`).
/// - Connecting and waiting for the head of the answer cannot be told apart.
public struct URLSessionSource: Source {
  private let configuration: Configuration

  /// Makes a source.
  public init(_ configuration: Configuration = .default) { self.configuration = configuration }

  /// What differs from the default, for the printed pipeline.
  public var summary: String { configuration.summary }

  /// Whether it is an `http` or `https` URL with a host.
  public func accepts(_ url: URL) -> Bool { RequestURL.isSupported(url) }

  /// Makes the one session that serves the run.
  public func start(in context: SourceContext) async throws -> any Source {
    RunningURLSessionSource(
      session: TransferSession(configuration, connectionsPerHost: context.concurrentDownloads),
      configuration: configuration)
  }

  /// Opens the URL with a session of its own, which ends with the reply. A run shares one session: see ``start(in:)``.
  ///
  /// - Throws: ``DownloadError`` with `.network`, `.hostNotFound`, `.tls`, `.timedOut`, `.tooManyRedirects`,
  ///   `.invalidResponse`, `.unsupportedURL` or `.invalidRequest`; `CancellationError`.
  public func open(_ request: SourceRequest) async throws -> SourceReply {
    let session = TransferSession(configuration, connectionsPerHost: 1)
    do {
      return try await Opening(session: session, configuration: configuration, ownsSession: true).open(request)
    } catch {
      session.finish()
      throw error
    }
  }
}

/// The source during a run.
struct RunningURLSessionSource: Source {
  let session: TransferSession
  let configuration: URLSessionSource.Configuration

  var name: String { "URLSessionSource" }
  var summary: String { configuration.summary }
  func accepts(_ url: URL) -> Bool { RequestURL.isSupported(url) }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    try await Opening(session: session, configuration: configuration, ownsSession: false).open(request)
  }

  func stop() async { await session.stop() }
}
