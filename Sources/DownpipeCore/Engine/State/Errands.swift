/// Work on a disk for some downloads, beside the turns: the disk may not answer.
struct Errand: Sendable {
  /// The command that goes on afterwards; `nil` if none waits.
  var command: Int?
  /// Its downloads: their later errands and runs wait for it.
  let ids: Set<DownloadID>
  let end = Completion()
  /// The errands that come first.
  fileprivate(set) var earlier: [Completion] = []
  /// Returns what the command decides next.
  let perform: @Sendable (EngineContext, inout Changes) async -> AnyDecision?
}

/// The errands that have not ended.
struct Errands: Sendable {
  private(set) var count = 0
  /// The end of the last errand of each download.
  private(set) var ends: [DownloadID: Completion] = [:]

  /// - Returns: The errand, with those that come first.
  mutating func begin(_ errand: Errand) -> Errand {
    var errand = errand
    count += 1
    errand.earlier = errand.ids.compactMap { ends.updateValue(errand.end, forKey: $0) }
    return errand
  }

  mutating func end(_ errand: Errand) {
    count -= 1
    for id in errand.ids where ends[id] === errand.end { ends[id] = nil }
    errand.end.complete()
  }
}

extension EngineState {
  mutating func begin(_ errand: Errand) {
    context.onErrand.begin(errand.ids)
    add(.perform(errands.begin(errand)))
  }

  /// Begins to remove copies of files that other owners have.
  mutating func removeRefusedCopies() {
    guard !context.refusedCopies.isEmpty, !mode.isStopping else { return }
    begin(
      Errand(ids: []) { context, _ in
        await context.removeRefusedCopies()
        return nil
      })
  }

  /// - Parameters:
  ///   - decision: What its command decides next.
  ///   - changes: What it has changed in the ledger.
  mutating func end(_ errand: Errand, _ decision: AnyDecision?, _ changes: Changes) {
    errands.end(errand)
    context.onErrand.end(errand.ids)
    note(changes)
    if let number = errand.command, let decision { commands.resume(number, decision) }
    due.insert(.turn)
  }
}

/// The downloads of errands: their runs begin afterwards.
final class DownloadsOnErrand: Sendable {
  private let counts = Monitor<[DownloadID: Int]>([:])

  func begin(_ ids: Set<DownloadID>) {
    guard !ids.isEmpty else { return }
    counts.update { counts in for id in ids { counts[id, default: 0] += 1 } }
  }

  func end(_ ids: Set<DownloadID>) {
    guard !ids.isEmpty else { return }
    counts.update { counts in
      for id in ids { counts[id] = counts[id].flatMap { $0 > 1 ? $0 - 1 : nil } }
    }
  }

  /// Waits until no errand is for a download.
  /// - Returns: Whether there was one.
  /// - Throws: `CancellationError`.
  func wait(for id: DownloadID) async throws -> Bool {
    guard counts.read({ $0[id] != nil }) else { return false }
    try await counts.wait { $0[id] == nil }
    return true
  }
}
