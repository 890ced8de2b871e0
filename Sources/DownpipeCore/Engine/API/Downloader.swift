public import Foundation

/// Downloads what is added to it, through a pipeline.
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
/// It starts with what the ledger still has to do. Safe to use from any thread. All of its work is owned:
/// ``shutdown()`` ends it at a checkpoint and returns when nothing is left; a downloader that is let go
/// of ends as well, but nobody waits for it.
public final class Downloader: Sendable {
  let engine: Engine
  private let loop: Task<Void, Never>

  /// Puts a pipeline together and starts it.
  /// - Throws: see ``init(_:options:)``.
  public convenience init(
    options: DownloaderOptions = DownloaderOptions(), @PipelineBuilder _ stages: () -> PipelineStages
  ) async throws {
    try await self.init(Pipeline(stages()), options: options)
  }

  /// Starts a pipeline.
  ///
  /// - Throws: ``DownloadError`` with `.ledger` when the ledger cannot be opened, with `.invalidPipeline`
  ///   when steps behind opaque groups do not fit, and what a source's start throws.
  public init(_ pipeline: Pipeline, options: DownloaderOptions = DownloaderOptions()) async throws {
    try pipeline.check()
    let store = try await pipeline.ledger.open()
    var sessions: [any SourceSession] = []
    do {
      // One that only lists and removes leaves the ranks of a ledger as they are.
      if !options.startsSuspended { try await store.rank(by: pipeline.ranking) }
      for source in pipeline.sources { sessions.append(try await source.start(in: pipeline.sourceContext)) }
    } catch {
      for session in sessions { await session.stop() }
      try? await store.close()
      throw error
    }
    let engine = Engine(pipeline: pipeline, sessions: sessions, store: store, options: options)
    self.engine = engine
    // One that only lists and removes changes nothing by itself.
    if !options.startsSuspended { await engine.finishRenaming() }
    // The one task that is no child of another; the downloader owns it, and everything else is its child.
    loop = Task {
      await engine.run()
      await engine.close()
    }
  }

  deinit { loop.cancel() }

  /// Stops every transfer at a checkpoint, keeps everything resumable, and returns when nothing runs any more.
  ///
  /// Further calls on the downloader throw `.shutDown`. Calling it again waits as well.
  public func shutdown() async {
    await engine.beginShutdown()
    await loop.value
  }

  /// Returns when nothing waits and nothing runs: everything is finished, failed, cancelled or paused.
  ///
  /// A download that waits at a closed gate keeps this waiting, and so does one that waits for the network, for room or
  /// for another owner.
  /// - Throws: ``DownloadError`` with `.shutDown`, or `.ledger` when the ledger fails time and again;
  ///   `CancellationError`.
  public func waitUntilIdle() async throws {
    try await engine.waitUntilIdle()
  }

  // MARK: Adding

  /// Adds a download, or updates the one with the same id.
  ///
  /// A known download keeps its place in the queue. What differs from the request that was added last is taken over; what
  /// is the same leaves what ``update(_:_:)`` or a fresh link has changed meanwhile, so that adding a feed again changes
  /// nothing. One that has failed goes on, one that is finished starts anew if its file is gone, and one that was
  /// cancelled or paused stays so: ``restart(_:)`` and ``resume(_:)`` are for them.
  ///
  /// Each call is a step of the ledger, durable when it returns. For thousands of downloads add them together with
  /// ``add(contentsOf:ifKnown:)``, which takes one step for all, or from many tasks at once: what comes at the same time
  /// is committed together. 50,000 calls one after the other are 50,000 commits, which take SQLite several seconds, and
  /// with `.power` a flush of the disk each.
  /// - Parameters:
  ///   - request: what is wanted.
  ///   - ifKnown: what becomes of a download with the same id.
  /// - Throws: ``DownloadError`` with `.unsupportedURL`, `.invalidRequest` or `.unsafePath` for a request that cannot be
  ///   carried out, `.inUse` for a download that is active at another location, `.ledger`, or `.shutDown`.
  @discardableResult
  public func add(_ request: DownloadRequest, ifKnown: KnownDownload = .update) async throws -> Download {
    try await add(contentsOf: [request], ifKnown: ifKnown)[0]
  }

  /// Adds a download of a URL, under an id of its own.
  /// - Throws: as ``add(_:ifKnown:)``.
  @discardableResult
  public func add(_ url: URL) async throws -> Download { try await add(DownloadRequest(url)) }

  /// Adds a download of the URL in a text, under an id of its own.
  /// - Throws: as ``add(_:ifKnown:)``.
  @discardableResult
  public func add(_ url: String) async throws -> Download { try await add(DownloadRequest(url)) }

