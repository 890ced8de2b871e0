public import DownpipeCore
public import ServiceLifecycle

/// Runs a downloader in a `ServiceGroup`. When the group shuts down gracefully, every transfer stops at a checkpoint.
///
/// ```swift
/// let group = ServiceGroup(
///   services: [DownloaderService(downloader)], gracefulShutdownSignals: [.sigterm], logger: logger)
/// try await group.run()
/// ```
public struct DownloaderService: Service {
  private let downloader: Downloader

  /// Creates the service of a downloader. The downloader runs already.
  public init(_ downloader: Downloader) { self.downloader = downloader }

  /// Waits for a graceful shutdown or a cancellation, shuts the downloader down, and returns.
  public func run() async throws {
    try? await gracefulShutdown()
    await downloader.shutdown()
  }
}
