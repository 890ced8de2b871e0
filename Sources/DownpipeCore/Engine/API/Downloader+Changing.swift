// Changing requests, file names and the stages of the pipeline.
extension Downloader {
  // MARK: Changing

  /// Changes the request of a download: its priority, tags, metadata, header fields, destination, expected digests or
  /// dependencies.
  ///
  /// ```swift
  /// try await downloader.update(id) { $0.priority = .high }
  /// ```
  /// A request can be changed at any time. A new priority and new tags take effect at once, new header fields with the
  /// next request to the server, a new destination when the bytes are complete.
  ///
  /// **What is asked for is what lands.** A new URL, size, digest or digests of pieces, new mirrors, another maximum size or other steps stop
  /// a run at a checkpoint, also in its steps, and the next run works for the new request. The bytes on disk are kept as far as the
  /// new URL proves that they are the same, as with a fresh link of a ``LinkRefresher``. A finished download is fetched
  /// again when its URL changes, or when a size or digest is asked for that was not asked for before; its file stays in
  /// place until the new one is complete, and is then replaced. A failed, paused or cancelled download keeps its phase.
  ///
  /// Otherwise the destination of a finished download cannot be changed; call ``rename(_:to:)`` instead. While the steps of a
  /// download run, a change of its destination waits until they have ended, and what is called later for the download waits
  /// for that change. A step must therefore not wait for a change of its own download.
  /// - Parameters:
  ///   - id: The download to change.
  ///   - change: A closure that changes the request. It receives the request in the ledger, may be called more than
  ///     once, and must not change the id.
  /// - Returns: The status of the download after the change.
  /// - Throws: ``DownloadError`` with `.invalidRequest` (also if the download does not exist), `.unsupportedURL`,
  ///   `.unsafePath`, `.ledger` or `.shutDown`, or the error that `change` throws. The request is unchanged then, unless
  ///   the answer of the ledger was lost, or the run has used a new destination before the ledger failed.
  @discardableResult
  public func update(
    _ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> DownloadStatus {
    try await engine.update(id, change)
  }

  /// Renames the file of a download.
  ///
  /// The file of a finished download is renamed in its folder. An unfinished download gets the name when its file is
  /// published. The name is made safe for file systems, and the storage's conflict policy applies if a file with that
  /// name exists. Renaming is atomic, even if the process dies: the next start of a downloader completes an
  /// interrupted rename.
  /// - Parameters:
  ///   - id: The download to rename.
  ///   - name: The new file name, without a folder.
  /// - Returns: The status of the download after the change. Its file name may differ from `name`.
  /// - Throws: ``DownloadError`` with `.invalidRequest` if the download does not exist or its artifact is in memory;
  ///   `.storage` if the file no longer exists or was replaced; `.alreadyExists`, `.unsafePath`, `.permission`, `.ledger`
  ///   or `.shutDown`.
  @discardableResult
  public func rename(_ id: DownloadID, to name: String) async throws -> DownloadStatus {
    try await engine.rename(id, to: name)
  }

  /// Copies the partial of an unfinished download to a new file, so that another downloader can resume it.
  ///
  /// The download must not be running: pause it first.
  /// - Parameters:
  ///   - id: The download to export.
  ///   - path: The path of the new file. No file may exist there.
  /// - Returns: The export: the file, the number of its bytes, and their representation (URL, validator, total size).
  /// - Throws: ``DownloadError`` with `.inUse` while the download runs, `.invalidRequest` if it does not exist, is
  ///   finished or has no bytes on disk, `.alreadyExists` if a file exists at `path`, `.noSpace`, `.permission`,
  ///   `.storage`, `.ledger` or `.shutDown`.
  public func exportPartial(_ id: DownloadID, to path: String) async throws -> PartialExport {
    try await engine.exportPartial(id, to: path)
  }

  // MARK: Replacing stages

  /// Replaces the gate that has the same ``Stage/id``, or adds the gate if there is none.
  ///
  /// The new gate takes effect at once: if it is closed, it suspends the running downloads that it applies to.
  public func replace(_ gate: some Gate) async { await engine.replace(.gate(gate)) }

  /// Removes the gate with the given ``Stage/id``. Downloads that waited for it can start at once.
  /// - Returns: `false` if there is no such gate.
  @discardableResult
  public func removeGate(id: String) async -> Bool { await engine.removeGate(id: id) }

  /// Replaces the admission policy that has the same ``Stage/id``, or adds the policy if there is none.
  ///
  /// The new policy takes effect at once.
  /// - Parameters:
  ///   - policy: The policy.
  ///   - excess: What happens if more downloads run than the policy admits; by default, those that the scheduling policy
  ///     ranks last go back to waiting and keep their bytes.
  public func replace(_ policy: some AdmissionPolicy, excess: Excess = .stops) async {
    await engine.replace(admission: policy, excess: excess)
  }

  /// Removes the admission policy with the given ``Stage/id``. Without any, at most five downloads run at once.
  /// - Parameters:
  ///   - id: The identifier of the policy.
  ///   - excess: What happens if more than five downloads run when the last policy is removed.
  /// - Returns: `false` if there is no such policy.
  @discardableResult
  public func removeAdmissionPolicy(id: String, excess: Excess = .stops) async -> Bool {
    await engine.removeAdmission(id: id, excess: excess)
  }

  /// Replaces the scheduling policy, and ranks again every download that has not ended.
  /// - Throws: ``DownloadError`` with `.ledger`.
  public func replace(_ policy: some SchedulingPolicy) async throws { try await engine.replace(scheduling: policy) }

  /// Replaces the rate policy that has the same ``Stage/id``, or adds the policy if there is none. It applies to running
  /// transfers within a second. A rate that all downloaders of a ledger share (``RatePolicy/sharesRates``) holds for this one
  /// alone if its ledger cannot lease shares.
  public func replace(_ policy: some RatePolicy) async { await engine.replace(.rate(policy)) }

  /// Removes the rate policy with the given ``Stage/id``. Paused transfers continue within a second.
  /// - Returns: `false` if there is no such policy.
  @discardableResult
  public func removeRatePolicy(id: String) async -> Bool { await engine.removeRate(id: id) }

  /// Replaces the retry policy. The new policy applies from the next failure on, also of downloads that are running.
  public func replace(_ policy: some RetryPolicy) async { await engine.replace(.retry(policy)) }

  /// Replaces the segment policy, or adds it. The new policy applies from the next transfer on.
  public func replace(_ policy: some SegmentPolicy) async { await engine.replace(.segments(policy)) }

  /// Replaces the source that has the same ``Stage/id``, or adds the source after the others if there is none.
  ///
  /// The new source is used from the next attempt of a download on.
  /// - Throws: ``DownloadError`` with `.shutDown`, or the error that the source's start throws.
  public func replace(_ source: some Source) async throws { try await engine.replace(source: source) }
}