  /// Adds downloads, all or none of them, in one step of the ledger; see ``add(_:ifKnown:)``.
  ///
  /// - Throws: as ``add(_:ifKnown:)``; the first request that cannot be carried out counts.
  @discardableResult
  public func add(
    contentsOf requests: [DownloadRequest], ifKnown: KnownDownload = .update
  ) async throws -> [Download] {
    let tickets = try await engine.add(requests, ifKnown: ifKnown)
    return tickets.map { Download(id: $0.id, isNew: $0.isNew, downloader: self) }
  }

  /// Checks a request as adding it would, without adding it.
  /// - Throws: ``DownloadError`` with `.unsupportedURL`, `.invalidRequest` or `.unsafePath`.
  public func validate(_ request: DownloadRequest) async throws {
    try await engine.check(request)
  }

  // MARK: Looking up

  /// The handle of a download that was added, now or in an earlier run; `nil` when there is none.
  public func download(_ id: DownloadID) async throws -> Download? {
    try await contains(id) ? Download(id: id, isNew: false, downloader: self) : nil
  }

  /// Whether there is a download with the id.
  public func contains(_ id: DownloadID) async throws -> Bool {
    try await engine.checkOpen()
    return try await engine.record(id) != nil
  }

  /// How a download stands; `nil` when there is none.
  public func status(of id: DownloadID) async throws -> DownloadStatus? {
    try await engine.status(of: id)
  }

  /// How each of several downloads stands, asked for at once; ids that there is no download of are left out.
  public func statuses(of ids: [DownloadID]) async throws -> [DownloadID: DownloadStatus] {
    try await engine.statuses(of: ids)
  }

  /// How the downloads stand that a query names: every one, unless the query has a limit. For more than fits in memory,
  /// ask a page at a time.
  public func statuses(_ query: DownloadQuery = DownloadQuery()) async throws -> [DownloadStatus] {
    try await engine.statuses(query)
  }

  /// How many downloads there are in each phase; with `tag`, of those that bear it.
  public func counts(tag: String? = nil) async throws -> [DownloadState.Phase: Int] {
    try await engine.checkOpen()
    return try await engine.store.counts(tag: tag)
  }

  /// Sums over all downloads, or over those with a tag, without reading them.
  public func totals(tag: String? = nil) async throws -> DownloadTotals { try await engine.totals(tag: tag) }

  /// The pipeline as it is now, replaced stages included.
  public var pipeline: Pipeline {
    get async { await engine.pipeline }
  }

  // MARK: What is left over

  /// The records that cannot be read, where the ledger's medium was damaged. They are in no other download's way;
  /// ``remove(_:deletingFile:)`` takes them by their ids, and adding an id again begins anew.
  public func damaged() async throws -> [DamagedRecord] {
    try await engine.checkOpen()
    return try await engine.store.damaged()
  }

  /// Partials that lie on the disk, that nobody holds, and that no download of this ledger will use again: what is left
  /// when a ledger is lost, say. Where several ledgers share a folder, the partials of the others are among them.
  ///
  /// - Throws: ``DownloadError`` with `.invalidPipeline` for a storage that cannot list them; `.storage`,
  ///   `.permission`, `.ledger` or `.shutDown`.
  public func orphans() async throws -> [StoredPartial] {
    try await engine.orphans()
  }

  /// Removes orphans that ``orphans()`` has found, as far as they still are.
  /// - Returns: how many were removed.
  /// - Throws: as ``orphans()``.
  @discardableResult
  public func removeOrphans(_ orphans: [StoredPartial]) async throws -> Int {
    try await engine.remove(orphans)
  }

  // MARK: Watching

  /// Every change, in batches: at most one in each interval, with the latest status of each download, and with those
  /// that were removed. That a download waits for another reason than before is a change, too.
  ///
  /// What other users of the ledger do is told of downloads that are watched by themselves; ask
  /// ``statuses(_:)`` now and then where there are others. One reader a sequence. Statuses are copies, safe to show anywhere. The same one may come twice.
  public func changes(every interval: Duration = .milliseconds(100)) -> AsyncStream<DownloadChanges> {
    let buffer = engine.hub.changeBuffer()
    // The loop begins to follow why downloads wait.
    engine.context.mailbox.wake()
    let time = engine.options.time
    return AsyncStream {
      // At the end the last batch comes at once.
      if !buffer.isFinished { try? await time.sleep(for: interval, purpose: .changes) }
      return await buffer.next()
    }
  }
}
