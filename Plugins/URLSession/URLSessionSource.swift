public import DownpipeCore
public import Foundation

/// Fetches `http` and `https` URLs with Foundation's URLSession.
///
/// The source sends the request, follows redirects (see ``Configuration``) and pushes the body to its sink. It requests
/// no content coding, keeps neither cookies nor a cache, and never writes, retries or resumes.
///
/// ```swift
/// let downloader = try await Downloader {
///   URLSessionSource(.ephemeral)
///   FileStore("~/Downloads")
/// }
/// ```
/// Transfers that continue while an app is suspended need the product `DownpipeBackgroundURLSession` (experimental),
/// which adds a `.background` configuration.
///
/// ## Back-pressure
/// The sink runs on the session's delegate queue, and nothing is read while it runs. On Linux URLSession has no
/// back-pressure: it queues chunks for the delegate without a bound, and suspending a task restarts its request. The
/// delegate queue therefore runs each call immediately, on libcurl's thread, which *all* URLSessions of a process
/// share: a sink that blocks delays every other URLSession transfer, but uses no memory. A reply that is not read is
/// buffered up to 1 MiB, then blocks that thread for at most ``Configuration/unreadTimeLimit``, and then fails with
/// `.network`. On a fast network a transfer that ends early still receives and drops some megabytes.
///
/// Measured on Linux (Swift 6.3.1, libcurl 7.88, release build, two busy cores), 1 GiB over loopback, peak resident
/// memory: into a sink of 60 MB/s 59 MB, with an ordinary queue 945 MB; into a sink that does nothing 41–44 MB and
/// 1.8–2.3 s, with an ordinary queue 63–82 MB and 1.9–3.4 s. On Apple platforms the delegate queue is an ordinary
/// serial queue; whether a blocked delegate stops CFNetwork from reading has not been measured.
///
/// ## Limitations of URLSession
/// - Content codings are decoded even though none was requested. Such a reply has no `SourceReply.length` and no
///   digests, and its `SourceReply.contentCoding` is `decoded-gzip` or similar: its bytes must not be combined with
///   bytes of the file itself.
/// - On Linux **a hostile server can end the process**: URLSession calls `fatalError` for trailers after a chunked
///   body, for a response with several `Transfer-Encoding` fields and for a head that is cut short, and the source
///   cannot prevent that. URLSession also keeps the body of a redirect in memory until its end (limited by
///   ``Configuration/connectTimeLimit``), and rejects responses whose header fields are not UTF-8 or end in a bare line
///   feed. Use `HTTPSource` for untrusted servers.
/// - On Linux a response with a field that is not UTF-8 fails, such as a redirect to a Latin-1 name. Fields of one name
///   are joined, so that a redirect with two `Location` fields leads to a wrong URL.
/// - On Linux the proxy comes from the environment (`http_proxy`, `https_proxy`, `no_proxy`).
/// - The time to connect and the time to the head of the response cannot be limited separately.
public struct URLSessionSource: Source, SourceSession {
  private let configuration: Configuration

  /// Creates a source with the given session configuration.
  public init(_ configuration: Configuration = .default) { self.configuration = configuration }

  /// Creates a source whose default settings the closure changes.
  public init(_ configure: (inout Configuration) -> Void) {
    var configuration = Configuration.default
    configure(&configuration)
    self.init(configuration)
  }

  /// The settings that differ from the default, for the printed pipeline.
  public var summary: String { configuration.summary }

  /// Returns whether `url` is an `http` or `https` URL with a host.
  public func accepts(_ url: URL) -> Bool { RequestURL.isSupported(url) }

  /// Creates the session that all transfers of a run share.
  ///
  /// - Throws: What the configuration's session throws when it starts; the default and the ephemeral session never do.
  public func start(in context: SourceContext) async throws -> any SourceSession {
    if case .provided(let provider) = configuration.base {
      return try await provider.start(configuration, connectionsPerHost: context.concurrentDownloads)
    }
    return TransferSession(configuration, connectionsPerHost: context.concurrentDownloads)
  }

  /// Opens the URL in a new session, which ends with the reply. A downloader shares one session instead: see
  /// ``start(in:)``.
  ///
  /// - Throws: `DownloadError` with `.network`, `.hostNotFound`, `.tls`, `.timedOut`, `.tooManyRedirects`,
  ///   `.invalidResponse`, `.unsupportedURL` or `.invalidRequest`; `.invalidPipeline` for a background session, which
  ///   must be started first; `CancellationError`.
  public func open(_ request: SourceRequest) async throws -> SourceReply {
    if case .provided(let provider) = configuration.base {
      throw DownloadError(
        .invalidPipeline, "a session must be started (\(provider.summary)): open URLs through a downloader")
    }
    let session = TransferSession(configuration, connectionsPerHost: 1)
    do {
      return try await Opening(session: session, ownsSession: true).open(request)
    } catch {
      session.finish()
      throw error
    }
  }
}
