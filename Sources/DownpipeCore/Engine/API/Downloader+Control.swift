// Pausing, resuming, starting, cancelling and removing: one download, or many.
extension Downloader {
  /// Pauses a download and keeps its bytes.
  ///
  /// The method returns when the download has stopped and its slot is free.
  /// - Returns: `false` if there was nothing to pause: the download is paused already, has ended, or is run by another
  ///   process.
  /// - Throws: ``DownloadError`` with `.invalidRequest` if there is no such download, `.ledger` or `.shutDown`.
  @discardableResult
  public func pause(_ id: DownloadID) async throws -> Bool {
    try await engine.command(.pause, stopping: .pause, to: .paused, id)
  }

  /// Resumes a paused or failed download from the bytes on disk.
  ///
  /// A download that waits for its next attempt stops waiting for the time of that attempt. The download starts when
  /// the scheduling policy, the limits and the gates permit it.
  /// - Returns: `false` if there was nothing to resume: the download is running, finished or cancelled, or another process
  ///   runs it.
  /// - Throws: The errors of ``pause(_:)``.
  @discardableResult
  public func resume(_ id: DownloadID) async throws -> Bool { try await engine.command(.resume, id) }

  /// Starts a download now, even if a limit is reached. A paused or failed download is resumed.
  ///
  /// A closed gate is not overridden: the download waits for it, and also while the downloader is suspended.
  ///
  /// Preempted downloads keep their bytes and go back to waiting; the method returns when they have stopped. A paused
  /// download is never started in their place.
  /// - Parameters:
  ///   - id: The download to start.
  ///   - preempting: Which running download is preempted if a limit is reached.
  /// - Returns: Whether the download runs now.
  /// - Throws: The errors of ``pause(_:)``.
  @discardableResult
  public func start(_ id: DownloadID, preempting: Preemption = .none) async throws -> Bool {
    try await engine.start(id, preempting: preempting)
  }

  /// Discards the bytes of a download and downloads it again from the first byte.
  ///
  /// The download may wait, run, be paused, have failed or have been cancelled.
  /// - Returns: `false` if the download is finished (remove it, then add it again) or another process runs it.
  /// - Throws: The errors of ``pause(_:)``.
  @discardableResult
  public func restart(_ id: DownloadID) async throws -> Bool {
    try await engine.command(.restart, stopping: .restart, to: .waiting, id)
  }

  /// Cancels a download and deletes its partial. The record stays in the ledger.
  ///
  /// The method returns when the download has stopped.
  /// - Returns: `false` if there was nothing to cancel: the download is finished or cancelled, or another process runs it.
  /// - Throws: The errors of ``pause(_:)``.
  @discardableResult
  public func cancel(_ id: DownloadID) async throws -> Bool {
    try await engine.command(.cancel, stopping: .cancel, to: .cancelled, id)
  }

  /// Removes a download from the ledger and deletes its partial. A running download is stopped first.
  ///
  /// - Parameters:
  ///   - id: The download to remove.
  ///   - deletingFile: Whether the file of a finished download is deleted, too.
  /// - Returns: `false` if there is no such download, or if another process runs it.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`; `.permission` or `.storage` if the partial or the file
  ///   cannot be deleted, in which case the record is removed all the same.
  @discardableResult
  public func remove(_ id: DownloadID, deletingFile: Bool = false) async throws -> Bool {
    try await engine.remove(id, deletingFile: deletingFile)
  }

  /// Deletes the file or the partial of a download, and keeps its record as `cancelled`.
  ///
  /// Adding the same request again, as when a feed is read again, does not download the file again;
  /// ``restart(_:)`` does.
  /// - Returns: `false` if there was nothing to delete.
  /// - Throws: The errors of ``pause(_:)``; `.permission` or `.storage` if the file cannot be deleted.
  @discardableResult
  public func discard(_ id: DownloadID) async throws -> Bool {
    try await engine.checkOpen()
    return try await engine.discard(id)
  }

  /// Pauses every download, or every download with a tag. Waiting downloads are paused in one transaction of the
  /// ledger.
  /// - Parameter tag: The tag of the downloads to pause; all downloads if `nil`.
  /// - Returns: The number of downloads that were paused.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  @discardableResult
  public func pauseAll(tag: String? = nil) async throws -> Int {
    try await engine.commandAll(.pauseAll, stopping: .pauseAll, to: .paused, tag: tag)
  }

  /// Resumes every paused or failed download, or every such download with a tag.
  ///
  /// The downloads keep their places in the queue. Cancelled downloads stay cancelled.
  /// - Parameters:
  ///   - choice: Which of them to resume; ``ResumeChoice/pausedTogether`` undoes ``pauseAll(tag:)``.
  ///   - tag: The tag of the downloads to resume; all downloads if `nil`.
  /// - Returns: The number of downloads that were resumed.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  @discardableResult
  public func resumeAll(_ choice: ResumeChoice = .pausedAndFailed, tag: String? = nil) async throws -> Int {
    try await engine.commandAll(choice == .pausedTogether ? .resumeTogether : .resume, to: .waiting, tag: tag)
  }

  /// Cancels every download, or every download with a tag, and deletes the partials.
  /// - Parameter tag: The tag of the downloads to cancel; all downloads if `nil`.
  /// - Returns: The number of downloads that were cancelled.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  @discardableResult
  public func cancelAll(tag: String? = nil) async throws -> Int {
    try await engine.commandAll(.cancel, stopping: .cancel, to: .cancelled, tag: tag)
  }

  /// Removes every download, or every download with a tag, from the ledger, and deletes the partials.
  /// - Parameters:
  ///   - tag: The tag of the downloads to remove; all downloads if `nil`.
  ///   - deletingFiles: Whether the files of finished downloads are deleted, too.
  /// - Returns: The number of downloads that were removed.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  @discardableResult
  public func removeAll(tag: String? = nil, deletingFiles: Bool = false) async throws -> Int {
    try await engine.removeAll(tag: tag, deletingFiles: deletingFiles)
  }

  // MARK: The whole downloader

  /// Suspends the downloader, or ends its suspension.
  ///
  /// While the downloader is suspended, for example after a user has logged out, no download runs or starts. Running
  /// downloads go back to waiting; they are not paused. The suspension is not stored: it ends with the process.
  ///
  /// When suspending, the method returns after the last running download has stopped.
  public func setSuspended(_ isSuspended: Bool) async {
    if isSuspended { await engine.suspend() } else { await engine.unsuspend() }
  }

  /// Whether the downloader is suspended; see ``setSuspended(_:)``.
  public var isSuspended: Bool {
    get async { await engine.mode.isSuspended }
  }
}
