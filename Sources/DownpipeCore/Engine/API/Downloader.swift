public import Foundation
internal import Synchronization

/// Runs downloads through a pipeline of stages.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("~/Downloads")
/// }
/// let file = try await downloader.add(DownloadRequest("https://example.org/file"))
/// print(try await file.value)
/// await downloader.shutdown()
/// ```
/// A new downloader first continues the unfinished downloads of its ledger. Without a ledger stage the records are kept
/// in memory and end with the process; add a ledger such as `SQLiteLedger` to resume after a restart. Records in memory stay,
/// also those of finished downloads, until they are removed: a job that runs for long removes them from time to time, by
/// ``removeAll(_:deletingFiles:)``. A downloader can be used from any thread.
///
/// Call ``shutdown(waitingAtMost:)`` to end a downloader: transfers stop at a checkpoint, and the call returns when all work has
/// ended. A downloader that is deallocated stops in the same way, but asynchronously.
public final class Downloader: Sendable {
  let engine: Engine
  private let isShuttingDown = Atomic(false)
  private let loop: Task<Void, Never>

  /// Creates a downloader from the stages of a pipeline, and starts it.
  /// - Parameters:
  ///   - options: The settings of the downloader apart from its stages.
  ///   - stages: The stages; a source and a storage are required.
  /// - Throws: The errors of ``init(_:options:)``, and those of stages that check their settings.
  public convenience init(
    options: DownloaderOptions = DownloaderOptions(), @PipelineBuilder _ stages: () throws -> PipelineStages
  ) async throws {
    try await self.init(Pipeline(try stages()), options: options)
  }

  /// Creates a downloader from a pipeline, and starts it.
  ///
  /// - Parameters:
  ///   - pipeline: The stages.
  ///   - options: The settings of the downloader apart from its stages.
  /// - Throws: ``DownloadError`` with `.ledger` if the ledger cannot be opened; `.invalidPipeline` if a kind of stage
  ///   that a pipeline has once is given twice, if two sources, gates or admission policies have the same id, or if the
  ///   steps of opaque stage groups do not fit together; any error that a source's start throws.
  public convenience init(_ pipeline: Pipeline, options: DownloaderOptions = DownloaderOptions()) async throws {
    try pipeline.check()
    let store = try await pipeline.ledger.open()
    do {
      try await self.init(pipeline, store: store, settings: nil, options: options)
    } catch {
      try? await store.close()
      throw error
    }
  }

  /// - Parameter settings: The ``LiveSettings`` of the pipeline, if it has settings.
  /// - Throws: The errors of ``init(_:options:)``; the caller closes the store.
  init(
    _ pipeline: Pipeline, store: any LedgerStore, settings: (any Sendable)?, options: DownloaderOptions
  ) async throws {
    if !store.countsForAll, let policy = pipeline.admission.first(where: \.hasSharedLimits) {
      throw DownloadError(
        .invalidPipeline,
        "\(policy.name) has limits for all workers of a ledger, and \(pipeline.ledger.name) cannot count for all: use "
          + "limits of this downloader, or a ledger such as PostgresLedger", stage: policy.name)
    }
    if !store.leasesRates, let policy = pipeline.rates.first(where: \.sharesRates) {
      throw DownloadError(
        .invalidPipeline,
        "\(policy.name) has a rate for all workers of a ledger, and \(pipeline.ledger.name) cannot divide it: use a rate "
          + "of this downloader, or a ledger such as PostgresLedger", stage: policy.name)
    }
    var sessions: [any SourceSession] = []
    do {
      // A downloader that only lists and removes must not change the ranks in a ledger that others use.
      if !options.startsSuspended { try await store.rank(by: pipeline.ranking) }
      for source in pipeline.sources { sessions.append(try await source.start(in: pipeline.sourceContext)) }
    } catch {
      for session in sessions { await session.stop() }
      throw error
    }
    let engine = Engine(pipeline: pipeline, sessions: sessions, store: store, settings: settings, options: options)
    self.engine = engine
    // A downloader that only lists and removes renames nothing on its own.
    if !options.startsSuspended { await engine.finishRenaming() }
    // The downloader owns this task. Runs and exchanges have tasks of their own, for whose ends it waits.
    loop = options.executors.start {
      await engine.run()
    }
  }

  /// After a shutdown has begun, the loop ends by itself: it keeps the leases of what was left behind.
  deinit { if !isShuttingDown.load(ordering: .relaxed) { loop.cancel() } }

  /// Ends the work without waiting for it, like the death of the process, in which all stages fail.
  package func abandon() { loop.cancel() }

