import Downpipe
import Foundation

/// Keeps count of the downloads of one command, and sees to it that each gets its last word exactly once.
actor RunMonitor {
  /// The downloads of this command.
  nonisolated let chosen: ChosenDownloads.IDs

  /// Those without a last word.
  private var open = Set<UInt64>()
  private var tally: Tally
  private var output: any RunOutput & Sendable
  private var lastChange = Date()

  init(output: some RunOutput & Sendable, chosen: ChosenDownloads.IDs = ChosenDownloads.IDs()) {
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
    for bits in open.prefix(20) {
      let id = DownloadIdentity(bits: bits).id
      if try await downloader.status(of: id) == nil {
        try close(LastWord(id: id, url: "", error: DownloadError(.removed, "somebody has removed it from the ledger")))
      }
    }
    try output.flush(tally, at: Date())
  }

  /// Looks for downloads that are over and whose end was not heard: the latest changes first, until there are
  /// none of ours among them.
  func reconcile(_ downloader: Downloader) async throws {
    let page = 1000
    var offset = 0
    while !open.isEmpty {
      let query = LedgerQuery(
        phases: [.finished, .failed, .cancelled, .paused], order: .latestChange, limit: page, offset: offset)
      let statuses = try await downloader.statuses(query)
      let ours = statuses.filter { isOpen($0.id) }
      if !ours.isEmpty { try receive(ours) }
      guard !ours.isEmpty, statuses.count == page else { return }
      offset += page
    }
  }
}

extension DownloadIdentity {
  init(bits: UInt64) { self.bits = bits }
}
