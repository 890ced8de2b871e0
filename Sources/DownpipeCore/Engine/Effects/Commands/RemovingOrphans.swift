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

  /// Deletes partials that are still orphans. None of their downloads starts meanwhile.
  nonisolated func remove(_ orphans: [StoredPartial]) async throws -> Int {
    try await context.mailbox.call(for: Set(orphans.map(\.key.id))) { _ in
      { state, _ in
        let idle = orphans.filter { state.slots.runs[$0.key.id]?.key.generation != $0.key.generation }
        return .errand(for: Set(idle.map(\.key.id))) { context, _ in
          let count = try await context.storage.remove(idle, unknownTo: context.store)
          return { _, _ in .over(count) }
        }
      }
    }
  }
}