  /// Stops every transfer at a checkpoint, closes the ledger, and returns when all work has ended, or after a time.
  ///
  /// Every unfinished download can be resumed later. Afterwards, methods that use the ledger throw
  /// ``DownloadError`` with `.shutDown`. A second call waits for the same end. Cancelling the calling task changes nothing.
  ///
  /// A stage that does not return although its task was cancelled, such as a step that blocks its thread, is left behind
  /// after `limit` and named in the result. Its download keeps its lease and its partial until the stage returns or the
  /// process ends, so that no other owner starts it meanwhile. What the stage returns then is recorded, and the ledger is
  /// closed. Observers and gates that do not return are given up: the ledger is closed, and they are only named.
  /// - Parameter limit: The longest time to wait; `nil` for as long as it takes.
  @discardableResult
  public func shutdown(waitingAtMost limit: Duration? = .seconds(10)) async -> ShutdownReport {
    isShuttingDown.store(true, ordering: .relaxed)
    await engine.beginShutdown()
    guard let limit else {
      await loop.value
      return ShutdownReport(unended: [])
    }
    let context = engine.context
    // Not a child task: the cancellation of the caller must not end the wait.
    let hasEnded = await context.executors.start {
      await withTaskGroup(of: Bool.self) { group in
        group.addTask { (try? await context.end.wait()) != nil }
        group.addTask { (try? await context.time.sleep(for: limit)) == nil }
        defer { group.cancelAll() }
        return await group.next() ?? true
      }
    }.value
    return hasEnded ? ShutdownReport(unended: []) : ShutdownReport(unended: await engine.unended(), isComplete: false)
  }

  /// Returns when no download waits or runs: every download is finished, failed, cancelled or paused.
  ///
  /// A download that waits for a closed gate, for the network, for free space or for another owner counts as waiting. A
  /// download that waits for another download (``DownloadRequest/after``) counts as long as that one waits or runs. If it
  /// has failed, is paused, was cancelled or does not exist, both need a command, and neither of them counts.
  /// - Throws: ``DownloadError`` with `.shutDown`; with `.ledger` if the ledger, or with the error of ``Storage/location`` if
  ///   the storage fails repeatedly while downloads wait;
  ///   `CancellationError` if the waiting task is cancelled.
  public func waitUntilIdle() async throws {
    try await engine.waitUntilIdle()
  }

  // MARK: Adding

  /// Adds a download, or updates the download with the same id.
  ///
  /// If the ledger already has a download with the id of the request, `ifKnown` decides. By default
  /// (``KnownDownload/update``), the download keeps its place in the queue, and:
  /// - Every part of the request that differs from the previously added request is taken over. The other parts keep
  ///   what ``update(_:_:)`` or a refreshed link has changed, so that adding the same feed twice changes nothing.
  /// - A failed download is resumed, and a finished download starts again if its file no longer exists. A file that another
  ///   storage has counts as there, unless the download is added for the ``Storage/location`` of this one.
  /// - The server of a finished download is asked whether its file has changed if the request says so; see
  ///   ``DownloadRequest/Refresh``.
  /// - **What is asked for is what lands.** With another URL, size or digest, a running download stops at a checkpoint and
  ///   goes on as the new request says, and a finished download is fetched again: its file stays in place until the new
  ///   one takes its place. See ``update(_:_:)``.
  /// - A paused or cancelled download stays paused or cancelled; see ``resume(_:)`` and ``restart(_:)``.
  ///
  /// An earlier call for the same download, such as a removal that waits for its transfer to stop, comes first: what is
  /// added after the call of ``remove(_:deletingFile:)`` is a new download.
  ///
  /// Each call commits to the ledger before it returns. To add thousands of downloads, call
  /// ``add(contentsOf:ifKnown:paused:)``, which commits once for all of them, or call this method from many tasks at once:
  /// concurrent calls are committed together. 50,000 sequential calls are 50,000 commits; they take SQLite several
  /// seconds, and with the durability `.power` each of them flushes the disk.
  /// - Parameters:
  ///   - request: The URL to download, its destination and its options.
  ///   - ifKnown: How the request affects a download with the same id.
  ///   - paused: Whether a new download is paused from the start: nothing is fetched before ``resume(_:)``. A known download
  ///     keeps its phase.
  /// - Returns: A handle for the download.
  /// - Throws: ``DownloadError`` with `.unsupportedURL`, `.invalidRequest` or `.unsafePath` if the request is invalid,
  ///   expects a digest that no selected step of the pipeline verifies (``DigestVerifying``),
  ///   or downloads would wait for each other in a cycle (``DownloadRequest/after``), `.inUse` if the download is active at
  ///   another location, `.ledger` or `.shutDown`, and the error of ``Storage/location``.
  @discardableResult
  public func add(
    _ request: DownloadRequest, ifKnown: KnownDownload = .update, paused: Bool = false
  ) async throws -> Download {
    try await add(contentsOf: [request], ifKnown: ifKnown, paused: paused)[0]
  }

