public import DownpipeCore
public import Foundation

/// Fetches `http` and `https` URLs with Foundation's URLSession.
///
/// It decides how bytes are asked for and how they are handed on; it never writes, retries or resumes. It
/// asks for no coding, follows redirects itself (see ``Configuration``) and keeps neither cookies nor a cache.
///
/// ```swift
/// let downloader = try await Downloader {
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
///   chunked body and on an answer with several `Transfer-Encoding` fields, and nothing outside it can prevent that. It also keeps the body of a redirect in memory until
///   its end (``Configuration/connectTimeLimit`` is the bound), and refuses answers whose header fields are not UTF-8
///   or end in a bare line feed. Use `HTTPSource` for servers that you do not trust.
/// - On Linux a proxy is taken from the environment (`http_proxy`, `https_proxy`, `no_proxy`).
/// - Connecting and waiting for the head of the answer cannot be told apart.
///
/// ## In the background
/// With ``Configuration/background(_:inbox:)`` the system transfers while the app is suspended or was ended by the
/// system. It tells of a transfer only when the whole file is there, so a URL is *opened* when its last byte has come:
/// until then there is no progress, and nothing of it is in the storage.
///
/// - **Relaunch.** A task says in its `taskDescription` which download, URL, range and validator it is for. At the
///   next start the opening with exactly the same gets the task that still runs, or the file that it has left; no second
///   transfer is begun. Tasks and files of the same download that are for anything else are cancelled and deleted.
/// - **Files.** The system deletes its file at once, so it is moved into the inbox, together with the head of its
///   answer, before anything else happens. From there the storage takes it (moved when it is the whole file, or
///   else copied). A file that nobody takes stays over restarts, for seven days; at each start, rests
///   that cannot be used are deleted.
/// - **Pausing** cancels the transfer, and so do a gate that closes and `shutdown()` of the downloader, since the
///   source cannot tell them apart. What the system had of the file is lost: its resume data is *not* kept. It would be
///   a second truth beside the partial, merged by the system where the engine cannot compare validators. (When a
///   connection breaks the system resumes within the task, by itself. Such a file is taken only when answer,
///   size and validator agree.) To leave transfers to the system, let it suspend or end the app.
/// - **A download that is removed** while its task runs and before anything has opened it: the task runs to its end, and
///   its file is deleted after seven days. A download with the same id, URL and range gets it.
/// - **Redirects** are followed by the system, which does not ask; a transfer that ends at http after https is
///   refused. Fields such as `Authorization` go where the system lets them go.
/// - **Time.** ``Configuration/idleTimeLimit`` and ``Configuration/totalTimeLimit`` are kept by the system, which tries
///   again by itself.
/// - The session is made at the first start in a process, with the settings of that time, and stays.
/// - **Not run yet on Apple platforms.** All of it but making the session's configuration and
///   ``handleBackgroundEvents(identifier:completion:)`` is compiled and tested on Linux, with Foundation's download
///   tasks in an ephemeral session. What the system itself does after a relaunch has not been seen.
public struct URLSessionSource: Source, SourceSession {
  private let configuration: Configuration

  /// Makes a source.
  public init(_ configuration: Configuration = .default) { self.configuration = configuration }

  /// What differs from the default, for the printed pipeline.
  public var summary: String { configuration.summary }

  /// Whether it is an `http` or `https` URL with a host.
  public func accepts(_ url: URL) -> Bool { RequestURL.isSupported(url) }

  /// Makes the one session that serves the run; in the background, takes up the one that the system has kept.
  ///
  /// - Throws: ``DownloadError``, in the background only: `.invalidPipeline` where there are no such sessions and for
  ///   an identifier that is empty or too long, `.inUse` while another downloader has the session, `.permission`,
  ///   `.noSpace` or `.storage` for the inbox.
  public func start(in context: SourceContext) async throws -> any SourceSession {
    if case .background(let identifier, let inbox) = configuration.base {
      let foundation = try configuration.backgroundConfiguration(
        identifier, connectionsPerHost: context.concurrentDownloads)
      return try await BackgroundSession.start(identifier, inbox: inbox, configuration, foundation: foundation)
    }
    return TransferSession(configuration, connectionsPerHost: context.concurrentDownloads)
  }

  /// Opens the URL with a session of its own, which ends with the reply. A run shares one session: see ``start(in:)``.
  ///
  /// - Throws: ``DownloadError`` with `.network`, `.hostNotFound`, `.tls`, `.timedOut`, `.tooManyRedirects`,
  ///   `.invalidResponse`, `.unsupportedURL` or `.invalidRequest`; `.invalidPipeline` in the background, where only
  ///   a started source opens anything; `CancellationError`.
  public func open(_ request: SourceRequest) async throws -> SourceReply {
    if case .background = configuration.base {
      throw DownloadError(.invalidPipeline, "a background session has to be started: open URLs through a downloader")
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
