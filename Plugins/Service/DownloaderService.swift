public import DownpipeCore
public import ServiceLifecycle

/// Runs a downloader in a `ServiceGroup`. When the group shuts down gracefully, every transfer stops at a checkpoint.
///
/// ```swift
/// let service = DownloaderService(downloader) { downloader in
///   try await downloader.add(DownloadRequest("https://example.org/file", id: "file"))
///   try await downloader.waitUntilIdle()
/// }
/// let group = ServiceGroup(
///   configuration: .init(
///     services: [.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)],
///     gracefulShutdownSignals: [.sigterm], logger: logger))
/// try await group.run()
/// ```
/// A group stops for the signals in `gracefulShutdownSignals` and for no others.
///
/// **Give the service the work that waits for downloads**, as above, and not to a service of its own. A group stops its
/// services in reverse order, and each one only when the one after it has ended. A service after this one that waits in
/// ``/DownpipeCore/Downloader/waitUntilIdle()``, ``/DownpipeCore/Download/value`` or
/// ``/DownpipeCore/Download/events`` does not end, and so the signal never reaches the downloader. A service before
/// this one sees the downloader shut down while it works, and its error makes the group fail.
///
/// Services that only add downloads, such as a server of requests, stand after this one: they stop before the downloader,
/// and must end at a graceful shutdown.
public struct DownloaderService: Service {
  private let downloader: Downloader
  private let work: @Sendable (Downloader) async throws -> Void

  /// Creates the service of a downloader without work of its own: it runs until the group shuts down.
  ///
  /// - Parameter downloader: The downloader. It runs already.
  public init(_ downloader: Downloader) { self.init(downloader) { _ in try await gracefulShutdown() } }

  /// Creates the service of a downloader and of the work that waits for its downloads.
  ///
  /// - Parameters:
  ///   - downloader: The downloader. It runs already.
  ///   - work: Adds downloads and waits for them. It is cancelled at a graceful shutdown, and must end then. When it ends
  ///     by itself, the service ends, and the `successTerminationBehavior` of the service in the group says what that
  ///     means: by default, that the group fails.
  public init(_ downloader: Downloader, work: @escaping @Sendable (Downloader) async throws -> Void) {
    self.downloader = downloader
    self.work = work
  }

  /// Works until the work has ended, or until a graceful shutdown or a cancellation, then shuts the downloader down, and
  /// returns when both have ended.
  ///
  /// - Throws: The error of the work, unless the group shuts down or is cancelled.
  public func run() async throws {
    try await withThrowingTaskGroup(of: Void.self) { [downloader, work] group in
      group.addTask { try await work(downloader) }
      group.addTask { try await gracefulShutdown() }
      let first = await group.nextResult()
      group.cancelAll()
      await downloader.shutdown()
      // What the work throws because it was stopped is no failure.
      while await group.nextResult() != nil {}
      if !Task.isShuttingDownGracefully, !Task.isCancelled { try first?.get() }
    }
  }
}
