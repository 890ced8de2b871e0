// Downloads that follow from another one.
extension ProcessingContext {
  /// Adds downloads; see ``add(_:within:)``.
  public typealias Adder = @Sendable (_ children: [DownloadRequest], _ limits: FollowUpLimits) async throws -> Void
  /// Waits for downloads; see ``wait(for:noting:)``.
  public typealias Waiter = @Sendable (_ ids: Set<DownloadID>, _ note: String?) async throws -> Void

  /// Adds downloads that follow from this one, in one transaction of the ledger; ``FollowUp`` is the step for it.
  ///
  /// They get their ``DownloadRequest/lineage`` and the tag ``FollowUp/tag(of:)``. A download whose id is known is
  /// updated, so a step that runs again must give them the same ids. They may start before the step has ended.
  /// - Parameters:
  ///   - children: The downloads, whose ids the step has chosen.
  ///   - limits: The bounds on the descendants of the download that the app has added.
  /// - Throws: ``DownloadError`` with `.followUpLimit`, and those of ``Downloader/add(contentsOf:ifKnown:paused:)``;
  ///   `CancellationError` when the run has been stopped.
  public func add(_ children: [DownloadRequest], within limits: FollowUpLimits = FollowUpLimits()) async throws {
    try await adder(children, limits)
  }

  /// Makes this download wait for others, which become part of its ``DownloadRequest/after``.
  ///
  /// If some of them have not finished, the function throws `CancellationError`, which the step has to pass on: the run
  /// ends, its slot is free, and after the others have finished a next run calls the step again. If all have finished, it
  /// returns.
  ///
  /// Those of them that were met by an earlier run of the download are looked at again, and dependencies on other
  /// downloads that followed from this one are taken away.
  /// - Parameters:
  ///   - ids: The downloads, at most 1,000 with those that the download waits for already.
  ///   - note: The ``priorNote`` of the next run, if it has been waited for them: the step need not wait again, also if a
  ///     user has taken a dependency away since. `nil` keeps the note as it is.
  /// - Throws: `CancellationError`; ``DownloadError`` with `.invalidRequest` for too many, or if downloads would wait for
  ///   each other in a cycle; `.ledger`.
  public func wait(for ids: Set<DownloadID>, noting note: String? = nil) async throws { try await waiter(ids, note) }
}
