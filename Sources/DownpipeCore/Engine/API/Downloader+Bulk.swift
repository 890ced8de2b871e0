// Operations on the downloads that match a filter.
extension Downloader {
  /// Pauses the downloads that match a filter.
  ///
  /// ```swift
  /// try await downloader.pauseAll(.tag("show"))
  /// ```
  /// The filter is judged once, when the command begins. At that moment all matching downloads that do not run are
  /// paused in one transaction of the ledger, and all matching downloads that run are stopped; no download starts in
  /// between. A download that matches later, for example because another one has freed its slot, is not paused:
  /// `pauseAll(.phases([.transferring]))` pauses what runs now, and the waiting downloads take its place.
  ///
  /// The method returns when the running downloads have stopped and their slots are free. Downloads that other
  /// processes run are not paused.
  /// - Parameter filter: The downloads to pause; all downloads by default.
  /// - Returns: The number of downloads that were paused.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`. If the ledger fails at the beginning, no download is
  ///   paused.
  @discardableResult
  public func pauseAll(_ filter: DownloadFilter = .all) async throws -> Int {
    try await engine.apply(.pauseAll, to: filter)
  }

  /// Resumes the paused and failed downloads that match a filter, in one transaction of the ledger.
  ///
  /// The downloads keep their places in the queue. Downloads that wait for their next attempt stop waiting for its
  /// time. Cancelled downloads stay cancelled. The filter is judged once, as in ``pauseAll(_:)``.
  /// - Parameters:
  ///   - filter: The downloads to resume; all downloads by default.
  ///   - choice: Which of them to resume; ``ResumeChoice/pausedTogether`` undoes ``pauseAll(_:)``.
  /// - Returns: The number of downloads that were resumed.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  @discardableResult
  public func resumeAll(
    _ filter: DownloadFilter = .all, only choice: ResumeChoice = .pausedAndFailed
  ) async throws -> Int {
    try await engine.apply(choice == .pausedTogether ? .resumeTogether : .resume, to: filter)
  }

  /// Discards the bytes of the downloads that match a filter, and downloads them again from the first byte.
  ///
  /// The downloads may wait, run, be paused, have failed, have been cancelled or be finished. The file of a finished
  /// download stays in place until the new one is complete, and is then replaced.
  /// All matching downloads that do not run change in one transaction of the ledger, and those that run are stopped.
  /// The filter is judged once, as in ``pauseAll(_:)``.
  /// - Parameter filter: The downloads to restart; all downloads by default, including finished and cancelled ones.
  /// - Returns: The number of downloads that were restarted.
  /// - Throws: The errors of ``pauseAll(_:)``.
  @discardableResult
  public func restartAll(_ filter: DownloadFilter = .all) async throws -> Int {
    try await engine.apply(.restart, to: filter)
  }

  /// Asks the servers of the finished downloads that match a filter whether their files have changed, as ``refresh(_:)``
  /// does for one.
  ///
  /// The downloads wait for their turn in one transaction of the ledger. The filter is judged once, as in ``pauseAll(_:)``.
  /// - Parameter filter: The downloads to refresh; all finished downloads by default.
  /// - Returns: The number of downloads that are refreshed.
  /// - Throws: The errors of ``pauseAll(_:)``.
  @discardableResult
  public func refreshAll(_ filter: DownloadFilter = .all) async throws -> Int {
    try await engine.apply(.refresh, to: filter)
  }

  /// Cancels the downloads that match a filter, and deletes their partials. The records stay in the ledger.
  ///
  /// All matching downloads that do not run are cancelled in one transaction of the ledger, and those that run are
  /// stopped. The filter is judged once, as in ``pauseAll(_:)``.
  /// - Parameter filter: The downloads to cancel; all downloads by default.
  /// - Returns: The number of downloads that were cancelled.
  /// - Throws: The errors of ``pauseAll(_:)``.
  @discardableResult
  public func cancelAll(_ filter: DownloadFilter = .all) async throws -> Int {
    try await engine.apply(.cancel, to: filter)
  }

  /// Changes the requests of the downloads that match a filter, in one transaction of the ledger: their priority, tags,
  /// metadata, deadline, intent or header fields.
  ///
  /// ```swift
  /// try await downloader.updateAll(.tag("show")) { $0.priority = .high }
  /// ```
  /// Either all requests are changed or none, also if the process dies meanwhile. Only downloads for which an earlier call
  /// still waits, such as one that removes them, are changed after that call, in a second transaction. The downloads are
  /// ranked again, and the changes take effect on those that run as after ``update(_:_:)``. The filter is judged once, by
  /// the state in the ledger: a change of the tags does not change which downloads match. Destinations cannot be changed
  /// together.
  /// - Parameters:
  ///   - filter: The downloads to change; all downloads by default.
  ///   - change: A closure that changes one request. It is called once for each download, inside the transaction, so it
  ///     must be cheap. It must not change the id.
  /// - Returns: The number of downloads whose request has changed.
  /// - Throws: ``DownloadError`` with `.invalidRequest`, `.unsupportedURL`, `.ledger` or `.shutDown`, or the error that
  ///   `change` or ``Storage/location`` throws. No request of that transaction is changed then.
  @discardableResult
  public func updateAll(
    _ filter: DownloadFilter = .all, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> Int {
    try await engine.updateAll(filter, change)
  }

  /// Removes the downloads that match a filter from the ledger, and deletes their partials.
  ///
  /// All matching downloads that do not run are removed in one transaction of the ledger; those that run are stopped, and
  /// removed together. The filter is judged once, as in ``pauseAll(_:)``. Downloads that other processes run, and downloads of
  /// other storages, are not removed.
  ///
  /// Partials and files are deleted when the records are removed. A file whose id has been added again meanwhile is kept.
  /// What is left when the process dies or the downloader is shut down is deleted when a downloader of the same storage starts.
  /// - Parameters:
  ///   - filter: The downloads to remove; all downloads by default.
  ///   - deletingFiles: Whether the files of finished downloads are deleted, too.
  /// - Returns: The number of downloads that were removed.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`; `.permission` or `.storage` if a partial or a file
  ///   cannot be deleted, in which case the records are removed all the same; the error of ``Storage/location``, in which case
  ///   nothing is removed.
  @discardableResult
  public func removeAll(_ filter: DownloadFilter = .all, deletingFiles: Bool = false) async throws -> Int {
    try await engine.removeAll(filter, deletingFiles: deletingFiles)
  }
}
