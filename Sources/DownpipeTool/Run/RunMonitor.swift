import Dispatch
import Downpipe
import Foundation

/// Keeps count of the downloads of one command, and sees to it that each gets its last word exactly once.
///
/// It has a thread of its own: writing waits for the reader of the output, and must not take a thread from the few that
/// downloads, and the end of the command, need.
actor RunMonitor {
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let executor = OutputExecutor()

  /// The downloads of this command.
  nonisolated let chosen: ChosenIDs

  /// Those without a last word.
  private var open = Set<UInt64>()
  private var tally: Tally
  private var output: any RunOutput & Sendable
  private var lastChange = Date()
  /// How many are adding downloads right now, and how often somebody has.
  private var adding = 0
  private var additions = 0
  /// How far those without a last word have been looked through.
  private var position = 0

  init(output: some RunOutput & Sendable, chosen: ChosenIDs = ChosenIDs()) {
    self.output = output
    self.chosen = chosen
    tally = Tally(startedAt: Date())
  }

  /// Whether everything is known and over.
  var isOver: Bool { tally.isComplete && open.isEmpty }

  /// The sums so far.
  var result: Tally { tally }

  /// Takes a download up.
  /// - Returns: false for one that is there already: a URL that is twice in a list is one download.
  func take(_ id: DownloadID) -> Bool {
    guard let identity = DownloadIdentity(id), chosen.insert(identity) else { return false }
    open.insert(identity.bits)
    tally.total += 1
    return true
  }

  /// Takes many up at once.
  /// - Returns: for each, whether it was not there already.
  func take(_ ids: [DownloadID]) -> [Bool] { ids.map { take($0) } }

  /// Downloads are going to be taken up and added, or to go on. Until ``endAdding()`` what the ledger says of them is
  /// the last word of an earlier run.
  func beginAdding() { adding += 1 }

  /// They are added.
  func endAdding() {
    adding -= 1
    additions += 1
  }

  /// There are no more downloads to be taken up.
  func tookAll() { tally.isComplete = true }

  /// Takes in a batch of changes; those of other commands are left out.
  func receive(_ statuses: [DownloadStatus]) throws {
    lastChange = Date()
    for status in statuses where isOpen(status.id) {
      if let word = LastWord(status) { try close(word) } else { try output.show(status) }
    }
    try output.flush(tally, at: lastChange)
  }

  /// Says the last word on a download; a second one is not heard.
  func close(_ word: LastWord) throws {
    guard let identity = DownloadIdentity(word.id), open.remove(identity.bits) != nil else { return }
    tally.count(word)
    try output.show(word)
  }

  /// Draws anew, as time has passed.
  func tick() throws { try output.flush(tally, at: Date()) }

  /// Writes the end.
  func end() throws { try output.end(tally, at: Date()) }

  private func isOpen(_ id: DownloadID) -> Bool {
    DownloadIdentity(id).map { open.contains($0.bits) } ?? false
  }

  // MARK: Asking the ledger

  /// Looks into the ledger when nothing has been heard for a while: another process may have done the work,
  /// or removed a download, and this one's changes do not tell.
  func reconcileIfQuiet(_ downloader: Downloader) async throws {
    guard !open.isEmpty, Date().timeIntervalSince(lastChange) > 2 else { return }
    lastChange = Date()
    try await reconcile(downloader)
    // What was ended elsewhere may be no more among the latest changes.
    if position >= open.count { position = 0 }
    let ids = open.dropFirst(position).prefix(Self.page).map { DownloadIdentity(bits: $0).id }
    position += Self.page
    guard let statuses = try await unlessAdding({ try await downloader.statuses(of: ids) }) else { return }
    for id in ids {
      if let status = statuses[id] {
        if let word = LastWord(status) { try close(word) }
      } else {
        try close(LastWord(id: id, url: "", error: DownloadError(.removed, "somebody has removed it from the ledger")))
      }
    }
    try output.flush(tally, at: Date())
  }

  /// Looks for downloads that are over and whose end was not heard: the latest changes first, until there are
  /// none of ours among them.
  func reconcile(_ downloader: Downloader) async throws {
    var offset = 0
    while !open.isEmpty {
      let query = DownloadQuery(
        phases: [.finished, .failed, .cancelled, .paused], order: .latestChange, limit: Self.page, offset: offset)
      guard let statuses = try await unlessAdding({ try await downloader.statuses(query) }) else { return }
      let ours = statuses.filter { isOpen($0.id) }
      if !ours.isEmpty { try receive(ours) }
      guard !ours.isEmpty, statuses.count == Self.page else { return }
      offset += Self.page
    }
  }

  private static let page = 1000

  /// What is read from the ledger; `nil` when downloads were being added meanwhile, of which it may be out of date.
  private func unlessAdding<Answer: Sendable>(_ read: () async throws -> Answer) async rethrows -> Answer? {
    guard adding == 0 else { return nil }
    let before = additions
    let answer = try await read()
    return adding == 0 && additions == before ? answer : nil
  }
}

/// Runs what may block, one after the other.
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
