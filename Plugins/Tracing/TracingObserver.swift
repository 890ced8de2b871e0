public import DownpipeCore
public import Tracing

/// Records a span for each download, with child spans for its waits, attempts and steps.
///
/// The tracer is the one that the process sets with `InstrumentationSystem.bootstrap(_:)` of swift-distributed-tracing.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("~/Downloads")
///   TracingObserver()
/// }
/// ```
/// | span | from | until | attributes |
/// |---|---|---|---|
/// | `download` | it waits or runs | it ends, is paused or removed, or the downloader shuts down | `downpipe.id`, `server.address`, `url.full`, `downpipe.tags`, `downpipe.ending`, `downpipe.bytes` |
/// | `download.wait` | it waits | another wait, or the start | `downpipe.reason`, as the wait began |
/// | `download.attempt` | bytes are requested | the bytes are complete, or the attempt ends otherwise | `downpipe.attempt`, `downpipe.resumed_from`, `downpipe.bytes` |
/// | `download.step` | a step starts | it ends | `downpipe.step` |
///
/// A span ends in every case, at the latest when the downloader shuts down. Errors are recorded in the span that they
/// end, with the attributes `error.type` and `http.response.status_code`; redirects, refreshed links, refused replies,
/// restarts and failed mirrors are events of the attempt. Secrets in URLs are hidden.
///
/// A download that is resumed gets a new span. Of the downloads that wait, up to 10,000 have spans at a time; others
/// get theirs when they start.
public struct TracingObserver: Observer {
  private let tracer: (any Tracer)?

  /// Creates an observer.
  /// - Parameter tracer: The tracer; the process's tracer if `nil`.
  public init(tracer: (any Tracer)? = nil) { self.tracer = tracer }

  /// Records spans until the sequence ends, and ends all of them.
  public func observe(_ events: AsyncStream<DownloadEvent>) async {
    var spans = DownloadSpans(tracer ?? InstrumentationSystem.tracer)
    for await event in events { spans.receive(event) }
    spans.end()
  }
}
