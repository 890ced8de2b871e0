// Partials that no download of the ledger will resume.
extension Engine {
  /// The partials that are not in use and that no download of the ledger will resume.
  func orphans() async throws -> [StoredPartial] {
    try checkOpen()
    guard let orphans = try await context.storage.orphans(unknownTo: store) else {
      throw DownloadError(
        .invalidPipeline, "\(context.storage.name) cannot list its partials", stage: context.storage.name)
    }
    return orphans
  }

  /// Deletes partials that are still orphans. Done in a turn, so that none of their downloads can start meanwhile.
  nonisolated func remove(_ orphans: [StoredPartial]) async throws -> Int {
    try await context.mailbox.call(for: []) { _ in
      { state, _ in
        let idle = orphans.filter { state.slots.runs[$0.key.id]?.key.generation != $0.key.generation }
        return .job { context, _ in
          let count = try await context.storage.remove(idle, unknownTo: context.store)
          return { _, _ in .over(count) }
        }
      }
    }
  }
}
