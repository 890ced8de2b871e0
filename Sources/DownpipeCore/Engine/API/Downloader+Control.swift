// Whether downloads run: one, or many.
extension Downloader {
  /// Pauses a download: its place is freed at once, and its bytes are kept.
  ///
  /// Returns when it has stopped.
  /// - Returns: whether there was anything to pause.
  /// - Throws: ``DownloadError`` with `.invalidRequest` when there is no such download, or `.ledger`.
  @discardableResult
  public func pause(_ id: DownloadID) async throws -> Bool {
    try await engine.command(.pause, stopping: .pause, to: .paused, id)
  }

  /// Lets a paused or failed download go on from the bytes on disk, and one that waits for another attempt at once.
  ///
  /// - Returns: whether there was anything to resume.
  /// - Throws: as ``pause(_:)``.
  @discardableResult
  public func resume(_ id: DownloadID) async throws -> Bool { try await engine.command(.resume, id) }

  /// Starts a download now, beyond the limits if they are reached; a paused or failed one goes on.
  ///
  /// Gates are not forced: where one is closed the download waits for it, and so it does while the downloader is
  /// suspended. Returns when those that give way have stopped; they wait for their turn, while what is paused is never started in their place.
  /// - Parameters:
  ///   - id: which download.
  ///   - preempting: who gives way when a limit is reached.
  /// - Returns: whether it runs now.
  /// - Throws: as ``pause(_:)``.
  @discardableResult
  public func start(_ id: DownloadID, preempting: Preemption = .none) async throws -> Bool {
    try await engine.start(id, preempting: preempting)
  }

  /// Lets a download begin again with its first byte: one that waits, runs, is paused, has failed or was cancelled. Its
  /// bytes on disk are given up.
  ///
  /// - Returns: false for one that is finished: remove it, and add it again.
  /// - Throws: as ``pause(_:)``.
  @discardableResult
  public func restart(_ id: DownloadID) async throws -> Bool {
    try await engine.command(.restart, stopping: .restart, to: .waiting, id)
  }

  /// Cancels a download and removes its partial; its record stays. Returns when it has stopped.
  ///
  /// - Returns: whether there was anything to cancel.
  /// - Throws: as ``pause(_:)``.
  @discardableResult
  public func cancel(_ id: DownloadID) async throws -> Bool {
    try await engine.command(.cancel, stopping: .cancel, to: .cancelled, id)
  }

  /// Removes a download: work is ended first, then record and partial go together.
  ///
  /// - Parameters:
  ///   - id: which download.
  ///   - deletingFile: whether a finished file is removed, too.
  /// - Returns: whether there was such a download.
  @discardableResult
  public func remove(_ id: DownloadID, deletingFile: Bool = false) async throws -> Bool {
    try await engine.remove(id, deletingFile: deletingFile)
  }

  /// Deletes the file of a finished download, or the bytes of an unfinished one, and keeps the record as that of a
  /// cancelled one: a feed that is added again does not bring it back, and ``restart(_:)`` does.
  ///
  /// - Returns: whether there was anything to delete.
  /// - Throws: as ``pause(_:)``; `.permission` or `.storage` when the file cannot be removed.
  @discardableResult
  public func discard(_ id: DownloadID) async throws -> Bool {
    try await engine.checkOpen()
    return try await engine.discard(id)
  }

  /// Pauses everything, or everything with a tag. What waits is paused all at once.
  /// - Returns: how many were paused.
  @discardableResult
  public func pauseAll(tag: String? = nil) async throws -> Int {
    try await engine.commandAll(.pauseAll, stopping: .pauseAll, to: .paused, tag: tag)
  }

  /// Lets everything that is paused or has failed go on, or that with a tag, the earliest first. What was cancelled
  /// stays so.
  /// - Parameters:
  ///   - choice: which of them; ``ResumeChoice/pausedTogether`` undoes ``pauseAll(tag:)``.
  ///   - tag: only downloads that bear it.
  /// - Returns: how many go on.
  @discardableResult
  public func resumeAll(_ choice: ResumeChoice = .pausedAndFailed, tag: String? = nil) async throws -> Int {
    try await engine.commandAll(choice == .pausedTogether ? .resumeTogether : .resume, to: .waiting, tag: tag)
  }

  /// Cancels everything, or everything with a tag.
  /// - Returns: how many were cancelled.
  @discardableResult
  public func cancelAll(tag: String? = nil) async throws -> Int {
    try await engine.commandAll(.cancel, stopping: .cancel, to: .cancelled, tag: tag)
  }

  /// Removes everything, or everything with a tag.
  /// - Returns: how many were removed.
  @discardableResult
  public func removeAll(tag: String? = nil, deletingFiles: Bool = false) async throws -> Int {
    try await engine.removeAll(tag: tag, deletingFiles: deletingFiles)
  }

  // MARK: The whole downloader

  /// Suspends the downloader, or ends that: while it is suspended everything that ran waits, and nothing starts. For a
  /// log-out, say. Not kept over restarts, and no download is paused by it.
  ///
  /// Returns when nothing runs any more.
  public func setSuspended(_ isSuspended: Bool) async {
    if isSuspended { await engine.suspend() } else { await engine.unsuspend() }
  }

  /// Whether it is suspended; see ``setSuspended(_:)``.
  public var isSuspended: Bool {
    get async { await engine.mode.isSuspended }
  }
}
