// Operations on many downloads by id. Each is the operation of the same name with the filter of the ids.
extension Downloader {
  /// Pauses the downloads with the ids, in one transaction of the ledger; see ``pauseAll(_:)``.
  ///
  /// - Parameter ids: The downloads to pause. Ids that the ledger does not have do not matter.
  /// - Returns: The number of downloads that were paused.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  @discardableResult
  public func pauseAll(ids: some Sequence<DownloadID>) async throws -> Int { try await pauseAll(.ids(ids)) }

  /// Resumes the downloads with the ids, in one transaction of the ledger; see ``resumeAll(_:only:)``.
  ///
  /// - Parameters:
  ///   - ids: The downloads to resume. Ids that the ledger does not have do not matter.
  ///   - choice: Which of them to resume.
  /// - Returns: The number of downloads that were resumed.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  @discardableResult
  public func resumeAll(
    ids: some Sequence<DownloadID>, only choice: ResumeChoice = .pausedAndFailed
  ) async throws -> Int {
    try await resumeAll(.ids(ids), only: choice)
  }

  /// Discards the bytes of the downloads with the ids, and downloads them again from the first byte; see
  /// ``restartAll(_:)``.
  ///
  /// - Parameter ids: The downloads to restart. Ids that the ledger does not have do not matter.
  /// - Returns: The number of downloads that were restarted.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  @discardableResult
  public func restartAll(ids: some Sequence<DownloadID>) async throws -> Int { try await restartAll(.ids(ids)) }

  /// Asks the servers of the finished downloads with the ids whether their files have changed; see ``refreshAll(_:)``.
  ///
  /// - Parameter ids: The downloads to refresh. Ids that the ledger does not have do not matter.
  /// - Returns: The number of downloads that are refreshed.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  @discardableResult
  public func refreshAll(ids: some Sequence<DownloadID>) async throws -> Int { try await refreshAll(.ids(ids)) }

  /// Cancels the downloads with the ids, and deletes their partials; see ``cancelAll(_:)``.
  ///
  /// - Parameter ids: The downloads to cancel. Ids that the ledger does not have do not matter.
  /// - Returns: The number of downloads that were cancelled.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  @discardableResult
  public func cancelAll(ids: some Sequence<DownloadID>) async throws -> Int { try await cancelAll(.ids(ids)) }

  /// Changes the requests of the downloads with the ids, in one transaction of the ledger; see
  /// ``updateAll(_:_:)``.
  ///
  /// - Parameters:
  ///   - ids: The downloads to change. Ids that the ledger does not have do not matter.
  ///   - change: A closure that changes one request.
  /// - Returns: The number of downloads whose request has changed.
  /// - Throws: The errors of ``updateAll(_:_:)``. No request of that transaction is changed then.
  @discardableResult
  public func updateAll(
    ids: some Sequence<DownloadID>, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> Int {
    try await updateAll(.ids(ids), change)
  }

  /// Removes the downloads with the ids from the ledger, and deletes their partials; see
  /// ``removeAll(_:deletingFiles:)``.
  ///
  /// ```swift
  /// try await downloader.removeAll(ids: ["a", "b"], deletingFiles: true)
  /// ```
  /// - Parameters:
  ///   - ids: The downloads to remove. Ids that the ledger does not have do not matter.
  ///   - deletingFiles: Whether the files of finished downloads are deleted, too.
  /// - Returns: The number of downloads that were removed.
  /// - Throws: The errors of ``removeAll(_:deletingFiles:)``.
  @discardableResult
  public func removeAll(ids: some Sequence<DownloadID>, deletingFiles: Bool = false) async throws -> Int {
    try await removeAll(.ids(ids), deletingFiles: deletingFiles)
  }
}
