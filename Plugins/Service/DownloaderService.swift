public import DownpipeCore
public import ServiceLifecycle

/// Runs a downloader inside a `ServiceGroup`: it works until the group shuts down gracefully, and then
/// ends every transfer at a checkpoint.
///
/// ```swift
/// let group = ServiceGroup(
///   services: [DownloaderService(downloader)], gracefulShutdownSignals: [.sigterm], logger: logger)
/// try await group.run()
/// ```
public struct DownloaderService: Service {
  private let downloader: Downloader

  /// Wraps a downloader, which has begun to work when it was made.
  public init(_ downloader: Downloader) { self.downloader = downloader }

  /// Returns once the downloader has shut down, after a graceful shutdown or a cancellation.
  public func run() async throws {
    try? await gracefulShutdown()
    await downloader.shutdown()
  }
}