  /// Adds a download of a URL, with a new id.
  /// - Returns: A handle for the download.
  /// - Throws: The errors of ``add(_:ifKnown:paused:)``.
  @discardableResult
  public func add(_ url: URL) async throws -> Download { try await add(DownloadRequest(url)) }

  /// Adds a download of a URL, given as a string, with a new id.
  /// - Returns: A handle for the download.
  /// - Throws: The errors of ``add(_:ifKnown:paused:)``.
  @discardableResult
  public func add(_ url: String) async throws -> Download { try await add(DownloadRequest(url)) }

  /// Adds several downloads in one transaction of the ledger: all of them, or none if an error is thrown.
  ///
  /// - Parameters:
  ///   - requests: The downloads to add; see ``add(_:ifKnown:paused:)``.
  ///   - ifKnown: How a request affects a download with the same id.
  ///   - paused: Whether new downloads are paused from the start.
  /// - Returns: The handles of the downloads, in the order of the requests.
  /// - Throws: The errors of ``add(_:ifKnown:paused:)``, for the first invalid request.
  @discardableResult
  public func add(
    contentsOf requests: [DownloadRequest], ifKnown: KnownDownload = .update, paused: Bool = false
  ) async throws -> [Download] {
    let tickets = try await engine.add(requests, ifKnown: ifKnown, paused: paused)
    return tickets.map { Download(id: $0.id, isNew: $0.isNew, downloader: self) }
  }

  /// Checks that a request can be added, without adding it.
  /// - Throws: ``DownloadError`` with `.unsupportedURL`, `.invalidRequest` or `.unsafePath` if it cannot.
  public func validate(_ request: DownloadRequest) async throws {
    try await engine.check(request)
  }

  // MARK: Looking up

