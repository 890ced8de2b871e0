// Pausing, resuming, starting, cancelling and removing one download, and suspending all.
extension Downloader {
  /// Pauses a download and keeps its bytes.
  ///
  /// The method returns when the download has stopped and its slot is free.
  /// - Returns: `false` if there was nothing to pause: the download is paused already, has ended, or is run by another
  ///   process.
  /// - Throws: ``DownloadError`` with `.invalidRequest` if there is no such download, `.ledger` or `.shutDown`, or the error of
  ///   ``Storage/location``.
  @discardableResult
  public func pause(_ id: DownloadID) async throws -> Bool {
    try await engine.apply(.pause, to: id)
  }

  /// Resumes a paused or failed download from the bytes on disk.
  ///
  /// A download that waits for its next attempt stops waiting for the time of that attempt. The download starts when
  /// the scheduling policy, the limits and the gates permit it.
  /// - Returns: `false` if there was nothing to resume: the download is running, finished or cancelled, or another process
  ///   runs it.
  /// - Throws: The errors of ``pause(_:)``.
  @discardableResult
  public func resume(_ id: DownloadID) async throws -> Bool { try await engine.apply(.resume, to: id) }

  /// Starts a download now, even if a limit is reached. A paused or failed download is resumed.
  ///
  /// A closed gate is not overridden: the download waits for it, and also while the downloader is suspended. Neither are
  /// downloads that have to finish first (``DownloadRequest/after``): to start it without them, remove them from the
  /// request with ``update(_:_:)``.
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
  /// The download may wait, run, be paused, have failed, have been cancelled or be finished. The file of a finished
  /// download stays in place until the new one is complete, and is then replaced.
  /// - Returns: `false` if another process runs the download.
  /// - Throws: The errors of ``pause(_:)``.
  @discardableResult
  public func restart(_ id: DownloadID) async throws -> Bool {
    try await engine.apply(.restart, to: id)
  }

  /// Asks the server of a finished download whether its file has changed.
  ///
  /// If the file has not changed, the download finishes again without a byte. If it has, the new file is fetched, and takes
  /// the place of the present one when it is complete; until then the present one stays. See ``DownloadRequest/Refresh``,
  /// which does the same when the download is added again; freshness does not matter here.
  /// - Returns: `false` if there was nothing to refresh: the download is not finished, or another process runs it. A refresh
  ///   that has failed is asked again by ``resume(_:)``.
  /// - Throws: The errors of ``pause(_:)``.
  @discardableResult
  public func refresh(_ id: DownloadID) async throws -> Bool { try await engine.apply(.refresh, to: id) }

  /// Cancels a download and deletes its partial. The record stays in the ledger.
  ///
  /// The method returns when the download has stopped.
  /// - Returns: `false` if there was nothing to cancel: the download is finished or cancelled, or another process runs it.
  /// - Throws: The errors of ``pause(_:)``.
  @discardableResult
  public func cancel(_ id: DownloadID) async throws -> Bool {
    try await engine.apply(.cancel, to: id)
  }

  /// Removes a download from the ledger and deletes its partial. A running download is stopped first.
  ///
  /// What is to be deleted is kept in the ledger until it is: if the process dies in between, or the disk does not answer, it
  /// is deleted when a downloader of the same storage starts.
  /// - Parameters:
  ///   - id: The download to remove.
  ///   - deletingFile: Whether the file of a finished download is deleted, too.
  /// - Returns: `false` if there is no such download, or if another process runs it.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`; `.permission` or `.storage` if the partial or the file
  ///   cannot be deleted, in which case the record is removed all the same; the error of ``Storage/location``, in which case it
  ///   is not.
  @discardableResult
  public func remove(_ id: DownloadID, deletingFile: Bool = false) async throws -> Bool {
    try await engine.remove(id, deletingFile: deletingFile)
  }

  /// Deletes the file or the partial of a download, and keeps its record as `cancelled`. If the file is being fetched
  /// again, both are deleted.
  ///
  /// Adding the same request again, as when a feed is read again, does not download the file again;
  /// ``restart(_:)`` does.
  /// - Returns: `false` if there was nothing to delete.
  /// - Throws: The errors of ``pause(_:)``; `.permission` or `.storage` if the file cannot be deleted.
  @discardableResult
  public func discard(_ id: DownloadID) async throws -> Bool { try await engine.discard(id) }

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
    get async { await engine.state.mode.isSuspended }
  }
}
