/// A stage that receives the events of every download of a pipeline: for logs, metrics, progress bars.
///
/// An observer runs in its own task, on threads of its own: it may block. It reads from a bounded buffer of 4,096 events.
/// When it falls behind, progress is dropped first; then the oldest events, in whose place comes
/// ``DownloadEvent/Kind/missed(_:)``. An observer never delays a download. One that does not return when the downloader
/// shuts down is left behind; see ``Downloader/shutdown(waitingAtMost:)``.
public protocol Observer: Stage {
  /// Reads events until the sequence ends, which happens when the downloader shuts down.
  func observe(_ events: AsyncStream<DownloadEvent>) async

  /// Reads events like ``observe(_:)``, with a context for observers that need more than events.
  ///
  /// It is called once for each downloader whose pipeline contains the observer. By default it calls ``observe(_:)``.
  /// An observer that wraps another one passes the context on.
  func observe(_ events: AsyncStream<DownloadEvent>, in context: ObserverContext) async
}

extension Observer {
  /// Adds the observer to the pipeline's observers.
  public func contribute(to parts: inout PipelineParts) { parts.observers.append(self) }

  /// The default: reads the events without the context.
  public func observe(_ events: AsyncStream<DownloadEvent>, in context: ObserverContext) async {
    await observe(events)
  }
}

/// What an observer may use besides events.
public struct ObserverContext: Sendable {
  /// The clock of the downloader.
  public let time: any TimeSource
  private let read: @Sendable () async throws -> [DownloadState.Phase: Int]

  /// Creates a context.
  /// - Parameters:
  ///   - time: The clock of the downloader.
  ///   - counts: Returns the number of downloads in each phase.
  public init(
    time: any TimeSource = SystemTime(), counts: @escaping @Sendable () async throws -> [DownloadState.Phase: Int]
  ) {
    self.time = time
    read = counts
  }

  /// Returns the number of downloads in each phase, as the ledger has it: including downloads of earlier processes, for
  /// which there are no events, and those of other storages with the same ledger. Phases without downloads are left out.
  /// - Throws: The errors of the ledger.
  public func counts() async throws -> [DownloadState.Phase: Int] { try await read() }
}
