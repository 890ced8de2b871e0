import Dispatch
import Downpipe
import Foundation

/// Counts the downloads of one command, and shows the result of each exactly once.
///
/// The actor has a thread of its own: writing waits for the reader of the output, and must not take a thread from the
/// few of the pool, which the downloads and the end of the command need.
actor RunMonitor {
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let executor = OutputExecutor()

  /// The downloads of this command so far.
  private var chosen = Set<UInt64>()
  /// Those without a result.
  private var open = Set<UInt64>()
  private var tally: Tally
  /// How many downloads had rules that the command was not given; see ``TrustSource``.
  private(set) var untrusted = 0
  /// Noted by the downloader before it tells that such a download has finished.
  nonisolated let unconfirmedEnds = UnconfirmedEnds()
  private var output: any RunOutput & Sendable
  private var news = StateNews()
  private var lastChange = Date()
  /// Whether the command was interrupted.
  private var isEnding = false
  /// How many callers are between ``beginAdding()`` and ``endAdding()``, and how many have been.
  private var adding = 0
  private var additions = 0
  /// How many of ``open`` have been looked up in the ledger.
  private var position = 0

  init(output: some RunOutput & Sendable) {
    self.output = output
    tally = Tally(startedAt: Date())
  }

  /// Whether the list of downloads is complete and each has a result.
  var isOver: Bool { tally.isComplete && open.isEmpty }

  var result: Tally { tally }

  /// Makes a download part of this command.
  /// - Returns: False when it is already: a URL that is twice in a list is one download.
  func include(_ id: DownloadID) -> Bool {
    guard let identity = DownloadIdentity(id), chosen.insert(identity.bits).inserted else { return false }
    open.insert(identity.bits)
    tally.total += 1
    return true
  }

  func include(_ ids: [DownloadID]) -> [Bool] { ids.map { include($0) } }

  /// Starts an addition: until ``endAdding()``, the ledger may still have the results of an earlier command.
  func beginAdding() { adding += 1 }

  func endAdding() {
    adding -= 1
    additions += 1
  }

  /// Counts a download that keeps the rules of an earlier command with `--untrusted`.
  func countUntrusted() { untrusted += 1 }

  /// No more downloads follow.
  func tookAll() { tally.isComplete = true }

  /// From now on only results are shown: the others are downloads that the end of the command has stopped.
  func beginToEnd() { isEnding = true }

  /// Shows a batch of changes, without those of other commands.
  func receive(_ statuses: [DownloadStatus]) throws {
    lastChange = Date()
    for status in statuses where isOpen(status.id) {
      if let result = DownloadResult(status) {
        try close(result)
      } else if !isEnding {
        try output.show(status, isNews: news.isNews(status))
      }
    }
    try output.flush(tally, at: lastChange)
  }

  /// Counts and shows a result; a second one of the same download is ignored.
  func close(_ result: DownloadResult) throws {
    var result = result
    result.isEndUnconfirmed = result.isFinished && unconfirmedEnds.contains(result.id)
    guard let identity = DownloadIdentity(result.id), open.remove(identity.bits) != nil else { return }
    news.forget(result.id)
    tally.count(result)
    try output.show(result)
  }

  /// Shows what one should know about a download of this command.
  func show(_ notice: DownloadNotice) throws {
    guard let identity = DownloadIdentity(notice.id), chosen.contains(identity.bits) else { return }
    try output.show(notice)
  }

  /// Writes and redraws after some time has passed.
  func tick() throws { try output.flush(tally, at: Date()) }

  func end() throws { try output.end(tally, at: Date()) }

  private func isOpen(_ id: DownloadID) -> Bool { DownloadIdentity(id).map { open.contains($0.bits) } ?? false }

  // MARK: Looking into the ledger

  /// Looks into the ledger after two seconds without changes: another process may have finished or removed a download,
  /// which is no change of this one.
  func reconcileIfQuiet(_ downloader: Downloader) async throws {
    guard !open.isEmpty, Date().timeIntervalSince(lastChange) > 2 else { return }
    lastChange = Date()
    try await reconcile(downloader)
    // Older results are no longer among the latest changes.
    if position >= open.count { position = 0 }
    let ids = open.dropFirst(position).prefix(Self.page).map { DownloadIdentity(bits: $0).id }
    position += Self.page
    guard let statuses = try await unlessAdding({ try await downloader.statuses(of: ids) }) else { return }
    for id in ids {
      if let status = statuses[id] {
        if let result = DownloadResult(status) {
          try close(result)
        } else if !isEnding {
          // A download that an earlier command has added may have waited before it was watched: why is no change.
          try output.show(status, isNews: news.isNews(status))
        }
        // Nothing holds the download, and it does not start: another command has taken it over and has ended.
        if case .waiting(.turn) = status.state { try await downloader.resume(id) }
      } else {
        let error = DownloadError(.removed, "the download was removed from the ledger")
        try close(DownloadResult(id: id, url: "", error: error))
      }
    }
    try output.flush(tally, at: Date())
  }

  /// Finds results that were in no batch of changes: reads the latest changes of the ledger, page by page, until a page
  /// has no download of this command.
  func reconcile(_ downloader: Downloader) async throws {
    var offset = 0
    while !open.isEmpty {
      let query = DownloadQuery(
        phases: [.finished, .failed, .cancelled, .paused], order: .latestChange, limit: Self.page, offset: offset)
      guard let statuses = try await unlessAdding({ try await downloader.statuses(query) }) else { return }
      let own = statuses.filter { isOpen($0.id) }
      if !own.isEmpty { try receive(own) }
      guard !own.isEmpty, statuses.count == Self.page else { return }
      offset += Self.page
    }
  }

  /// Shows why downloads wait, after that may have changed: of 10,000 at most.
  func showReasons(_ downloader: Downloader) async throws {
    let ids = open.prefix(10 * Self.page).map { DownloadIdentity(bits: $0).id }
    for start in stride(from: 0, to: ids.count, by: Self.page) where !isEnding {
      let page = Array(ids[start..<min(start + Self.page, ids.count)])
      guard let statuses = try await unlessAdding({ try await downloader.statuses(of: page) }) else { return }
      try receive(page.compactMap { statuses[$0] }.filter { $0.state.phase == .waiting })
    }
  }

  private static let page = 1000

  /// Reads from the ledger; `nil` when downloads were added meanwhile, so that the result may be out of date.
  private func unlessAdding<Answer: Sendable>(_ read: () async throws -> Answer) async rethrows -> Answer? {
    guard adding == 0 else { return nil }
    let before = additions
    let answer = try await read()
    return adding == 0 && additions == before ? answer : nil
  }
}

/// Runs jobs that may block, one after the other.
private final class OutputExecutor: SerialExecutor {
  private let queue = DispatchQueue(label: "downpipe.monitor", qos: .userInitiated)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}

extension DownloadIdentity {
  init(bits: UInt64) { self.bits = bits }
}
