// What downloads are, and what they go through: requests, names, and the stages.
extension Downloader {
  // MARK: Changing

  /// Changes what was asked for: priority, tags, metadata, header fields, destination, expected digests, at any time.
  ///
  /// ```swift
  /// try await downloader.update(id) { $0.priority = .high }
  /// ```
  /// Priority and tags count at once, header fields from the next request on, destination and digests when the bytes are
  /// complete. The destination of a finished download does not change: ``rename(_:to:)`` is for that. While a download is
  /// worked on after its last byte, a change of its destination waits for the end; a step must not ask for that of its own
  /// download.
  /// - Parameters:
  ///   - id: which download.
  ///   - change: changes the request; called with what the ledger has, perhaps more than once. The id stays.
  /// - Returns: how it stands then.
  /// - Throws: ``DownloadError`` with `.invalidRequest` or `.unsupportedURL`, `.ledger`, or what `change` throws; nothing
  ///   has changed then.
  @discardableResult
  public func update(
    _ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> DownloadStatus {
    try await engine.update(id, change)
  }

  /// Gives a download another name: the file of a finished one is renamed in its folder, any other one will have it.
  ///
  /// The storage makes the name safe and settles conflicts by its policy. It happens whole or not at all, also when the
  /// process dies meanwhile.
  /// - Returns: how it stands then; the name may differ from the one that was asked for.
  /// - Throws: ``DownloadError`` with `.invalidRequest` when there is no such download, or no file; `.alreadyExists`,
  ///   `.unsafePath`, `.permission`, `.storage` or `.ledger`.
  @discardableResult
  public func rename(_ id: DownloadID, to name: String) async throws -> DownloadStatus {
    try await engine.rename(id, to: name)
  }

  /// Copies the bytes that are on disk of an unfinished download into a new file, with what is known of them: for another
  /// downloader to go on with.
  ///
  /// - Throws: ``DownloadError`` with `.inUse` while it runs, `.invalidRequest` when it is finished or has no bytes,
  ///   `.alreadyExists` when there is a file already, `.noSpace`, `.permission` or `.storage`.
  public func exportPartial(_ id: DownloadID, to path: String) async throws -> PartialExport {
    try await engine.exportPartial(id, to: path)
  }

  // MARK: Replacing stages

  /// Replaces the gate of the same ``Stage/id``, in its place, or adds the gate. Takes effect on what is running.
  public func replace(_ gate: some Gate) async { await engine.replace(gate: gate) }

  /// Removes the gate with an ``Stage/id``.
  /// - Returns: whether there was one.
  @discardableResult
  public func removeGate(id: String) async -> Bool { await engine.removeGate(id: id) }

  /// Replaces the admission policy of the same ``Stage/id``, or adds the policy. Running downloads beyond a smaller
  /// limit go back to waiting, those of the last rank first; their bytes are kept.
  public func replace(_ policy: some AdmissionPolicy) async { await engine.replace(admission: policy) }

  /// Replaces the scheduling policy and ranks all that has not ended anew.
  public func replace(_ policy: some SchedulingPolicy) async throws { try await engine.replace(scheduling: policy) }

  /// Replaces the retry policy, from the next failure on.
  public func replace(_ policy: some RetryPolicy) async { await engine.replace(retry: policy) }

  /// Replaces the source of the same ``Stage/id``, or adds the source behind the others, from the next attempt on.
  public func replace(_ source: some Source) async throws { try await engine.replace(source: source) }
}