  /// Returns a handle for a download in the ledger, added in this process or an earlier one; `nil` if there is none.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  public func download(_ id: DownloadID) async throws -> Download? {
    try await contains(id) ? Download(id: id, isNew: false, downloader: self) : nil
  }

  /// Returns whether the ledger has a download with the given id.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  public func contains(_ id: DownloadID) async throws -> Bool {
    try await engine.checkOpen()
    return try await engine.context.shownRecord(id) != nil
  }

  /// Returns the current status of a download; `nil` if there is no such download.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  public func status(of id: DownloadID) async throws -> DownloadStatus? {
    try await engine.status(of: id)
  }

  /// Returns why a reply would not be taken for the file of a download, or would begin another version of it; `nil` if nothing
  /// says so.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  package func contradiction(in reply: SourceReply, for id: DownloadID) async throws -> DownloadError? {
    try await engine.checkOpen()
    guard let record = try await engine.store.record(id) else { return nil }
    let (known, request) = (record.checkpoint, SourceRequest(url: reply.finalURL ?? record.request.url, id: id))
    let row = ReplyRow.of(reply, to: request, known: known, record.versions.mayChange ? .permitted : .resumed)
    return row.decision == .refuses ? row.error(reply, known: known) : nil
  }

  /// Returns the current statuses of several downloads, read together. Ids without a download are left out.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  public func statuses(of ids: [DownloadID]) async throws -> [DownloadID: DownloadStatus] {
    try await engine.statuses(of: ids)
  }

  /// Returns the current statuses of the downloads that match a query, which by default are all downloads of this
  /// downloader's storage. If several storages share a ledger, name a ``DownloadFilter/location`` for those of another one.
  ///
  /// The ledger selects them: a run whose steps have begun may still be selected as `transferring`, and its status says
  /// `processing`.
  ///
  /// The result is held in memory: read a large ledger in pages, with the query's limit and offset.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  public func statuses(_ query: DownloadQuery = DownloadQuery()) async throws -> [DownloadStatus] {
    try await engine.statuses(query)
  }

  /// Returns the number of downloads in each phase, of the downloads that match a filter, as the ledger has them: a run
  /// whose steps have begun may still count as `transferring`.
  ///
  /// They are those that ``statuses(_:)`` selects: by default, all downloads of this downloader's storage.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  public func counts(_ filter: DownloadFilter = .all) async throws -> [DownloadState.Phase: Int] {
    try await engine.counts(filter)
  }

  /// Returns sums over the downloads that match a filter, such as the bytes received, without reading each record. They are
  /// those that ``counts(_:)`` counts.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  public func totals(_ filter: DownloadFilter = .all) async throws -> DownloadTotals {
    try await engine.totals(filter)
  }

  /// What this machine lacks, by the latest download that has found it, so that nothing or only a trial runs here; `nil` while
  /// nothing is known to be wrong. See ``RetryDecision/giveBack``.
  public var machineFault: DownloadError? { engine.context.machineFault.value }

  /// The current pipeline, including replaced stages.
  public var pipeline: Pipeline {
    get async { await engine.pipeline }
  }

  // MARK: Damaged records and orphaned partials

  /// Returns the records that cannot be read because the ledger's medium is damaged.
  ///
  /// Damaged records do not affect other downloads. ``remove(_:deletingFile:)`` removes them by id, and adding a
  /// download with the same id replaces the damaged record.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  public func damaged() async throws -> [DamagedRecord] {
    try await engine.checkOpen()
    return try await engine.store.damaged()
  }

  /// Returns the partials in the storage that are not in use and that no download of this ledger will resume, for
  /// example because a ledger was lost.
  ///
  /// If several ledgers share a folder, the result includes the partials of the other ledgers.
  /// - Throws: ``DownloadError`` with `.invalidPipeline` if the storage cannot list its partials; `.storage`,
  ///   `.permission`, `.ledger` or `.shutDown`.
  public func orphans() async throws -> [StoredPartial] {
    try await engine.orphans()
  }

  /// Deletes partials that ``orphans()`` returned. Partials that are in use by now are kept.
  /// - Returns: The number of partials that were deleted.
  /// - Throws: The errors of ``orphans()``.
  @discardableResult
  public func removeOrphans(_ orphans: [StoredPartial]) async throws -> Int {
    try await engine.remove(orphans)
  }

  // MARK: Watching

  /// Returns all downloads and then their changes, in batches.
  ///
  /// The first batch is a snapshot (``DownloadChanges/isSnapshot``): the statuses of all downloads, of which there may be none,
  /// as they are when the reader asks for it. Each later batch has the latest status of each changed download and the ids of
  /// removed downloads. The same status may be reported twice. So a list is kept with:
  ///
  /// ```swift
  /// var rows: [DownloadID: DownloadStatus] = [:]
  /// for await batch in downloader.changes() {
  ///   if batch.isSnapshot { rows = [:] }
  ///   for status in batch.statuses { rows[status.id] = status }
  ///   for id in batch.removed { rows[id] = nil }
  /// }
  /// ```
  ///
  /// **Another snapshot** follows when changes were left out: when other users of the ledger, in this process or in others,
  /// have changed downloads, and when more than 10,000 downloads have changed since the reader took the last batch. Changes of
  /// others come within a second if the ledger can tell of them, as SQLite and PostgreSQL can.
  ///
  /// **Reasons to wait** are not in the batches, because those of a whole queue change when one download ends. A batch says
  /// that they may have changed (``DownloadChanges/reasonsMayHaveChanged``), while downloads run at most every
  /// ``DownloaderOptions/progressInterval`` unless a gate says so; ask for the waiting downloads that are shown, with ``statuses(of:)``. A download
  /// that is watched by itself, with ``Download/events``, is told its new reason.
  ///
  /// The first change after a quiet interval is reported at once, the changes that follow it together after
  /// `interval`. Changes that the reader has not taken are merged. If the ledger cannot be read, the batch comes when it can.
  /// When the downloader shuts down, the last batch is reported at once and the sequence ends.
  /// - Parameter interval: The least time between two batches. Progress changes at most every
  ///   ``DownloaderOptions/progressInterval``.
  /// - Returns: A sequence for one reader. Cancelling its task ends it.
  public func changes(every interval: Duration = .milliseconds(100)) -> AsyncStream<DownloadChanges> {
    changes(every: interval, beginningWithSnapshot: true)
  }

  /// Returns the changes of all downloads, in batches.
  ///
  /// - Parameters:
  ///   - followingQueue: `false` leaves out new downloads that wait for a free slot only, and that others wait for one for
  ///     another reason. Of a queue of thousands nearly all changes are of this kind.
  ///   - beginningWithSnapshot: `false` leaves out all snapshots: a batch is not complete then.
  package func changes(
    every interval: Duration, followingQueue: Bool = true, beginningWithSnapshot: Bool
  ) -> AsyncStream<DownloadChanges> {
    let buffer = engine.hub.changeBuffer(followsQueue: followingQueue, knowsAll: !beginningWithSnapshot)
    // From now on the loop has to look for changes by others.
    engine.context.mailbox.wake()
    let reader = ChangeReader(engine: engine, buffer: buffer, interval: interval, takesSnapshots: beginningWithSnapshot)
    return AsyncStream { await reader.next() }
  }

  /// Delivers the changes so far to the readers of ``changes(every:)`` at once, for example when the downloader is idle.
  package func deliverChanges() { engine.hub.deliverChanges() }
}
