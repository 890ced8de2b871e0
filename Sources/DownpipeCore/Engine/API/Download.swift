/// A handle for one download: an id and the downloader that manages it.
///
/// A handle is cheap to copy. Discarding it does not affect the download; ``Downloader/download(_:)`` returns another
/// one.
public struct Download: Sendable, Identifiable {
  /// The id of the download, unique within the ledger.
  public let id: DownloadID
  /// Whether the call that returned this handle created the download or started a known one again, for example because
  /// its file no longer exists.
  public let isNew: Bool
  private let downloader: Downloader

  struct Ticket: Sendable {
    let id: DownloadID
    let isNew: Bool
  }

  init(id: DownloadID, isNew: Bool, downloader: Downloader) {
    self.id = id
    self.isNew = isNew
    self.downloader = downloader
  }

  /// The current status of the download: request, state and progress.
  /// - Throws: ``DownloadError`` with `.removed` if the download no longer exists, `.ledger` or `.shutDown`.
  public var status: DownloadStatus {
    get async throws {
      guard let status = try await downloader.status(of: id) else { throw gone }
      return status
    }
  }

  /// The events of the download, beginning with its current state.
  ///
  /// The sequence ends after the state `finished`, `failed` or `cancelled`, after the event `removed`, when another
  /// user of the ledger removes the download, and when the downloader shuts down. It is empty if the current state cannot be
  /// read.
  ///
  /// A slow reader may miss events, but never the latest one.
  public var events: DownloadEvents { DownloadEvents(id: id, downloader: downloader) }

  /// The artifact of the download; waits until the download has finished.
  ///
  /// Cancelling the waiting task ends the wait, not the download.
  /// - Throws: ``DownloadError`` if the download fails, is cancelled or is removed, or if the downloader shuts down;
  ///   `CancellationError` if the waiting task is cancelled.
  public var value: Artifact {
    get async throws {
      while true {
        for await event in events {
          if case .state(let state) = event.kind, let end = try state.artifact { return end }
        }
        try Task.checkCancellation()
        // The events ended early: the download is gone, the downloader shuts down, or the record could not be read.
        // Reading the status again either throws or tells whether to go on waiting.
        guard let status = try await downloader.status(of: id) else { throw gone }
        if let end = try status.state.artifact { return end }
      }
    }
  }

  /// Pauses the download and keeps its bytes; see ``Downloader/pause(_:)``.
  @discardableResult
  public func pause() async throws -> Bool { try await downloader.pause(id) }

  /// Resumes the download from the bytes on disk; see ``Downloader/resume(_:)``.
  @discardableResult
  public func resume() async throws -> Bool { try await downloader.resume(id) }

  /// Starts the download now, even if a limit is reached; see ``Downloader/start(_:preempting:)``.
  @discardableResult
  public func start(preempting: Preemption = .none) async throws -> Bool {
    try await downloader.start(id, preempting: preempting)
  }

  /// Discards the bytes of the download and downloads it again from the first byte; see ``Downloader/restart(_:)``.
  @discardableResult
  public func restart() async throws -> Bool { try await downloader.restart(id) }

  /// Asks the server whether the finished file has changed; see ``Downloader/refresh(_:)``.
  @discardableResult
  public func refresh() async throws -> Bool { try await downloader.refresh(id) }

  /// Changes the request of the download; see ``Downloader/update(_:_:)``.
  @discardableResult
  public func update(
    _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> DownloadStatus {
    try await downloader.update(id, change)
  }

  /// Renames the file of the download; see ``Downloader/rename(_:to:)``.
  @discardableResult
  public func rename(to name: String) async throws -> DownloadStatus { try await downloader.rename(id, to: name) }

  /// Verifies the finished file, and repairs it if that is wanted; see ``Downloader/verify(_:repairing:)``.
  public func verify(repairing isRepairing: Bool = false) async throws -> Verification {
    try await downloader.verify(id, repairing: isRepairing)
  }

  /// Deletes the file or the partial, and keeps the record as `cancelled`; see ``Downloader/discard(_:)``.
  @discardableResult
  public func discard() async throws -> Bool { try await downloader.discard(id) }

  /// Cancels the download and deletes its partial; see ``Downloader/cancel(_:)``.
  @discardableResult
  public func cancel() async throws -> Bool { try await downloader.cancel(id) }

  /// Removes the download from the ledger; see ``Downloader/remove(_:deletingFile:)``.
  @discardableResult
  public func remove(deletingFile: Bool = false) async throws -> Bool {
    try await downloader.remove(id, deletingFile: deletingFile)
  }

  private var gone: DownloadError { DownloadError(.removed, "the download “\(id)” no longer exists") }
}

extension DownloadState {
  /// The artifact of a finished download; `nil` if the download has not ended.
  /// - Throws: ``DownloadError`` if the download failed or was cancelled.
  fileprivate var artifact: Artifact? {
    get throws(DownloadError) {
      switch self {
      case .finished(let artifact): artifact
      case .failed(let error): throw error
      case .cancelled: throw DownloadError(.cancelled, "the download was cancelled")
      default: nil
      }
    }
  }
}
